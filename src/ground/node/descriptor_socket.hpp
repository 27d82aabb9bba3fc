// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ground/base/status.hpp"

namespace tailrace::node {

/// Passes a memfd from one process of a node to others, over a socket in the abstract namespace whose name is
/// a random token (SCM_RIGHTS, unix(7)). Unlike pidfd_getfd(2) and /proc/PID/fd this needs no right over the
/// other process, and no common namespace of processes. All functions are local. None waits, except answer(),
/// await() and connect() as they say.
class DescriptorSocket {
 public:
  using Clock = std::chrono::steady_clock;
  /// The longest time for which a rank waits for another rank to send or take the descriptor.
  static constexpr std::chrono::seconds limit{60};

  /// `name` names the memory in texts of errors. It must outlive this object.
  explicit DescriptorSocket(std::string_view name) : name_(name) {}
  ~DescriptorSocket() { hang_up(); }
  DescriptorSocket(const DescriptorSocket&) = delete;
  DescriptorSocket& operator=(const DescriptorSocket&) = delete;

  // For the process that has the descriptor.
  /// Opens the socket. The caller tells the other processes its token().
  Status listen();
  [[nodiscard]] std::uint64_t token() const { return token_; }
  [[nodiscard]] bool is_listening() const { return listener_ >= 0; }
  /// Gives `descriptor` to all processes of the same user that have connected. If none has, waits until
  /// `deadline` for the first, and returns Code::timeout if none came.
  Status answer(int descriptor, Clock::time_point deadline);
  /// Returns how many processes have got the descriptor.
  [[nodiscard]] int given() const { return given_; }
  /// Returns the user of a process that was turned away because it belongs to another user, if there was one.
  /// A process that was turned away does not connect again.
  [[nodiscard]] std::optional<uid_t> other_user() const { return other_user_; }

  // For the processes that get the descriptor.
  /// Connects to the process whose token is given. Waits only if more processes have connected and not been
  /// answered yet than the system queues (somaxconn).
  Status connect(std::uint64_t token);
  [[nodiscard]] bool has_connected() const { return socket_ >= 0; }
  /// Waits until `deadline` for the answer. Returns Code::timeout if it has not arrived.
  Status await(Clock::time_point deadline) const;
  /// Returns the descriptor, which the caller then owns. Call it once await() has returned success.
  Result<int> take() const;

  /// Closes the sockets. Every process that still waits for this one then learns that nothing will come.
  void hang_up();

 private:
  Result<int> accept_own();
  Status send(int socket, int descriptor) const;

  std::string_view name_;
  int listener_ = -1;
  int socket_ = -1;
  int given_ = 0;
  std::optional<uid_t> other_user_;
  std::uint64_t token_ = 0;
};

}  // namespace tailrace::node
