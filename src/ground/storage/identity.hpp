// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::storage {

/// Tells that a file is the one that it was, with the bytes that it had.
struct Identity {
  Bytes size = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970, when bytes were last written
  std::int64_t changed = 0;   // likewise, when anything of the file was; nobody can set it
  std::uint64_t inode = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

/// Local. Asks the system about what has this name; stat(2). Code::io if nothing has. Names of targets that
/// are no file system have no identity.
Result<Identity> identity_of(const std::string& path);

/// Returns true if the next change of the file will show in its identity: the clock of file times has moved
/// on since the last one. It moves every few milliseconds.
bool shows_changes(const Identity& identity);

/// Local. Returns the path that names the same file from anywhere, without links; realpath(3).
Result<std::string> whole_path(const std::string& path);

/// Returns the path put behind the current directory of this process, unless it begins at the root. Nothing
/// need have that name.
std::string path_from_root(const std::string& path);

/// The facts that tell a file from all others that processes of one machine can open.
struct FileNumber {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileNumber&, const FileNumber&) = default;
};

/// Local. Returns the numbers of what has this name, or zeros if nothing has: names of targets that are no
/// file system.
FileNumber number_of(const std::string& path);

}  // namespace tailrace::storage
