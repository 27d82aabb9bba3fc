// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The figures of a run: for each role and routine the seconds of its processes, and what the streams sum up
// to.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "routines.hpp"
#include "run.hpp"

namespace tailrace::reports {

/// The seconds of one routine over the processes of a role.
struct RoutineFigures {
  std::string name;
  Kind kind = Kind::work;
  double sum = 0;
  double share = 0;  // of the time of the role
  double least = 0;
  double median = 0;
  double most = 0;
};

/// Where the time of a role went: that of its ranks' own threads, or of their worker threads.
struct RoleFigures {
  std::string role;         // as in the report
  bool of_threads = false;  // the worker threads
  double processes = 0;
  double threads = 0;
  double seconds = 0;  // that the threads have lived
  std::vector<RoutineFigures> routines;

  /// Returns "compute ranks", "servers", "threads of servers".
  [[nodiscard]] std::string title() const;
  /// Returns the mean of a routine's seconds over the processes.
  [[nodiscard]] double mean(const RoutineFigures& routine) const {
    return processes > 0 ? routine.sum / processes : 0;
  }
  /// Returns the seconds of all routines of a kind.
  [[nodiscard]] double of(Kind kind) const;
};

/// Returns the figures of all roles: compute ranks first, and each role's threads behind it.
std::vector<RoleFigures> figures_of(const Run& run);

/// True of ranks that the program runs on, and of those that serve. With 0 servers a rank is both.
bool computes(const Process& process);
bool serves(const Process& process);

/// Seconds among the seconds that threads have lived.
struct Share {
  double seconds = 0;
  double of = 0;
  double processes = 0;
  [[nodiscard]] double value() const { return of > 0 ? seconds / of : 0; }
  /// Returns the mean of a process.
  [[nodiscard]] double mean() const { return processes > 0 ? seconds / processes : 0; }
};
/// Returns the seconds of the named routines in the own threads, or in the worker threads, of the processes
/// for which `chosen` is true.
Share share_of(const Run& run, bool (*chosen)(const Process&), bool of_threads,
               std::initializer_list<std::string_view> names);
/// Returns the same of one process.
Share share_of(const Process& process, bool of_threads, std::initializer_list<std::string_view> names);

/// Return how busy the threads that encode were, and those that write: a server has some for each. Where the
/// report does not tell them apart, they are all its threads.
Share encoding_of(const Process& server);
Share storing_of(const Process& server);
/// Returns how busy a server was, from 0 to 1: the busiest of its own thread, the threads that encode and
/// those that write.
double load_of(const Process& server);

/// What the streams of a run sum up to.
struct Totals {
  double streams = 0;  // that are written
  double inputs = 0;   // that are read
  std::optional<double> files;
  double steps = 0;
  std::optional<double> durable_steps;
  double bytes_captured = 0;
  double bytes_written = 0;
  double bytes_durable = 0;  // what was written, if the report does not say
  double failed_steps = 0;
  double bytes_read = 0;
  double staged_per_step = 0;  // bytes that all ranks stage in a step of all streams
  double blocked = 0;          // seconds that a compute rank was in calls of the library, in the mean
};
Totals totals_of(const Run& run);

}  // namespace tailrace::reports
