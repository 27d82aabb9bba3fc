// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace tailrace {

/// Returns the value of a line "NAME: N kB" of a file in /proc, in bytes, or -1 if the line is missing.
inline std::int64_t memory_in(const std::string& file, const std::string& name) {
  std::ifstream lines(file);
  std::string key;
  for (std::int64_t kibibytes = 0; lines >> key;) {
    if (key == name + ":" && lines >> kibibytes) return kibibytes * 1024;
  }
  return -1;
}

/// Returns the value of a line of /proc/self/status, for example "RssAnon" or "VmHWM" (proc(5)), in bytes, or
/// -1 if the line is missing.
inline std::int64_t process_memory(const std::string& name) { return memory_in("/proc/self/status", name); }

/// Returns the memory that programs may still get on this machine (MemAvailable of proc(5)), in bytes.
inline std::int64_t available_memory() { return memory_in("/proc/meminfo", "MemAvailable"); }

}  // namespace tailrace
