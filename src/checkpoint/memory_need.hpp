// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "base/types.hpp"

namespace tailrace::checkpoint {

/// What a rank brings to a vote on memory.
struct MemoryNeed {
  std::int32_t node = 0;
  Bytes bytes = 0;      // that it will touch
  Bytes available = 0;  // on its node, before anybody touches anything
};
/// Whether each node has what its ranks need together: the same on every rank. Code::memory.
Status check_nodes(std::span<const MemoryNeed> needs);

}  // namespace tailrace::checkpoint
