// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "node/memory_need.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"

namespace tailrace::node {

Status check_nodes(std::span<const MemoryNeed> needs, std::string_view who, std::string_view way_out) {
  struct Node {
    int ranks = 0;
    Bytes bytes = 0;
    Bytes available = 0;
  };
  std::map<std::int32_t, Node> nodes;
  for (const MemoryNeed& need : needs) {
    if (need.bytes == 0) continue;
    Node& node = nodes[need.node];
    node.available = node.ranks == 0 ? need.available : std::min(node.available, need.available);
    node.bytes += need.bytes;
    ++node.ranks;
  }
  for (const auto& [number, node] : nodes) {
    if (node.bytes <= node.available) continue;
    return {Code::memory,
            cat(who, " ", counted(node.bytes, "byte"), " on the node of rank ", number, " (",
                counted(node.ranks, "rank"), "), of which ", node.available, " are to be had: ", way_out)};
  }
  return {};
}

}  // namespace tailrace::node
