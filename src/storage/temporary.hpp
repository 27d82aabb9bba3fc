// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "base/status.hpp"
#include "storage/target.hpp"

namespace tailrace::storage {

/// A new file beside another one, whose name it gets once its contents are whole.
struct Temporary {
  std::string name;
  std::unique_ptr<File> file;  // read and written; what has the name by now may be another file
  /// A name of this very file for a library that opens files itself, as long as `file` is open; proc(5).
  std::string opened;
};

/// Local. Makes a new, empty file beside `path`, to be renamed to it. In a directory that others write to,
/// nobody can have put a link or a file there before: the name cannot be known, and nothing that exists is
/// opened.
Result<Temporary> make_temporary(const std::string& path);

}  // namespace tailrace::storage
