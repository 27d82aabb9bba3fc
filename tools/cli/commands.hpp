// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <CLI/CLI.hpp>
#include <exception>

#include "ground/base/status.hpp"
#include "ground/base/time_axis.hpp"

namespace tailrace::cli {

/// The exit codes of the command for its shell. Documented in --help and docs/cli.md: append only.
enum Exit : int {
  done = 0,       // for wait: the step is durable
  failed = 1,     // storage failed, or the file is locked
  usage = 2,      // the command line makes no sense
  timed_out = 3,  // wait: not durable within the timeout
  corrupt = 4,    // an index or its data contradict themselves
  ended = 5,      // wait: the file was closed, and the step is not in it
};

// Each function adds one subcommand to `app`. If the user has chosen it, its callback writes the exit code to
// `exit`.
void add_checkpoint(CLI::App& app, int& exit);  // its exit codes are those of checkpoint.hpp
void add_wait(CLI::App& app, int& exit);
void add_dvm(CLI::App& app, int& exit);  // the translator ends with its own exit codes
void add_index(CLI::App& app, int& exit);
void add_options(CLI::App& app, int& exit);
void add_plan(CLI::App& app, int& exit);
/// Checks a description of streams, and prints what it writes. `given` are the options of
/// tr_streams_configure.
Status print_streams(const std::string& path, const std::string& given);
void add_repair(CLI::App& app, int& exit);
void add_report(CLI::App& app, int& exit);
void add_run(CLI::App& app, int& exit);
void add_run_state(CLI::App& app, int& exit);  // its exit codes are those of run_state.cpp
void add_settings(CLI::App& app, int& exit);
void add_top(CLI::App& app, int& exit);
void add_verify(CLI::App& app, int& exit);

/// Returns what `work` returns; an exception of it becomes an error. By then `work` has given back what it
/// has taken, as a terminal.
template <typename Work>
auto guarded(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return Status(Code::io, error.what());
  }
}

/// Prints the error of `command` to standard error. Returns the exit code that fits it.
int report(const char* command, const Status& status);

/// The columns of the terminal that standard output is, and otherwise as many as a page or a file suits.
std::size_t width_of_output();
/// Returns a text such as "6h", "1h30m" or "0s".
std::string duration_text(std::int64_t seconds);
/// Returns "lead 6h" or "time 0.667 s".
std::string at_text(const TimeAxis& times, std::int64_t lead);
/// Returns the data file if `path` is that of its index, and otherwise `path`, without slashes at its end.
std::string data_path_of(std::string path);

}  // namespace tailrace::cli
