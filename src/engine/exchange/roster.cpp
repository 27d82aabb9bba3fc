// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/roster.hpp"

#include <map>

namespace tailrace::exchange {

void assign_homes(Roster& roster) {
  std::map<int, std::vector<int>> servers_of_node;
  for (int s = 0; s < roster.servers(); ++s) {
    servers_of_node[roster.server_node[static_cast<std::size_t>(s)]].push_back(s);
  }
  std::map<int, std::size_t> next;
  std::size_t next_remote = 0;
  roster.home.clear();
  roster.shares_node.clear();
  for (int c = 0; c < roster.computes(); ++c) {
    const int node = roster.compute_node[static_cast<std::size_t>(c)];
    const auto local = servers_of_node.find(node);
    if (local != servers_of_node.end()) {
      roster.home.push_back(local->second[next[node]++ % local->second.size()]);
      roster.shares_node.push_back(1);
    } else {
      roster.home.push_back(static_cast<int>(next_remote++ % roster.server_transport.size()));
      roster.shares_node.push_back(0);
    }
  }
}

}  // namespace tailrace::exchange
