// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

namespace tailrace::exchange {

/// The compute ranks and servers of a session, each numbered from 0. With 0 server ranks every compute rank
/// is its own server (`self_served`).
struct Roster {
  std::vector<int> compute_transport;  // transport rank of compute rank c
  std::vector<int> server_transport;   // transport rank of server s
  std::vector<int> compute_node;       // node of compute rank c
  std::vector<int> server_node;        // node of server s
  std::vector<int> home;               // the server that compute rank c reports to
  std::vector<char> shares_node;       // 1 if c's lane lies in memory that the servers of its node map
  bool self_served = false;

  [[nodiscard]] int computes() const { return static_cast<int>(compute_transport.size()); }
  [[nodiscard]] int servers() const { return static_cast<int>(server_transport.size()); }
  /// Returns true if `server` reads the lane of compute rank `c` in place.
  [[nodiscard]] bool sees(int server, int c) const {
    const auto i = static_cast<std::size_t>(c);
    if (shares_node[i] != 0) return server_node[static_cast<std::size_t>(server)] == compute_node[i];
    return home[i] == server;
  }
  /// Returns the compute ranks whose home is `server`.
  [[nodiscard]] std::vector<int> homed(int server) const {
    std::vector<int> list;
    for (int c = 0; c < computes(); ++c) {
      if (home[static_cast<std::size_t>(c)] == server) list.push_back(c);
    }
    return list;
  }
};

/// Gives every compute rank a home: a server of its own node, in turn. A rank whose node has no server gets
/// one of all servers, in turn, and sends its data as messages.
void assign_homes(Roster& roster);

}  // namespace tailrace::exchange
