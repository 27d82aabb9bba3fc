// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tailrace::run {

/// The options of `tailrace run`. Sizes are in bytes.
struct Launch {
  std::vector<std::string> patterns;
  std::vector<std::string> command;
  std::string group;         // empty: of the MPI job, or this process alone
  std::uint64_t memory = 0;  // 0: a quarter of what is available
  std::uint64_t page = std::uint64_t{1} << 20;
  bool is_verbose = false;
};

/// Runs the command with the library preloaded, and waits until it has ended and what it wrote is stored.
/// Returns the program's exit code as a shell does, or one of those in docs/run.md.
int launch(const Launch& plan);

/// Returns why the program cannot be preloaded, in words, or nothing. `path` may be a script.
std::string obstacle_of(const std::string& path);
/// Returns why the job of this process is not on one node, in words, or nothing.
std::string several_nodes();
/// Returns the name that the processes of an MPI job on this node have in common, or one of this process
/// alone; nothing if this is one of several ranks, and nobody knows of which job.
std::string group_name();
/// Returns the name of the socket for the group with this whole name: the name itself, or its begin and its
/// checksum if it is longer than names of sockets are (unix(7)).
std::string socket_name_of(const std::string& group);

}  // namespace tailrace::run
