// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "base/settings.hpp"

namespace tailrace::session {

/// Signals of this process that no longer end it, but are kept in mind, as long as this lives. One at a time.
/// Only signals with their default action are taken, and those that MPI itself handles, whose handler is then
/// called too (MPICH takes USR1 in MPI_Init, to hear of failed processes): a program's own handler stays.
class StopSignals {
 public:
  explicit StopSignals(const std::vector<Signal>& wanted);
  /// Puts back what was there, unless somebody has put another handler in our place.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signals end nobody, and nobody hears of them: for servers, which stop when the compute ranks have
  /// left.
  void ignore();
  /// The names of those received so far, as "SIGTERM, SIGUSR1".
  [[nodiscard]] std::string received() const;
  /// Those wanted that have another handler, and so do not stop the program.
  [[nodiscard]] const std::vector<Signal>& left_alone() const { return left_alone_; }

 private:
  std::vector<Signal> taken_;
  std::vector<Signal> left_alone_;
  bool ignoring_ = false;
};

}  // namespace tailrace::session
