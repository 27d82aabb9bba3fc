// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ground/base/status.hpp"

namespace tailrace::node {

/// The way of a memfd from one process of a node to others: a socket in the abstract namespace, whose name is
/// a random token (SCM_RIGHTS, unix(7)). It needs no right over the other process, which pidfd_getfd(2) and
/// /proc/PID/fd do, and no common namespace of processes. All functions are local. None waits, but for
/// give() and connect() as they say.
class Handover {
 public:
  using Clock = std::chrono::steady_clock;
  /// The longest time for which a rank waits for another one while the memory is handed over.
  static constexpr std::chrono::seconds limit{60};

  /// `name` is that of the memory, for texts of errors.
  explicit Handover(std::string_view name) : name_(name) {}
  ~Handover() { hang_up(); }
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  // The process that has the descriptor.
  /// Opens the socket, whose token() the others are to be told.
  Status listen();
  [[nodiscard]] std::uint64_t token() const { return token_; }
  [[nodiscard]] bool is_listening() const { return listener_ >= 0; }
  /// Gives `descriptor` to the processes of the same user that have connected, after waiting until `deadline`
  /// for the first. Returns Code::timeout if none came.
  Status answer(int descriptor, Clock::time_point deadline);
  /// Returns the number of processes that have got it.
  [[nodiscard]] int given() const { return given_; }
  /// Returns the user of a process that was turned away because it is not this one's, if there was one. Such
  /// a process does not come again.
  [[nodiscard]] std::optional<uid_t> other_user() const { return other_user_; }

  // The others.
  /// Waits only if more processes have connected, and not been answered yet, than the system queues
  /// (somaxconn).
  Status connect(std::uint64_t token);
  [[nodiscard]] bool has_connected() const { return socket_ >= 0; }
  /// Waits until `deadline` for the answer. Returns Code::timeout if it has not come.
  Status await(Clock::time_point deadline) const;
  /// Returns the descriptor, which the caller owns. Call it when await() has returned success.
  Result<int> take() const;

  /// Every process that still waits for this one learns that nothing comes.
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
