// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/systems/file_system.hpp"

#include <sys/statfs.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>

namespace tailrace::storage {

namespace {

using Writers = FileSystem::Writers;

struct Known {
  std::uint32_t type;
  const char* name;
  Writers writers;
};

/// From linux/magic.h and statfs(2), or the sources of systems that are not a part of Linux.
constexpr Known known_systems[] = {
    {0xEF53, "ext4", Writers::many},           {0x58465342, "XFS", Writers::many},
    {0x9123683E, "btrfs", Writers::many},      {0x01021994, "tmpfs", Writers::many},
    {0x794C7630, "overlayfs", Writers::many},  {0x2FC12FC1, "ZFS", Writers::many},
    {0xF2F52010, "F2FS", Writers::many},       {0x0BD00BD0, "Lustre", Writers::many},
    {0x47504653, "GPFS", Writers::many},       {0x19830326, "BeeGFS", Writers::many},
    {0x00C36400, "CephFS", Writers::many},     {0x20030528, "OrangeFS", Writers::many},
    {0xAAD7AAEA, "PanFS", Writers::many},      {0x7461636F, "OCFS2", Writers::many},
    {0x01161970, "GFS2", Writers::many},       {0x6969, "NFS", Writers::on_one_node},
    {0xFF534D42, "SMB", Writers::on_one_node}, {0xFE534D42, "SMB", Writers::on_one_node},
    {0x5346414F, "AFS", Writers::on_one_node}, {0x6B414653, "AFS", Writers::on_one_node},
    {0x01021997, "9P", Writers::one},          {0x65735546, "FUSE", Writers::one},
};

}  // namespace

FileSystem file_system_of_type(unsigned long type) {
  for (const Known& each : known_systems) {
    // f_type is signed on some systems, and longer than the numbers.
    if (each.type == static_cast<std::uint32_t>(type)) return {each.name, each.writers};
  }
  return {};
}

FileSystem file_system_of(const std::string& path) {
  struct statfs system {};
  for (std::filesystem::path place(path);; place = place.parent_path()) {
    if (::statfs(place.empty() ? "." : place.c_str(), &system) == 0)
      return file_system_of_type(static_cast<unsigned long>(system.f_type));
    if (place.empty() || place == place.parent_path() || (errno != ENOENT && errno != ENOTDIR)) return {};
  }
}

}  // namespace tailrace::storage
