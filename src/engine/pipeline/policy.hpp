// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>

#include "ground/base/waiting.hpp"

namespace tailrace::pipeline {

/// A stream's choices for full storage and late steps. The options of the stream set them, and every server
/// gets them as they are.
struct Policy {
  std::int64_t wait_for_space_seconds = 0;  // on_full=wait:DURATION; 0: fail at once
  /// Warn when a step is durable later than this after its end; 0: never.
  std::int64_t deadline_seconds = 0;

  /// Returns how long to wait for space, looking once in each `period`. More than 100 years are cut to those.
  [[nodiscard]] Patience patience_for_space(std::chrono::nanoseconds period) const {
    constexpr std::int64_t most = 100LL * 366 * 24 * 3600;
    return {Code::space, period, std::chrono::seconds(std::min(wait_for_space_seconds, most))};
  }
};
static_assert(std::has_unique_object_representations_v<Policy>);  // it is sent as it lies in memory

}  // namespace tailrace::pipeline
