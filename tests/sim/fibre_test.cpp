// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Fibres: programs on stacks of their own.
#include "ground/sim/fibre.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tailrace::sim {
namespace {

/// Uses about `kib` of stack, and pauses at the deepest point.
int pause_deep(Fibre& fibre, int kib) {
  std::array<volatile char, 1024> frame{};
  frame[0] = static_cast<char>(kib);
  if (kib <= 1) {
    fibre.pause();
    return frame[0];
  }
  return pause_deep(fibre, kib - 1) + frame[0] - static_cast<char>(kib) + 1;
}

TEST(sim_fibre, a_program_goes_on_where_it_paused) {
  std::vector<std::string> steps;
  std::vector<std::unique_ptr<Fibre>> fibres;
  for (const char* const name : {"a", "b"}) {
    fibres.push_back(std::make_unique<Fibre>([&steps, &fibres, name, number = fibres.size()] {
      for (int step = 0; step < 3; ++step) {
        steps.push_back(name + std::to_string(step));
        EXPECT_EQ(pause_deep(*fibres[number], 40), 40);
      }
    }));
  }
  while (!fibres[0]->is_done()) {
    for (const auto& each : fibres) each->resume();
  }
  EXPECT_TRUE(fibres[1]->is_done());
  EXPECT_EQ(steps, (std::vector<std::string>{"a0", "b0", "a1", "b1", "a2", "b2"}));
}

TEST(sim_fibre, what_a_program_throws_comes_out_of_resume) {
  Fibre fibre([] { throw std::runtime_error("from inside"); });
  try {
    fibre.resume();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from inside");
  }
  EXPECT_TRUE(fibre.is_done());
}

TEST(sim_fibre, a_failed_check_inside_is_recorded) {
  static Fibre* running = nullptr;
  EXPECT_NONFATAL_FAILURE(
      {
        Fibre fibre([] {
          running->pause();
          EXPECT_EQ(1, 2);
        });
        running = &fibre;
        fibre.resume();
        fibre.resume();
      },
      "Expected equality");
}

TEST(sim_fibre, programs_that_pause_while_they_handle_an_exception_keep_their_own) {
  std::vector<std::unique_ptr<Fibre>> fibres;
  for (int number = 0; number < 3; ++number) {
    fibres.push_back(std::make_unique<Fibre>([&fibres, number] {
      Fibre& me = *fibres[static_cast<std::size_t>(number)];
      try {
        throw number;
      } catch (int) {
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        me.pause();
        try {
          throw;  // the one that this program handles
        } catch (int again) {
          EXPECT_EQ(again, number);
        }
        me.pause();
      }
    }));
  }
  for (const auto& each : fibres) each->resume();
  EXPECT_EQ(std::current_exception(), nullptr);
  for (const auto& each : fibres) each->resume();
  for (const auto& each : fibres) each->resume();
  for (const auto& each : fibres) EXPECT_TRUE(each->is_done());
}

TEST(sim_fibre, a_program_that_never_ends_is_unwound_with_its_fibre) {
  auto owned = std::make_shared<int>(0);
  for (const bool swallows : {false, true}) {
    std::unique_ptr<Fibre> fibre;
    fibre = std::make_unique<Fibre>([&fibre, &owned, swallows] {
      const std::shared_ptr<int> mine = owned;
      Fibre& me = *fibre;
      try {
        me.pause();
      } catch (...) {
        if (!swallows) throw;
      }
      for (;;) me.pause();
    });
    fibre->resume();
    EXPECT_EQ(owned.use_count(), 2);
    delete fibre.release();
    EXPECT_EQ(owned.use_count(), 1);
  }
  const Fibre never_started([] { ADD_FAILURE(); });
}

TEST(sim_fibre, two_thousand_programs_pause_at_once_and_take_little_memory) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "thread sanitizer keeps 1 MB for each fibre";
#endif
  const auto resident_kib = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
    }
    return 0L;
  };
  constexpr std::size_t ranks = 2048;
  const long before = resident_kib();
  std::vector<std::unique_ptr<Fibre>> fibres;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    fibres.push_back(std::make_unique<Fibre>([&fibres, rank] { pause_deep(*fibres[rank], 16); }));
    fibres.back()->resume();
  }
  const long used = resident_kib() - before;
  RecordProperty("resident_kib", std::to_string(used));
  EXPECT_GT(used, 0);
  EXPECT_LT(used, 256 * 1024) << "not half of the stacks' size";
  for (const auto& each : fibres) each->resume();
  for (const auto& each : fibres) EXPECT_TRUE(each->is_done());
}

}  // namespace
}  // namespace tailrace::sim
