// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <type_traits>

namespace tailrace::pipeline {

/// A stream's choices for full storage and late steps. The options of the stream set them, and every server
/// gets them as they are.
struct Policy {
  std::int64_t wait_for_space_seconds = 0;  // on_full=wait:DURATION; 0: fail at once
  /// Warn when a step is durable later than this after its end; 0: never.
  std::int64_t deadline_seconds = 0;
};
static_assert(std::has_unique_object_representations_v<Policy>);  // it is sent as it lies in memory

}  // namespace tailrace::pipeline
