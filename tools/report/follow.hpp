// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "ground/base/status.hpp"
#include "run.hpp"

namespace tailrace::reports {

struct FollowRequest {
  std::string path;
  bool lines = false;     // lines in place of a screen that is drawn anew
  bool waits = false;     // for a file that is not there yet, or is of a run that has ended
  double interval = 1.0;  // seconds between two looks
};

/// How following a job ended.
struct Followed {
  State state = State::unknown;  // ended or failed; unknown: the user ended it
  int signal = 0;                // that ended it
};

/// Local. Blocks until the job has ended or failed, or the user ends it. Draws on the terminal or prints
/// lines meanwhile. Returns an error if there is no report, or none that can be read for some seconds, or if
/// the lines cannot be printed.
Result<Followed> follow(const FollowRequest& request);

}  // namespace tailrace::reports
