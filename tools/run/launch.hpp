// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tailrace::run {

struct Launch {
  std::vector<std::string> patterns;
  std::vector<std::string> command;
  std::string group;         // empty: of the MPI job, or this process alone
  std::uint64_t memory = 0;  // 0: a quarter of what is available
  std::uint64_t page = std::uint64_t{1} << 20;
  bool is_verbose = false;
};

/// Runs the command with the library preloaded, and waits until it has ended and what it wrote is stored.
/// Returns the exit code of the shell.
int launch(const Launch& plan);

/// Returns why the program cannot be preloaded, in words, or nothing. `path` may be a script.
std::string obstacle_of(const std::string& path);
/// Returns why the job of this process is not on one node, in words, or nothing.
std::string several_nodes();
/// Returns the name that the processes of an MPI job on this node have in common, or of this process alone.
std::string group_name();

}  // namespace tailrace::run
