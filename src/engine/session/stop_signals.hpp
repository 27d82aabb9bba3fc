// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "ground/base/settings.hpp"

namespace tailrace::session {

/// Takes signals of this process, as long as it lives: they no longer end it, but are remembered. One at a
/// time. Only signals with their default action are taken, and those that MPI itself handles. MPI's handler
/// is then called too (MPICH takes USR1 in MPI_Init, to hear of failed processes). A program's own handler
/// stays.
class StopSignals {
 public:
  explicit StopSignals(const std::vector<Signal>& wanted);
  /// Puts back the earlier handlers, unless somebody has put another handler in our place.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Makes the signals end no process and reach nobody. It is for servers, which stop when the compute ranks
  /// have left.
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
