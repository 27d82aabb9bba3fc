// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.hpp"
#include "base/types.hpp"

namespace tailrace::comm {

/// What a rank brings to a vote on memory.
struct MemoryNeed {
  std::int32_t node = 0;
  Bytes bytes = 0;      // that it will touch
  Bytes available = 0;  // on its node, before anybody touches anything
};
/// Whether each node has what its ranks need together: the same on every rank. Code::memory, whose text says
/// `who` takes the memory, as "an asynchronous save captures", and the `way_out`.
Status check_nodes(std::span<const MemoryNeed> needs, std::string_view who, std::string_view way_out);

}  // namespace tailrace::comm
