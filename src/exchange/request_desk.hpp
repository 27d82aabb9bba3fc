// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "comm/switchboard.hpp"

namespace tailrace::exchange {

class Requests;

/// Moves on the requests of all shared files and global arrays of a process, and the answers to them, in
/// every pass of the switchboard.
class RequestDesk {
 public:
  /// `board` must outlive it.
  explicit RequestDesk(comm::Switchboard& board) : board_(board) {}
  RequestDesk(const RequestDesk&) = delete;
  RequestDesk& operator=(const RequestDesk&) = delete;

  [[nodiscard]] comm::Switchboard& board() { return board_; }
  /// Guards what whoever moves requests on uses. Nobody waits for another rank while it has it.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

 private:
  friend class Requests;
  /// The line of a group, and the number of the file or array among those of the group.
  using Address = std::pair<comm::LineNumber, std::uint64_t>;
  void open(const Address& address, Requests& requests);
  void close(const Address& address);
  bool pump();
  bool move_on();

  comm::Switchboard& board_;
  std::mutex mutex_;
  std::map<Address, Requests*> open_;
  int work_ = 0;
};

}  // namespace tailrace::exchange
