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
  std::string group;         // empty: the ranks of the MPI job are one, or this process alone
  std::uint64_t memory = 0;  // 0: a quarter of the available memory
  std::uint64_t page = std::uint64_t{1} << 20;
  bool is_verbose = false;
};

/// Runs the command with the library preloaded. Waits until the command has ended and the bytes that it wrote
/// are stored. Returns the program's exit code as a shell does, or one of those in docs/run.md.
int launch(const Launch& plan);

/// Returns why the library cannot be preloaded into the program, in words, or an empty text if it can. `path`
/// may be a script.
std::string obstacle_of(const std::string& path);
/// Returns how many ranks or nodes show that the job of this process is on several nodes, in words, or an
/// empty text if it is on one.
std::string several_nodes();
/// Returns the group's name: for a rank of an MPI job the same name as for the job's other ranks on this
/// node, otherwise a name of this process alone. Returns an empty text if this is one of several ranks of an
/// unknown job.
std::string group_name();
/// Returns the name of the socket for a group. That is the group's name; or if this is longer than names of
/// sockets may be (unix(7)), its begin and its checksum.
std::string socket_name_of(const std::string& group);

}  // namespace tailrace::run
