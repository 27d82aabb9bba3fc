// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace tailrace {

/// Returns a line "KEY: N kB" of a file in /proc, in bytes; -1 if it is missing.
inline std::int64_t memory_in(const std::string& file, const std::string& name) {
  std::ifstream lines(file);
  std::string key;
  for (std::int64_t kibibytes = 0; lines >> key;) {
    if (key == name + ":" && lines >> kibibytes) return kibibytes * 1024;
  }
  return -1;
}

/// Returns a line of /proc/self/status in bytes, for example "RssAnon" or "VmHWM" (proc(5)); -1 if it is
/// missing.
inline std::int64_t process_memory(const std::string& name) { return memory_in("/proc/self/status", name); }

/// Returns the memory that programs may still get on this machine (MemAvailable of proc(5)).
inline std::int64_t available_memory() { return memory_in("/proc/meminfo", "MemAvailable"); }

}  // namespace tailrace
