// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.hpp"
#include "base/types.hpp"

namespace tailrace::node {

/// A rank's vote on memory.
struct MemoryNeed {
  std::int32_t node = 0;
  Bytes bytes = 0;      // that the rank will touch
  Bytes available = 0;  // on its node, before any rank touches anything
};
/// Local. Compares the sum of each node's needs with the memory available there, and returns the same Status
/// on every rank that passes the same needs. A node that lacks memory gives Code::memory. The text begins
/// with `who`, as "an asynchronous save captures", and ends with `way_out`: the setting that helps.
Status check_nodes(std::span<const MemoryNeed> needs, std::string_view who, std::string_view way_out);

}  // namespace tailrace::node
