// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/executor/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <set>
#include <thread>

#include "ground/executor/threads.hpp"
#include "ground/sim/disk.hpp"

namespace tailrace::executor {
namespace {

/// Takes some microseconds. A yield would cost a time slice where others compute.
void linger() {
  std::atomic<int> looks = 0;
  while (looks.fetch_add(1) < 500) continue;
}

/// An executor, and what makes its time pass.
class World {
 public:
  virtual ~World() = default;
  [[nodiscard]] virtual Executor& executor() = 0;
  /// Lets jobs go on. Returns false if nothing can happen any more.
  virtual bool go_on() = 0;
  /// Destroys the executor, and lets happen what still happens then.
  virtual void end() = 0;
};

class ThreadsWorld final : public World {
 public:
  ThreadsWorld(Threads::Limits limits, std::function<void()> wake)
      : threads_(std::move(*Threads::create(limits, std::move(wake)))) {}
  Executor& executor() override { return *threads_; }
  bool go_on() override {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    return true;
  }
  void end() override { threads_.reset(); }

 private:
  std::unique_ptr<Threads> threads_;
};

class SimulatedWorld final : public World {
 public:
  SimulatedWorld(int count, std::uint64_t seed, std::function<void()> wake)
      : scheduler_(seed),
        threads_(std::make_unique<sim::SimThreads>(scheduler_, count, nullptr, std::move(wake))) {}
  Executor& executor() override { return *threads_; }
  bool go_on() override { return scheduler_.run_one(); }
  void end() override {
    threads_.reset();
    while (scheduler_.run_one()) continue;
  }

 private:
  sim::Scheduler scheduler_;
  std::unique_ptr<sim::SimThreads> threads_;
};

struct Candidate {
  std::string name;
  std::function<std::unique_ptr<World>(std::function<void()> wake)> make;
  int count = 1;
  /// How it runs the jobs that wait: inside the call, on threads, or as a whole at some moment.
  enum class Waiting { in_call, on_threads, in_simulated_time } waiting = Waiting::on_threads;
};

std::vector<Candidate> candidates() {
  using Waiting = Candidate::Waiting;
  std::vector<Candidate> all;
  const auto threads = [&](const std::string& name, int compute, int wait) {
    all.push_back({name,
                   [compute, wait](auto wake) {
                     return std::make_unique<ThreadsWorld>(Threads::Limits{compute, wait}, std::move(wake));
                   },
                   std::max(compute, 1), wait == 0 ? Waiting::in_call : Waiting::on_threads});
  };
  threads("inline", 0, 0);
  threads("inline_beside_threads_that_wait", 0, 8);
  threads("one_thread_and_waiting_inline", 1, 0);
  threads("one_thread", 1, 8);
  threads("two_threads", 2, 8);
  threads("five_threads", 5, 8);
  for (const int count : {1, 3}) {
    all.push_back(
        {"simulated_" + std::to_string(count),
         [count](auto wake) { return std::make_unique<SimulatedWorld>(count, 4711, std::move(wake)); }, count,
         Waiting::in_simulated_time});
  }
  return all;
}

std::vector<Candidate> those_that_wait(std::vector<Candidate::Waiting> ways) {
  std::vector<Candidate> those = candidates();
  std::erase_if(those, [&](const Candidate& each) { return std::ranges::count(ways, each.waiting) == 0; });
  return those;
}

class ExecutorConformance : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    world = GetParam().make([this] {
      on_wake();
      ++woken;
    });
  }
  Executor& executor() { return world->executor(); }
  /// Polls until `count` reaches `wanted`. A job that never ends hangs a test, whose time is limited.
  void poll_until(const auto& count, int wanted) {
    while (count < wanted) {
      if (!executor().poll() && !world->go_on())
        FAIL() << "nothing can happen any more, and " << count << " of " << wanted << " jobs are done";
    }
  }
  /// Lets jobs run, and polls none of them, until `count` reaches `wanted`.
  void run_until(const auto& count, int wanted) {
    while (count < wanted) ASSERT_TRUE(world->go_on()) << count << " of " << wanted;
  }

  std::atomic<int> woken = 0;
  std::function<void()> on_wake = [] {};
  std::unique_ptr<World> world;
};

/// Jobs may wait for jobs of other keys.
class ExecutorWithThreadsThatWait : public ExecutorConformance {};
/// Jobs may wait for jobs of other workers.
class ExecutorInRealTime : public ExecutorConformance {};
class ExecutorInSimulatedTime : public ExecutorConformance {};

TEST_P(ExecutorConformance, tells_how_many_workers_compute) {
  EXPECT_EQ(executor().count(), GetParam().count);
}

TEST_P(ExecutorConformance, jobs_of_a_key_run_one_after_another_in_the_order_of_submission) {
  constexpr std::size_t keys = 5;
  constexpr int jobs = 400;
  std::vector<std::vector<int>> seen(keys);  // a key's jobs need no lock if they never overlap
  std::vector<std::atomic<int>> running(keys);
  std::atomic<bool> overlapped = false;
  int done = 0;
  for (int i = 0; i < jobs; ++i) {
    const std::size_t key = static_cast<std::size_t>(i * 7 / 3) % keys;
    executor().wait(
        key,
        [&, key, i](int) {
          if (++running[key] > 1) overlapped = true;
          if (i % 16 == 0) linger();
          seen[key].push_back(i);
          --running[key];
          return Status();
        },
        [&](const Status& status) {
          EXPECT_TRUE(status.is_ok());
          ++done;
        });
    if (i % 50 == 0) executor().poll();
  }
  poll_until(done, jobs);
  EXPECT_FALSE(overlapped);
  std::size_t all = 0;
  for (const auto& each : seen) {
    EXPECT_TRUE(std::ranges::is_sorted(each));
    all += each.size();
  }
  EXPECT_EQ(all, std::size_t{jobs});
}

TEST_P(ExecutorWithThreadsThatWait, jobs_of_different_keys_run_side_by_side) {
  std::latch met(4);  // each waits for the others
  int done = 0;
  for (Key key = 0; key < 4; ++key) {
    executor().wait(
        key,
        [&](int) {
          met.arrive_and_wait();
          return Status();
        },
        [&](const Status&) { ++done; });
  }
  poll_until(done, 4);
}

TEST_P(ExecutorWithThreadsThatWait, a_key_that_hangs_keeps_no_other_and_no_computation) {
  std::binary_semaphore hook(0);
  int hung = 0;
  int behind = 0;
  int done = 0;
  const auto nothing = [](int) { return Status(); };
  executor().wait(
      1,
      [&](int) {
        hook.acquire();
        return Status();
      },
      [&](const Status&) { ++hung; });
  executor().wait(1, nothing, [&](const Status&) { ++behind; });
  for (int i = 0; i < 100; ++i) {
    executor().wait(static_cast<Key>(2 + i % 3), nothing, [&](const Status&) { ++done; });
    executor().compute(nothing, [&](const Status&) { ++done; });
  }
  poll_until(done, 200);
  EXPECT_EQ(hung + behind, 0);
  hook.release();
  poll_until(behind, 1);
  EXPECT_EQ(hung, 1);
}

/// A job that ends late ends behind jobs of other keys which were submitted after it.
TEST_P(ExecutorInSimulatedTime, keys_in_simulated_time_end_in_any_order) {
  std::vector<int> order;
  int done = 0;
  for (int key = 0; key < 50; ++key) {
    executor().wait(
        static_cast<Key>(key), [](int) { return Status(); },
        [&, key](const Status&) {
          order.push_back(key);
          ++done;
        });
  }
  poll_until(done, 50);
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

/// Jobs that have begun tell so a moment later. Therefore as many may be untold as there are other workers.
TEST_P(ExecutorConformance, jobs_that_compute_start_in_the_order_of_submission) {
  constexpr int jobs = 300;
  std::mutex mutex;
  std::vector<int> begun;
  int done = 0;
  for (int i = 0; i < jobs; ++i) {
    executor().compute(
        [&, i](int) {
          const std::lock_guard lock(mutex);
          begun.push_back(i);
          return Status();
        },
        [&](const Status&) { ++done; });
  }
  poll_until(done, jobs);
  ASSERT_EQ(begun.size(), std::size_t{jobs});
  std::set<int> untold;
  int next = 0;
  for (const int job : begun) {
    for (; next <= job; ++next) untold.insert(next);
    ASSERT_EQ(untold.erase(job), 1U) << "job " << job << " ran twice";
    ASSERT_LT(std::ranges::count_if(untold, [job](int other) { return other < job; }), GetParam().count)
        << "before job " << job;
  }
}

TEST_P(ExecutorConformance, two_jobs_of_one_worker_never_overlap) {
  constexpr int jobs = 400;
  std::vector<std::atomic<int>> running(64);  // by worker
  std::atomic<bool> overlapped = false;
  std::atomic<bool> misnumbered = false;
  int done = 0;
  const auto job = [&](bool computes) {
    return [&, computes](int worker) {
      if (worker < 0 || worker >= 64 || computes != (worker < executor().count())) {
        misnumbered = true;
        return Status();
      }
      auto& mine = running[static_cast<std::size_t>(worker)];
      if (++mine > 1) overlapped = true;
      linger();
      --mine;
      return Status();
    };
  };
  for (int i = 0; i < jobs; ++i) {
    executor().compute(job(true), [&](const Status&) { ++done; });
    executor().wait(static_cast<Key>(i % 6), job(false), [&](const Status&) { ++done; });
  }
  poll_until(done, 2 * jobs);
  EXPECT_FALSE(overlapped);
  EXPECT_FALSE(misnumbered) << "workers that compute are 0 .. count()-1, and no others";
}

TEST_P(ExecutorInRealTime, all_workers_compute_at_the_same_time) {
  std::latch met(GetParam().count);
  std::mutex mutex;
  std::set<int> workers;
  int done = 0;
  for (int i = 0; i < GetParam().count; ++i) {
    executor().compute(
        [&](int worker) {
          {
            const std::lock_guard lock(mutex);
            workers.insert(worker);
          }
          met.arrive_and_wait();
          return Status();
        },
        [&](const Status&) { ++done; });
  }
  poll_until(done, GetParam().count);
  std::set<int> expected;
  for (int worker = 0; worker < GetParam().count; ++worker) expected.insert(worker);
  EXPECT_EQ(workers, expected);
}

TEST_P(ExecutorConformance, done_gets_the_job_s_status_in_poll_on_the_thread_that_polls) {
  const std::thread::id here = std::this_thread::get_id();
  bool polling = false;
  std::vector<std::pair<Code, std::string>> told;
  std::atomic<int> done = 0;
  std::atomic<int> ran = 0;
  const auto note = [&](const Status& status) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_TRUE(polling);
    told.emplace_back(status.code(), status.text());
    ++done;
  };
  const auto failing = [&](int) {
    ++ran;
    return Status(Code::space, "the disk is full");
  };
  const auto throwing = [&](int) -> Status {
    ++ran;
    throw std::bad_alloc();
  };
  const auto passing = [&](int) {
    ++ran;
    return Status();
  };
  executor().compute(failing, note);
  executor().wait(1, failing, note);
  executor().compute(throwing, note);
  executor().wait(1, throwing, note);
  executor().compute(passing, note);
  executor().wait(1, passing, note);
  run_until(ran, 6);
  EXPECT_EQ(done, 0) << "nobody has polled";
  polling = true;
  poll_until(done, 6);
  std::ranges::sort(told);
  std::vector<Code> codes;
  for (const auto& [code, text] : told) codes.push_back(code);
  std::vector<Code> expected{Code::ok, Code::ok, Code::space, Code::space, Code::memory, Code::memory};
  std::ranges::sort(expected);
  EXPECT_EQ(codes, expected);
  EXPECT_EQ(std::ranges::count(told, std::pair{Code::space, std::string("the disk is full")}), 2);
  EXPECT_FALSE(executor().poll()) << "each job is told once";
  EXPECT_EQ(done, 6);
}

TEST_P(ExecutorConformance, a_job_that_failed_stops_no_other) {
  int failed = 0;
  int done = 0;
  for (int i = 0; i < 60; ++i) {
    const auto job = [i](int) { return i % 3 == 0 ? Status(Code::io, "no") : Status(); };
    const auto note = [&](const Status& status) {
      failed += status.is_ok() ? 0 : 1;
      ++done;
    };
    executor().wait(4, job, note);
    executor().compute(job, note);
  }
  poll_until(done, 120);
  EXPECT_EQ(failed, 40);
}

TEST_P(ExecutorConformance, the_one_who_waits_is_woken_for_each_job) {
  int done = 0;
  for (int i = 0; i < 20; ++i) {
    executor().compute([](int) { return Status(); }, [&](const Status&) { ++done; });
    executor().wait(
        2, [](int) { return Status(); }, [&](const Status&) { ++done; });
  }
  // Whoever sleeps until it is woken finds the job that woke it.
  for (int before = 0; before < 40; before = done) {
    run_until(woken, before + 1);
    const int woken_before = woken;
    executor().poll();
    ASSERT_GE(done, woken_before);
  }
  EXPECT_EQ(woken, 40);
}

TEST_P(ExecutorConformance, what_a_job_holds_is_free_before_it_is_told_as_done) {
  int done = 0;
  for (const bool computes : {true, false}) {
    auto held = std::make_shared<int>(7);
    const std::weak_ptr<int> watched = held;
    on_wake = [watched] { EXPECT_TRUE(watched.expired()); };
    const auto note = [&](const Status&) { ++done; };
    auto job = [held = std::move(held)](int) { return *held == 7 ? Status() : Status(Code::io, "lost"); };
    if (computes)
      executor().compute(std::move(job), note);
    else
      executor().wait(3, std::move(job), note);
    poll_until(done, computes ? 1 : 2);
  }
}

TEST_P(ExecutorConformance, done_may_submit_what_follows) {
  int done = 0;
  std::vector<int> order;
  std::function<void(int)> submit = [&](int i) {
    const auto note = [&, i](const Status&) {
      order.push_back(i);
      ++done;
      if (i < 30) submit(i + 1);
    };
    if (i % 2 == 0)
      executor().compute([](int) { return Status(); }, note);
    else
      executor().wait(
          1, [](int) { return Status(); }, note);
  };
  submit(0);
  poll_until(done, 31);
  std::vector<int> expected(31);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(ExecutorConformance, jobs_run_whether_or_not_anybody_polls) {
  std::atomic<int> ran = 0;
  int told = 0;
  const auto job = [&](int) {
    ++ran;
    return Status();
  };
  for (int i = 0; i < 100; ++i) {
    executor().compute(job, [&](const Status&) { ++told; });
    executor().wait(static_cast<Key>(i % 3), job, [&](const Status&) { ++told; });
  }
  run_until(ran, 200);
  EXPECT_EQ(told, 0);
  poll_until(told, 200);
  EXPECT_EQ(ran, 200);
}

/// Threads finish what was submitted. A simulated rank that is gone does nothing more: its node is dead.
TEST_P(ExecutorConformance, a_destroyed_one_has_done_all_or_does_no_more) {
  std::atomic<int> ran = 0;
  int told = 0;
  for (int i = 0; i < 200; ++i) {
    const auto job = [&](int) {
      ++ran;
      return Status();
    };
    executor().compute(job, [&](const Status&) { ++told; });
    executor().wait(static_cast<Key>(i % 5), job, [&](const Status&) { ++told; });
  }
  world->end();
  const bool simulated = GetParam().waiting == Candidate::Waiting::in_simulated_time;
  EXPECT_EQ(ran, simulated ? 0 : 400);
  EXPECT_EQ(told, 0) << "nobody polled";
}

constexpr auto name_of = [](const auto& instance) { return instance.param.name; };
using Waiting = Candidate::Waiting;

INSTANTIATE_TEST_SUITE_P(every_executor, ExecutorConformance, testing::ValuesIn(candidates()), name_of);
INSTANTIATE_TEST_SUITE_P(every_executor, ExecutorWithThreadsThatWait,
                         testing::ValuesIn(those_that_wait({Waiting::on_threads})), name_of);
INSTANTIATE_TEST_SUITE_P(every_executor, ExecutorInRealTime,
                         testing::ValuesIn(those_that_wait({Waiting::on_threads, Waiting::in_call})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(every_executor, ExecutorInSimulatedTime,
                         testing::ValuesIn(those_that_wait({Waiting::in_simulated_time})), name_of);

}  // namespace
}  // namespace tailrace::executor
