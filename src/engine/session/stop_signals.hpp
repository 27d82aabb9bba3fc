// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "ground/settings/settings.hpp"

namespace tailrace::session {

/// Takes signals of this process as long as the object lives: the signals no longer end the process, but are
/// remembered. Only one object may live at a time. It takes signals that have their default action, and
/// signals that MPI itself handles; MPI's handler is then called too (MPICH takes USR1 in MPI_Init, to hear
/// of failed processes). A signal for which the program has its own handler is left alone.
class StopSignals {
 public:
  explicit StopSignals(const std::vector<Signal>& wanted);
  /// Puts back the earlier handlers, unless somebody has put another handler in our place.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Makes this process ignore the signals, except that MPI's handlers still get theirs. It is for servers,
  /// which stop when the compute ranks have left.
  void ignore();
  /// Returns the names of the signals received so far, as "SIGTERM, SIGUSR1".
  [[nodiscard]] std::string received() const;
  /// Returns the wanted signals that have another handler, and so do not stop the program.
  [[nodiscard]] const std::vector<Signal>& left_alone() const { return left_alone_; }

 private:
  std::vector<Signal> taken_;
  std::vector<Signal> left_alone_;
  bool ignoring_ = false;
};

}  // namespace tailrace::session
