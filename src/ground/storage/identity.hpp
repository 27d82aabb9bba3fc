// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::storage {

/// Tells whether a file is still the same file with the same bytes: see Target::identity_of().
struct Identity {
  Bytes size = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970 of the last write of bytes
  std::int64_t changed = 0;   // time of the last change of any kind; nobody can set it
  std::uint64_t inode = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// True if the next change of the file will show in its identity: the clock of file times, which moves every
/// few milliseconds, has moved since the last change.
bool shows_changes(const Identity& identity);

/// Local. Returns the path that names the same file from everywhere, without links (realpath(3)).
Result<std::string> whole_path(const std::string& path);

/// Returns the path with the current directory of this process before it, unless the path begins with "/" or
/// with the prefix of a target. The file need not exist.
std::string path_from_root(const std::string& path);

/// The numbers that tell a file from all others that processes of one machine can open.
struct FileNumber {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileNumber&, const FileNumber&) = default;
};

/// Local. Returns the numbers of the file of this name. Returns zeros if there is none, as for names in
/// targets that are no file system.
FileNumber number_of(const std::string& path);

}  // namespace tailrace::storage
