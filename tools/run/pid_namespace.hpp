// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdio>
#include <cstring>
#include <string>

namespace tailrace::run {

/// Returns the number of PID namespaces in which a process has a process number, which is read from a file of
/// /proc (proc(5), NSpid). Returns 0 if the file does not tell it, and -1 with errno if the file cannot be
/// opened.
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

/// Returns the number of PID namespaces in which `process` has a process number, as numbers_in() does. A
/// process that has more numbers than the caller is in a PID namespace below the caller's.
/// `process_descriptor` is from pidfd_open(2), or -1.
inline int numbers_of(int process, int process_descriptor) {
  return numbers_in(process_descriptor >= 0 ? "/proc/self/fdinfo/" + std::to_string(process_descriptor)
                                            : "/proc/" + std::to_string(process) + "/status");
}

}  // namespace tailrace::run
