// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "ground/storage/faulty.hpp"
#include "ground/storage/scratch.hpp"

namespace tailrace::storage {
namespace {

template <typename Body>
double seconds(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The rate is never faster than stated, on any machine. It is slower by up to a tenth on a machine that is
/// not overloaded, so the best of three runs counts.
template <typename Body>
void expect_seconds(double expected, Body&& body) {
  double best = 1e9;
  for (int attempt = 0; attempt < 3 && best > expected * 1.1; ++attempt) {
    const double taken = seconds(body);
    EXPECT_GE(taken, expected * 0.99);
    best = std::min(best, taken);
  }
  EXPECT_LE(best, expected * 1.1);
}

TEST(throttle, one_file_is_written_at_the_stated_rate) {
  expect_seconds(0.3, [&] {
    const auto target = throttled_target(memory_target(), {10e6, 0});
    const auto file = target->open("a", OpenMode::create);
    const ByteVector data(100'000);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE((*file)->write(data, i * 100'000).is_ok());
  });
}

TEST(throttle, small_writes_add_up_exactly) {
  // Each thread wakes up a little late; the clock of the disk must not.
  expect_seconds(0.3, [&] {
    const auto target = throttled_target(memory_target(), {1e6, 0});
    const auto file = target->open("a", OpenMode::create);
    const ByteVector data(200);
    for (int i = 0; i < 1500; ++i) ASSERT_TRUE((*file)->write(data, i * 200).is_ok());
  });
}

TEST(throttle, files_and_threads_share_the_rate) {
  expect_seconds(0.3, [&] {
    const auto target = throttled_target(memory_target(), {10e6, 0});
    const ByteVector data(100'000);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        const auto file = target->open("f" + std::to_string(t), OpenMode::create);
        for (int i = 0; i < 10; ++i) EXPECT_TRUE((*file)->write(data, i * 100'000).is_ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(throttle, gathered_writes_count_all_their_parts) {
  expect_seconds(0.1, [&] {
    const auto target = throttled_target(memory_target(), {10e6, 0});
    const auto file = target->open("a", OpenMode::create);
    const ByteVector data(500'000);
    const std::span<const std::byte> parts[] = {data, data};
    ASSERT_TRUE((*file)->write_gathered(parts, 0).is_ok());
  });
}

TEST(throttle, writes_of_another_library_take_their_time) {
  const auto target = throttled_target(memory_target(), {10e6, 0});
  EXPECT_GE(seconds([&] { ASSERT_TRUE(target->count_write("a", 1'000'000).is_ok()); }), 0.099);
}

TEST(throttle, time_not_used_is_not_saved_up) {
  const auto target = throttled_target(memory_target(), {10e6, 0});
  const auto file = target->open("a", OpenMode::create);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const ByteVector data(1'000'000);
  EXPECT_GE(seconds([&] { ASSERT_TRUE((*file)->write(data, 0).is_ok()); }), 0.099);
}

TEST(throttle, latency_is_added_to_writes_and_syncs_and_to_nothing_else) {
  const auto target = throttled_target(memory_target(), {0, 0.02});
  const auto file = target->open("a", OpenMode::create);
  expect_seconds(0.2, [&] {
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE((*file)->write(bytes_of("x"), i).is_ok());
      ASSERT_TRUE((*file)->sync().is_ok());
    }
  });
  EXPECT_LT(seconds([&] {
              ByteVector data(5);
              ASSERT_TRUE((*file)->read(data, 0).is_ok());
              ASSERT_TRUE((*file)->size().is_ok());
              ASSERT_TRUE((*file)->truncate(0).is_ok());
            }),
            0.02);
}

TEST(throttle, reads_are_slowed_if_asked_and_share_the_rate_with_writes) {
  expect_seconds(0.32, [&] {
    Throttle throttle{10e6, 0.02};
    throttle.reads = true;
    const auto target = throttled_target(memory_target(), throttle);
    const auto file = target->open("a", OpenMode::create);
    ByteVector data(1'000'000);
    ASSERT_TRUE((*file)->write(data, 0).is_ok());
    for (int i = 0; i < 2; ++i) {
      const auto count = (*file)->read(std::span(data).first(800'000), i);
      ASSERT_TRUE(count.is_ok());
      EXPECT_EQ(*count, 800'000);
    }
  });
}

TEST(throttle, threads_wait_for_latency_side_by_side) {
  const auto target = throttled_target(memory_target(), {0, 0.1});
  expect_seconds(0.1, [&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const auto file = target->open("f" + std::to_string(t), OpenMode::create);
        EXPECT_TRUE((*file)->write(bytes_of("x"), 0).is_ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(throttle, signals_do_not_shorten_the_wait) {
  struct sigaction quiet {};
  quiet.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &quiet, &before), 0);
  std::atomic<bool> done = false;
  const pthread_t writer = ::pthread_self();
  std::thread pest([&] {
    while (!done) {
      ::pthread_kill(writer, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  expect_seconds(0.2, [&] {
    const auto target = throttled_target(memory_target(), {10e6, 0});
    const auto file = target->open("a", OpenMode::create);
    const ByteVector data(2'000'000);
    ASSERT_TRUE((*file)->write(data, 0).is_ok());
  });
  done = true;
  pest.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(throttle, errors_pass_through) {
  const auto below = faulty_target(memory_target(), {1, Fault::no_space, set_of(Call::write)});
  const auto target = throttled_target(below, {1e9, 0});
  const auto file = target->open("a", OpenMode::create);
  EXPECT_EQ((*file)->write(bytes_of("x"), 0).code(), Code::space);
  EXPECT_TRUE((*file)->write(bytes_of("x"), 0).is_ok());
}

TEST(throttle_text, rates_and_latencies_are_read) {
  const std::tuple<const char*, double, double> good[] = {
      {"50MB/s", 50e6, 0},          {"50MB/s,2ms", 50e6, 2e-3},  {"1GiB/s", 1073741824.0, 0},
      {"0.5kB/s,1.5s", 500, 1.5},   {"3KiB/s,10us", 3072, 1e-5}, {"7B/s", 7, 0},
      {"2MiB/s,0ms", 2097152.0, 0}, {"1e3B/s", 1000, 0},         {"2GB/s", 2e9, 0},
  };
  for (const auto& [text, rate, latency] : good) {
    const auto throttle = parse_throttle(text);
    ASSERT_TRUE(throttle.is_ok()) << throttle.status().text();
    EXPECT_DOUBLE_EQ(throttle->bytes_per_second, rate) << text;
    EXPECT_DOUBLE_EQ(throttle->latency_seconds, latency) << text;
    EXPECT_FALSE(throttle->reads) << text;
    const auto both = parse_throttle(std::string(text) + ",reads");
    ASSERT_TRUE(both.is_ok()) << both.status().text();
    EXPECT_DOUBLE_EQ(both->latency_seconds, latency) << text;
    EXPECT_TRUE(both->reads) << text;
  }
}

TEST(throttle_text, anything_else_is_refused_with_an_example) {
  for (const char* text : {"",
                           "50",
                           "50MB",
                           "MB/s",
                           "50mb/s",
                           "-1MB/s",
                           "0MB/s",
                           "nanMB/s",
                           "infMB/s",
                           "50MB/s,",
                           "50MB/s,2",
                           "50MB/s,-2ms",
                           "50MB/s,2ms,3",
                           "50MB/s 2ms",
                           "reads",
                           ",reads",
                           "50MB/s,write",
                           "50MB/s,reads,2ms",
                           "50MB/s,2ms,reads,reads",
                           ",2ms",
                           "1e999MB/s"}) {
    const auto throttle = parse_throttle(text);
    ASSERT_FALSE(throttle.is_ok()) << text;
    EXPECT_EQ(throttle.status().code(), Code::settings);
    EXPECT_NE(throttle.status().text().find("\"50MB/s,2ms\""), std::string::npos) << throttle.status().text();
  }
}

}  // namespace
}  // namespace tailrace::storage
