// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "engine/session/stop_clock.hpp"
#include "engine/session/stop_signals.hpp"
#include "ground/settings/settings.hpp"

namespace tailrace::session {

/// The reasons for which the program saves and stops: signals, which any rank may receive alone, and the
/// clock and the halt file, at which rank 0 alone looks. Each rank votes with its reason, and all conclude
/// the same.
class Stops {
 public:
  /// From here on the signals of the settings no longer end this process.
  explicit Stops(const Settings& settings);

  /// Makes a server ignore the signals: servers stop when the compute ranks have left.
  void ignore_signals() { signals_.ignore(); }
  /// Logs which signals cannot stop the program.
  void tell_left_alone() const;
  /// Notes how long a save has taken on this rank.
  void note_save_seconds(double seconds) { clock_.saved(seconds); }

  /// Returns what compute rank `me` brings to the vote at the end of a step.
  ByteVector vote(int me);
  /// Concludes from the votes of all ranks, by rank. The result is the same on each.
  bool conclude(const std::vector<ByteVector>& votes, int me);
  [[nodiscard]] bool is_stopping() const { return stopping_; }
  /// Returns why the program is to stop, or "".
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  [[nodiscard]] double now() const;
  [[nodiscard]] std::string why(int me);
  [[nodiscard]] bool halt_file_exists();

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  StopClock clock_;
  StopSignals signals_;
  std::string halt_file_;
  std::optional<double> looked_for_file_;
  double told_save_ = 0;
  bool stopping_ = false;
  std::string reason_;
};

}  // namespace tailrace::session
