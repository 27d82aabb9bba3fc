// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A running job between two looks at its report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run.hpp"

namespace tailrace::reports {

/// Two reports of the same run, the second later.
struct Moment {
  Run now;
  std::optional<Run> before;  // nothing: this is the first look
  double age_seconds = 0;     // since the report was written
  /// What the processes did since the look before. Those without news are left out; a role of which none has
  /// any keeps what it did when it had. At the first look: since the run began.
  std::vector<Process> recent;

  /// Makes the moment of a new report after an earlier moment, if there was one.
  static Moment after(std::optional<Moment> earlier, Run now, double age_seconds);

  /// Returns the seconds of the run between the two; 0 if there are none.
  [[nodiscard]] double passed() const;
};

/// Returns what `top` draws on a terminal of so many columns.
std::vector<std::string> frame_of(const Moment& moment, std::size_t width);
/// Returns what `top` prints in one line.
std::string line_of(const Moment& moment);
/// Returns what `top` leaves behind when the run is over, in lines of at most `width` characters.
std::string farewell_of(const Run& run, std::size_t width);

}  // namespace tailrace::reports
