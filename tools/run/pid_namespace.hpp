// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace tailrace::run {

/// Returns in how many PID namespaces a process has a number, as a file of /proc says (proc(5), NSpid), or 0.
inline int numbers_in(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  int numbers = 0;
  char line[512];
  while (numbers == 0 && std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::strncmp(line, "NSpid:", 6) != 0) continue;
    for (const char* at = line; (at = std::strchr(at, '\t')) != nullptr; ++at) ++numbers;
  }
  std::fclose(file);
  return numbers;
}

/// Returns true if the process is in another PID namespace than this one, though it can be seen from here:
/// then it is in one below. `process_descriptor` is of pidfd_open(2), or -1.
inline bool is_in_namespace_below(int process, int process_descriptor) {
  if (process_descriptor < 0)
    return numbers_in("/proc/" + std::to_string(process) + "/status") > numbers_in("/proc/self/status");
  const auto own = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  if (own < 0) return true;
  const std::string lists = "/proc/self/fdinfo/";
  const int here = numbers_in(lists + std::to_string(own));
  close(own);
  return numbers_in(lists + std::to_string(process_descriptor)) > here;
}

}  // namespace tailrace::run
