// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace tailrace {

/// Returns a line of /proc/self/status in bytes, for example "RssAnon" or "VmHWM" (proc(5)); -1 if it is
/// missing.
inline std::int64_t process_memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string key;
  for (std::int64_t kibibytes = 0; status >> key;) {
    if (key == name + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  return -1;
}

}  // namespace tailrace
