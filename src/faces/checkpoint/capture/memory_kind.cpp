// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/capture/memory_kind.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include "ground/base/text.hpp"

namespace tailrace::capture {

namespace {

struct Closing {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// A line of /proc/self/maps (proc_pid_maps(5)).
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  char permissions[5] = {};
  std::uint64_t inode = 0;
  std::string name;

  [[nodiscard]] const char* fault() const {
    if (permissions[0] != 'r' || permissions[1] != 'w') return "memory that is not readable and writable";
    if (permissions[3] != 'p') return "memory shared with other processes";
    if (inode != 0) return "memory of a file";
    if (name.starts_with("[stack")) return "the stack";
    return nullptr;
  }
};

/// Returns the mappings of this process that overlap [lowest, end). Does not look closer at the others: some
/// processes have thousands.
std::vector<Mapping> read_mappings(std::uintptr_t lowest, std::uintptr_t end) {
  std::vector<Mapping> mappings;
  const std::unique_ptr<std::FILE, Closing> file(std::fopen("/proc/self/maps", "re"));
  char line[8192];
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    Mapping mapping;
    char* rest = line;
    mapping.begin = std::strtoull(line, &rest, 16);
    mapping.end = *rest == '-' ? std::strtoull(rest + 1, &rest, 16) : 0;
    if (mapping.begin >= end) break;  // the kernel lists them in order
    int name = 0;
    if (mapping.end <= lowest ||
        std::sscanf(rest, "%4s %*s %*s %" SCNu64 " %n", mapping.permissions, &mapping.inode, &name) < 2)
      continue;
    mapping.name = rest + name;
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

std::uintptr_t begin_of(const MemoryRange& range) { return reinterpret_cast<std::uintptr_t>(range.begin); }
std::uintptr_t end_of(const MemoryRange& range) {
  return begin_of(range) + static_cast<std::uintptr_t>(range.bytes);
}

Status refused(const char* what) { return {Code::unsupported, cat(what, " cannot be protected")}; }

}  // namespace

Status check_private(std::span<const MemoryRange> ranges) {
  if (ranges.empty()) return {};
  const std::uintptr_t lowest = std::ranges::min(ranges | std::views::transform(begin_of));
  const std::uintptr_t highest = std::ranges::max(ranges | std::views::transform(end_of));
  const std::vector<Mapping> mappings = read_mappings(lowest, highest);
  for (const MemoryRange& range : ranges) {
    std::uintptr_t at = begin_of(range);
    const std::uintptr_t end = end_of(range);
    for (const Mapping& mapping : mappings) {
      if (mapping.end <= at || mapping.begin >= end) continue;
      if (mapping.begin > at) break;
      if (const char* const fault = mapping.fault()) return refused(fault);
      at = mapping.end;
    }
    if (at < end) return refused("memory that is not there");
  }
  return {};
}

Status check_not_registered() {
  const std::unique_ptr<std::FILE, Closing> file(std::fopen("/proc/self/status", "re"));
  char line[256];
  long long kibibytes = 0;
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::sscanf(line, "VmPin: %lld", &kibibytes) != 1 || kibibytes == 0) continue;
    return {
        Code::unsupported,
        cat(kibibytes,
            " KiB of this process are registered with a device (RDMA), which writes past any protection")};
  }
  return {};
}

}  // namespace tailrace::capture
