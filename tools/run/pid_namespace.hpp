// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdio>
#include <cstring>
#include <string>

namespace tailrace::run {

/// Returns in how many PID namespaces a process has a number, as a file of /proc says (proc(5), NSpid): 0 if
/// it does not say, -1 with errno if it cannot be opened.
inline int numbers_in(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return -1;
  int numbers = 0;
  char line[512];
  while (numbers == 0 && std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::strncmp(line, "NSpid:", 6) != 0) continue;
    for (const char* at = line; (at = std::strchr(at, '\t')) != nullptr; ++at) ++numbers;
  }
  std::fclose(file);
  return numbers;
}

/// Returns the same for a process that can be seen from here. One with more numbers than the caller is in a
/// PID namespace below. `process_descriptor` is of pidfd_open(2), or -1.
inline int numbers_of(int process, int process_descriptor) {
  return numbers_in(process_descriptor >= 0 ? "/proc/self/fdinfo/" + std::to_string(process_descriptor)
                                            : "/proc/" + std::to_string(process) + "/status");
}

}  // namespace tailrace::run
