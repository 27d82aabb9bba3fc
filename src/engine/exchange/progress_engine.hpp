// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "ground/comm/switchboard.hpp"

namespace tailrace::exchange {

class Requests;

/// Moves on the requests of all shared files and global arrays of a process, and the answers to them: in
/// every pass of the switchboard, and on a service thread if MPI provides MPI_THREAD_MULTIPLE
/// (MPI 3.1, 12.4.3). With the thread this rank answers while the program computes or is inside MPI.
///
/// No message wakes the service thread: it looks for requests, and sleeps between two looks, briefly while
/// requests come, longer and longer while none come. A server that answers for the ranks of its node has no
/// service thread: its own loop looks as often.
class ProgressEngine {
 public:
  /// `board` must outlive it. `may_have_threads` is false if the program wants none.
  ProgressEngine(comm::Switchboard& board, bool may_have_threads)
      : board_(board), may_have_threads_(may_have_threads) {}
  /// Ends the thread. No requests may be open. The switchboard drops requests and answers that come later.
  ~ProgressEngine();
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  [[nodiscard]] comm::Switchboard& board() { return board_; }
  /// A thread moves requests on only with this lock. Nobody waits for another rank while holding it.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }
  [[nodiscard]] bool has_thread() const { return thread_.joinable(); }
  /// Returns how long a thread that does nothing but move requests on may sleep before its next look: briefly
  /// while requests come.
  [[nodiscard]] std::chrono::nanoseconds next_look() const;

 private:
  friend class Requests;
  /// The line of a group, and the number of the file or array among those of the group.
  using Address = std::pair<comm::LineNumber, std::uint64_t>;
  void open(const Address& address, Requests& requests);
  void close(const Address& address, const Requests& requests);
  void start_once();
  void deliver(comm::Envelope envelope);
  /// Logs who answers other nodes, once.
  void say_how(int nodes_with_server, int nodes);
  bool pump();
  bool move_on();
  void run();
  bool look();
  void set_idle(bool is_idle);

  comm::Switchboard& board_;
  const bool may_have_threads_;
  std::mutex mutex_;
  // On a server, groups that have no rank in common may use the same line's number.
  std::multimap<Address, Requests*> open_;
  std::atomic<std::int64_t> moved_at_{0};  // by the clock of the transport
  int work_ = 0;
  bool is_started_ = false;
  bool is_told_ = false;
  std::thread thread_;
  std::mutex rest_;  // guards the members below
  std::condition_variable wake_;
  bool is_idle_ = true;  // no requests are open
  bool is_ending_ = false;
};

}  // namespace tailrace::exchange
