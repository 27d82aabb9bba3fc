// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "ground/base/text.hpp"

namespace tailrace::node {

namespace {

constexpr Bytes unlimited = std::numeric_limits<Bytes>::max();

/// The files in which one version of control groups shows memory (cgroups(7)). Without a limit, version 2
/// shows "max" and version 1 a very large number.
struct CgroupFiles {
  std::string_view limit;
  std::string_view used;
  // The prefix of those lines of memory.stat that count the group together with the groups below it.
  std::string_view cached_prefix;
};
constexpr CgroupFiles version_1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"};
constexpr CgroupFiles version_2{"/memory.max", "/memory.current", ""};

Bytes first_number_in(const std::string& path) {
  std::ifstream file(path);
  Bytes value = 0;
  return file >> value ? value : unlimited;
}

/// Returns the bytes of the group's cached file pages. The kernel gives them back when memory is short, and
/// MemAvailable counts them as available too.
Bytes cached_in(const std::string& group, std::string_view prefix) {
  std::ifstream file(group + "/memory.stat");
  Bytes cached = 0;
  std::string key;
  for (Bytes value = 0; file >> key >> value;) {
    if (!key.starts_with(prefix)) continue;
    key.erase(0, prefix.size());
    if (key == "inactive_file" || key == "active_file") cached += value;
  }
  return cached;
}

Bytes left_in(const std::string& group, const CgroupFiles& files) {
  const Bytes most = first_number_in(group + std::string(files.limit));
  const Bytes used = first_number_in(group + std::string(files.used));
  if (most == unlimited || used == unlimited) return unlimited;
  // `cached` is bounded because the files are read one after another. The result is bounded because "no
  // limit" in version 1 is close to the largest number.
  const Bytes cached = std::min(cached_in(group, files.cached_prefix), used);
  return std::max<Bytes>(most - (used - cached), 0);
}

/// Returns the smallest number of bytes left in the group `path` or in any group above it, including the
/// root.
Bytes left_up_from(const std::string& mounted, std::string path, const CgroupFiles& files) {
  Bytes left = unlimited;
  for (;;) {
    left = std::min(left, left_in(mounted + path, files));
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return left;
    path.erase(slash);
  }
}

}  // namespace

Bytes left_by_cgroups(std::istream& own, const std::string& mounted) {
  // In a container the groups may be mounted at the root, although their paths name places outside of it.
  const std::string first = mounted + "/memory";
  Bytes left = std::min(left_in(mounted, version_2), left_in(first, version_1));
  for (std::string line; std::getline(own, line);) {
    const std::size_t id = line.find(':');
    const std::size_t controllers = line.find(':', id + 1);
    if (controllers == std::string::npos) continue;
    const std::string list = "," + line.substr(id + 1, controllers - id - 1) + ",";
    const std::string path = line.substr(controllers + 1);
    if (list == ",,") left = std::min(left, left_up_from(mounted, path, version_2));
    if (list.find(",memory,") != std::string::npos)
      left = std::min(left, left_up_from(first, path, version_1));
  }
  return left;
}

Bytes available_memory() {
  Bytes available = unlimited;
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    std::istringstream words(line);
    std::string key;
    Bytes kibibytes = 0;
    if (words >> key >> kibibytes && key == "MemAvailable:") available = kibibytes * 1024;
  }
  std::ifstream own("/proc/self/cgroup");
  return std::min(available, left_by_cgroups(own, "/sys/fs/cgroup"));
}

Status check_nodes(std::span<const MemoryNeed> needs, std::string_view who, std::string_view way_out) {
  struct Node {
    int ranks = 0;
    Bytes bytes = 0;
    Bytes available = unlimited;
  };
  std::map<std::int32_t, Node> nodes;
  for (const MemoryNeed& need : needs) {
    if (need.bytes == 0) continue;
    Node& node = nodes[need.node];
    node.available = std::min(node.available, need.available);
    node.bytes += need.bytes;
    ++node.ranks;
  }
  for (const auto& [number, node] : nodes) {
    if (node.bytes <= node.available) continue;
    return {Code::memory,
            cat(who, " ", counted(node.bytes, "byte"), " on the node of rank ", number, " (",
                counted(node.ranks, "rank"), "), of which ", node.available, " are to be had: ", way_out)};
  }
  return {};
}

}  // namespace tailrace::node
