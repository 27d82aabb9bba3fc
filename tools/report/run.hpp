// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// What the file that TAILRACE_REPORT names says of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/status.hpp"

namespace tailrace::reports {

/// How a run stands. Reports of versions before 2 do not say.
enum class State { unknown, running, ended, failed };

/// A figure of several ranks or steps.
struct Spread {
  double sum = 0;
  double median = 0;
  double p99 = 0;
  double most = 0;
  double count = 0;
};

/// Seconds by the names of routines, in the order of the file.
using Seconds = std::vector<std::pair<std::string, double>>;

struct Process {
  std::int64_t rank = 0;
  std::string role;
  std::int64_t node = 0;
  double threads = 0;   // that work for the rank
  double encoders = 0;  // those of them that encode; all, if the report does not say
  double elapsed = 0;
  Seconds routines;         // of the rank's own thread
  Seconds thread_routines;  // summed over its worker threads
};

struct Stream {
  std::string name;
  double steps = 0;
  std::string method;  // "": the stream is read
  std::string method_chosen;
  std::string writes_by;
  std::string offsets;
  bool is_input = false;
  double gets_in_memory = 0;
  double gets_late = 0;
  double records_read = 0;
  double bytes_read = 0;
  Spread get_wait;
  double records = 0;
  double bytes_captured = 0;
  double bytes_written = 0;
  Spread blocked;
  Spread capture;
  Spread staging_full;
  double staging_full_count = 0;
  Spread skew;
  Spread assemble;
  Spread encode;
  Spread write;
  Spread fsync;
  Spread commit;
  double waits_for_space = 0;
  Spread durable;  // seconds from a step's end to durable
  std::optional<double> files;
  std::optional<double> durable_steps;
  std::optional<double> durable_bytes;
  double failed_steps = 0;
  std::optional<double> bytes_staged_per_step;
  std::string last_durable;
};

struct Run {
  std::string path;
  std::int64_t version = 1;
  std::string tailrace;
  State state = State::unknown;
  std::string begun;
  std::string written;
  std::string error;    // of a run that failed
  std::string stopped;  // why the program was told to stop
  std::optional<double> elapsed;
  double nodes = 1;
  double compute_ranks = 0;
  double servers = 0;
  std::optional<double> staging_bytes;       // of a node
  std::optional<double> staging_used_bytes;  // of a node, while the run is running
  std::vector<Process> processes;
  std::vector<Stream> streams;
  std::vector<std::string> missing;  // what this report does not have, for people
};

/// The newest version of reports that this command knows.
inline constexpr std::int64_t newest_version = 2;

/// Local. Reads the report at `path`, which may be a pipe. Returns Code::io if there is none, Code::format if
/// the file is no report, and Code::corrupt if it ends in the middle.
Result<Run> read_run(const std::string& path);
/// The two halves of read_run(). With Reads::files, pipes and devices are refused: reading them may block.
enum class Reads { files, all };
Result<std::string> read_text(const std::string& path, Reads reads);
Result<Run> parse_run(const std::string& path, const std::string& text);

/// Returns "running", "ended", "failed" or "unknown".
std::string_view name_of(State state);
/// Returns the seconds since the report was written, by the clock of this machine: never below 0, and nothing
/// if the report does not say.
std::optional<double> age_of(const Run& run);

}  // namespace tailrace::reports
