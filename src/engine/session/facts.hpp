// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/session/select.hpp"
#include "engine/session/stops.hpp"
#include "ground/comm/collective/collective_files.hpp"
#include "ground/comm/counters/counters.hpp"
#include "ground/comm/exposed/exposed_memory.hpp"
#include "ground/comm/transport.hpp"
#include "ground/executor/executor.hpp"
#include "ground/settings/settings.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::session {

/// The facts that a rank knows before its session begins. Bootstrap finds them out by MPI.
struct Facts {
  int rank = 0;  // of the caller, in the transport
  Settings settings;
  std::vector<RankFacts> ranks;
  std::vector<char> serves;                  // by rank: 1 if it is a server
  std::shared_ptr<storage::Target> storage;  // nullptr: the storage that the settings name
  std::unique_ptr<Stops> stops;              // takes signals from before the ranks first wait for each other
  /// Makes the executor for the jobs of a server, with `computing` workers that compute. The executor calls
  /// `wake` after each job. If this function is empty, the session makes threads that run the jobs.
  std::function<std::unique_ptr<executor::Executor>(int computing, std::function<void()> wake)> make_executor;
  /// The means of this rank to take part in collective calls of a method (pipeline::Method::is_collective).
  struct Collective {
    /// Makes the files that the servers write together; called on servers alone. Their thread calls `wake`
    /// after each call.
    std::function<Result<std::unique_ptr<comm::CollectiveFiles>>(std::function<void()> wake)> make;
    std::string missing;                // why there are none; "" if there are
    bool needs_files_of_system = true;  // false: they write to any storage
  } collective;
  /// Makes the counters to which servers add without each other's help, over the `transport` of the session,
  /// or returns why there are none. Called on all servers or on none, if there are several; may block until
  /// all servers have called it. The counters call `wake` when an add is made that was not made at once.
  std::function<Result<std::unique_ptr<comm::Counters>>(comm::Transport& transport,
                                                        std::function<void()> wake)>
      make_counters;
  /// Makes memory that ranks expose and servers get from, over the `transport` of the session, or returns why
  /// there is none. Collective over all ranks, once at most; may block until all have called it. Each rank
  /// exposes `bytes`, and gets from the ranks of the transport in `from`. The memory calls `wake` when a get
  /// is over that was not over at once.
  std::function<Result<std::unique_ptr<comm::ExposedMemory>>(
      comm::Transport& transport, Bytes bytes, std::vector<int> from, std::function<void()> wake)>
      make_exposed;
  /// True if the session's only server may be replaced (Serving::replace). The lanes then keep the
  /// definitions and steps that another server needs.
  bool keeps_steps = false;
};

}  // namespace tailrace::session
