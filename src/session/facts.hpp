// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/settings.hpp"
#include "executor/executor.hpp"
#include "session/select.hpp"
#include "session/stops.hpp"
#include "storage/target.hpp"

namespace tailrace::session {

/// A rank knows this before its session begins: Bootstrap finds it out by MPI.
struct Facts {
  int rank = 0;  // of the caller, in the transport
  Settings settings;
  std::vector<RankFacts> ranks;
  std::vector<char> serves;                  // by rank: whether it is a server
  std::shared_ptr<storage::Target> storage;  // nullptr: what the settings name
  std::unique_ptr<Stops> stops;              // takes signals from before the ranks first wait for each other
  /// Makes what runs the jobs of a server, `computing` of those that compute at a time. `wake` is to be
  /// called behind each. Empty: threads.
  std::function<std::unique_ptr<executor::Executor>(int computing, std::function<void()> wake)> make_executor;
};

}  // namespace tailrace::session
