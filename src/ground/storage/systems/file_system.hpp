// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

namespace tailrace::storage {

/// A file system, and how it bears several processes that write one file at the same time.
struct FileSystem {
  enum class Writers {
    unknown,
    many,         // on any nodes
    on_one_node,  // those of one node; nodes have caches or locks of their own, which pass from one to the
                  // next
    one,          // each process, or each open file, may have a cache of its own
  };
  std::string name{};  // "NFS"; "" if it is unknown
  Writers writers = Writers::unknown;
};

/// Local, quick unless the file system hangs. Returns the file system of the path, or of its nearest
/// directory that is there.
FileSystem file_system_of(const std::string& path);
/// Returns the file system that statfs(2) tells by this number (f_type).
FileSystem file_system_of_type(unsigned long type);

}  // namespace tailrace::storage
