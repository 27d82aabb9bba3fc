// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "ground/base/log.hpp"
#include "ground/comm/counters/blocking_call.hpp"

namespace tailrace::comm {
namespace {

TEST(RepeatedCall, that_does_not_end_is_told_and_many_that_end_are_not) {
  set_log_level(LogLevel::warn);
  testing::internal::CaptureStderr();
  {
    RepeatedCall hanging("rank 3", "a call", {1, std::nullopt});
    RepeatedCall ending("rank 4", "calls", {1, std::nullopt});
    hanging.begin();
    for (int i = 0; i < 23; ++i) {  // a watch sees in its second look that a call has not ended
      ending.begin();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ending.end();
    }
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("rank 3 has waited 1 s for a call"), std::string::npos) << told;
  EXPECT_EQ(told.find("rank 4"), std::string::npos) << told;
}

}  // namespace
}  // namespace tailrace::comm
