// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/executor/threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <csignal>
#include <latch>
#include <semaphore>
#include <set>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/resource.h>

namespace tailrace::executor {
namespace {

std::unique_ptr<Threads> threads_of(int compute, int wait, std::function<void()> wake = {}) {
  Result<std::unique_ptr<Threads>> threads = Threads::create({compute, wait}, std::move(wake));
  EXPECT_TRUE(threads.is_ok()) << threads.status().text();
  return std::move(*threads);
}

/// Picks up finished jobs until `done` of them have told.
template <typename Count>
void poll_until(Threads& threads, const Count& done, int wanted) {
  while (done < wanted) {
    if (!threads.poll()) std::this_thread::yield();
  }
}

TEST(threads, jobs_of_one_key_run_one_after_another_in_order) {
  const auto threads = threads_of(0, 4);
  constexpr int keys = 7;
  std::vector<std::vector<int>> seen(keys);
  std::vector<std::atomic<int>> running(keys);
  std::atomic<bool> overlapped = false;
  for (int i = 0; i < 2000; ++i) {
    const auto key = static_cast<std::size_t>(i % keys);
    threads->submit(key, [&, key, i] {
      if (++running[key] > 1) overlapped = true;
      seen[key].push_back(i);
      --running[key];
    });
  }
  threads->drain();
  EXPECT_FALSE(overlapped);
  for (std::size_t key = 0; key < keys; ++key) {
    EXPECT_TRUE(std::is_sorted(seen[key].begin(), seen[key].end()));
    EXPECT_EQ(seen[key].size(), 2000 / keys + (key < 2000 % keys ? 1 : 0));
  }
}

TEST(threads, no_more_of_them_are_started_than_keys_have_jobs) {
  const auto threads = threads_of(0, 64);
  std::set<std::thread::id> seen;
  for (int i = 0; i < 2000; ++i) threads->submit(7, [&seen] { seen.insert(std::this_thread::get_id()); });
  threads->drain();
  EXPECT_EQ(seen.size(), 1U);
}

TEST(threads, different_keys_run_side_by_side) {
  const auto threads = threads_of(0, 3);
  std::latch met(3);  // each waits for the others
  for (Key key = 0; key < 3; ++key) threads->submit(key, [&met] { met.arrive_and_wait(); });
  threads->drain();
}

TEST(threads, keys_beyond_the_limit_wait_for_a_thread) {
  const auto threads = threads_of(0, 2);
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  for (int i = 0; i < 200; ++i) {
    threads->submit(static_cast<Key>(i), [&] {
      const int now = ++running;
      for (int before = most; now > before && !most.compare_exchange_weak(before, now);) continue;
      std::this_thread::yield();
      --running;
    });
  }
  threads->drain();
  EXPECT_LE(most, 2);
  EXPECT_EQ(threads->waiting_threads(), 2);
}

TEST(threads, own_keys_run_beyond_the_limit) {
  const auto threads = threads_of(0, 1);
  std::latch met(3);
  threads->submit(threads->new_key(), [&met] { met.arrive_and_wait(); });
  threads->submit(threads->new_own_key(), [&met] { met.arrive_and_wait(); });
  threads->submit(threads->new_own_key(), [&met] { met.arrive_and_wait(); });
  threads->drain();
}

TEST(threads, own_keys_do_not_use_the_limit_up) {
  const auto threads = threads_of(0, 1);
  std::binary_semaphore go(0);
  threads->submit(threads->new_own_key(), [&go] { go.acquire(); });
  threads->submit(threads->new_own_key(), [] {});
  std::atomic<int> ran = 0;
  const Key key = threads->new_key();
  for (int i = 0; i < 10; ++i) threads->submit(key, [&ran] { ++ran; });
  threads->drain(key);
  EXPECT_EQ(ran, 10);
  go.release();
  threads->drain();
}

TEST(threads, a_key_that_somebody_waits_for_does_not_wait_for_other_keys) {
  const auto threads = threads_of(0, 1);
  std::binary_semaphore go(0);
  threads->submit(threads->new_key(), [&go] { go.acquire(); });
  const Key other = threads->new_key();
  threads->submit(other, [] {});
  const Key key = threads->new_key();
  std::vector<int> ran;
  for (int i = 0; i < 10; ++i) threads->submit(key, [&ran, i] { ran.push_back(i); });
  threads->hasten(key);
  threads->drain(key);
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_FALSE(threads->is_idle(other));  // the limit holds for the others
  go.release();
  threads->drain();
}

TEST(threads, a_file_has_one_key_however_its_path_is_written) {
  EXPECT_EQ(key_of("./out//a"), key_of("out/b/../a"));
  EXPECT_NE(key_of("out/a"), key_of("out/b"));
}

TEST(threads, a_job_that_hangs_keeps_no_other_key_and_no_computation) {
  const auto threads = threads_of(1, 4);
  std::binary_semaphore hook(0);
  std::atomic<bool> hung = true;
  int hook_done = 0;
  int done = 0;
  threads->wait(
      key_of("hung"),
      [&](int) {
        hook.acquire();
        hung = false;
        return Status();
      },
      [&](const Status&) { ++hook_done; });
  int behind = 0;
  threads->wait(
      key_of("hung"),
      [&](int) {
        EXPECT_FALSE(hung) << "a job of a file ran before the one that was submitted before it";
        return Status();
      },
      [&](const Status&) { ++behind; });
  for (int step = 0; step < 100; ++step) {
    threads->wait(
        key_of(step % 2 == 0 ? "a" : "b"), [](int) { return Status(); }, [&](const Status&) { ++done; });
    threads->compute([](int) { return Status(); }, [&](const Status&) { ++done; });
  }
  poll_until(*threads, done, 200);
  EXPECT_TRUE(hung);
  EXPECT_EQ(hook_done + behind, 0);
  hook.release();
  poll_until(*threads, behind, 1);
  EXPECT_EQ(hook_done, 1);
}

TEST(threads, each_job_that_computes_has_a_worker_of_its_own) {
  const auto threads = threads_of(3, 1);
  std::latch all(3);
  std::mutex mutex;
  std::set<int> workers;
  int done = 0;
  for (int i = 0; i < 3; ++i) {
    threads->compute(
        [&](int worker) {
          {
            const std::lock_guard lock(mutex);
            workers.insert(worker);
          }
          all.arrive_and_wait();
          return Status();
        },
        [&](const Status&) { ++done; });
  }
  poll_until(*threads, done, 3);
  EXPECT_EQ(workers, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(threads->count(), 3);
  int worker_that_waits = -1;
  threads->wait(
      7,
      [&](int worker) {
        worker_that_waits = worker;
        return Status();
      },
      [&](const Status&) { ++done; });
  poll_until(*threads, done, 4);
  EXPECT_EQ(worker_that_waits, 3);
}

/// The C library gives threads 2 MiB where the program has asked for no limit.
TEST(threads, threads_that_compute_have_a_large_stack_if_the_limit_is_none) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &before), 0);
  if (before.rlim_max != RLIM_INFINITY) GTEST_SKIP() << "this process may not have an unlimited stack";
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_STACK, &none), 0);
  const auto stack_of_thread = [] {
    std::size_t bytes = 0;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return bytes;
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return bytes;
  };
  std::atomic<std::size_t> computing{0};
  std::size_t others = 0;
  {
    const auto threads = threads_of(1, 0);
    std::thread([&] { others = stack_of_thread(); }).join();
    threads->compute(
        [&](int) {
          computing = stack_of_thread();
          return Status();
        },
        [](const Status&) {});
    while (!threads->poll()) std::this_thread::yield();
  }
  setrlimit(RLIMIT_STACK, &before);
  EXPECT_GE(computing, std::size_t{64} << 20);
  EXPECT_LT(others, std::size_t{64} << 20);
}

TEST(threads, what_a_job_fails_with_comes_back_to_who_submitted_it) {
  for (const int limit : {0, 2}) {
    std::atomic<int> woken = 0;
    const auto threads = threads_of(limit, limit, [&woken] { ++woken; });
    std::vector<Code> codes;
    const std::thread::id here = std::this_thread::get_id();
    const auto note = [&](const Status& status) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      codes.push_back(status.code());
    };
    threads->compute([](int) { return Status(Code::io, "no"); }, note);
    while (codes.empty()) threads->poll();
    threads->wait(
        5, [](int) -> Status { throw std::bad_alloc(); }, note);
    while (codes.size() < 2) threads->poll();
    EXPECT_EQ(codes, (std::vector<Code>{Code::io, Code::memory}));
    EXPECT_EQ(woken, 2);
    EXPECT_FALSE(threads->poll());
  }
}

TEST(threads, without_threads_the_caller_works) {
  const auto threads = threads_of(0, 0);
  const Threads::Hold hold(*threads);
  const std::thread::id here = std::this_thread::get_id();
  std::fesetround(FE_UPWARD);
  int ran = 0;
  const auto job = [&](int) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    ++ran;
    return Status();
  };
  threads->submit(threads->new_own_key(), [&] { EXPECT_TRUE(job(0).is_ok()); });
  threads->compute(job, [](const Status&) {});
  threads->wait(3, job, [](const Status&) {});
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(threads->waiting_threads(), 0);
  EXPECT_TRUE(threads->is_idle(3));
}

TEST(threads, a_thread_has_default_floating_point_and_no_signals) {
  std::fesetround(FE_UPWARD);
  const auto threads = threads_of(1, 1);
  int done = 0;
  const auto job = [](int) {
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
    return Status();
  };
  threads->compute(job, [&](const Status&) { ++done; });
  threads->wait(1, job, [&](const Status&) { ++done; });
  poll_until(*threads, done, 2);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}

TEST(threads, nothing_that_waits_begins_while_they_are_held) {
  const auto threads = threads_of(1, 2);
  std::atomic<int> ran = 0;
  int computed = 0;
  {
    const Threads::Hold outer(*threads);
    {
      const Threads::Hold inner(*threads);
      for (Key key = 0; key < 3; ++key) threads->submit(key, [&ran] { ++ran; });
    }
    threads->compute([](int) { return Status(); }, [&](const Status&) { ++computed; });
    poll_until(*threads, computed, 1);
    EXPECT_EQ(ran, 0);
    EXPECT_FALSE(threads->is_idle(0));
  }
  threads->drain();
  EXPECT_EQ(ran, 3);
}

TEST(threads, the_job_that_was_submitted_first_is_taken_first) {
  const auto threads = threads_of(0, 1);
  std::binary_semaphore go(0);
  std::vector<Key> order;
  threads->submit(9, [&] { go.acquire(); });
  for (const Key key : {5, 3, 8, 1, 3, 5}) threads->submit(key, [&order, key] { order.push_back(key); });
  EXPECT_FALSE(threads->is_idle(3));
  EXPECT_TRUE(threads->is_idle(4));
  go.release();
  threads->drain();
  EXPECT_EQ(order, (std::vector<Key>{5, 3, 8, 1, 3, 5}));
}

TEST(threads, what_was_submitted_is_done_before_they_end) {
  std::atomic<int> done = 0;
  std::atomic<int> told = 0;
  std::binary_semaphore go(0);
  {
    const auto threads = threads_of(2, 3);
    threads->submit(1, [&go] { go.acquire(); });  // the other jobs of its key wait behind it
    for (int i = 0; i < 500; ++i) {
      threads->submit(static_cast<Key>(i % 5), [&] { ++done; });
      threads->compute(
          [&](int) {
            ++done;
            return Status();
          },
          [&](const Status&) { ++told; });
    }
    go.release();
  }
  EXPECT_EQ(done, 1000);
  EXPECT_EQ(told, 0) << "nobody polled";
}

}  // namespace
}  // namespace tailrace::executor
