// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "ground/base/status.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// A new file beside another one. It gets the other one's name once its contents are whole.
struct Temporary {
  std::string name;
  std::unique_ptr<File> file;  // for reading and writing; `name` may by now belong to another file
  /// A name of this very file for a library that opens files itself. It is good as long as `file` is open;
  /// proc(5).
  std::string opened;
};

/// Local. Makes a new, empty file beside `path`, to be renamed to it. Even in a directory in which others
/// write, nobody can have put a link or a file there before: the name cannot be known, and nothing that
/// exists is opened.
Result<Temporary> make_temporary(const std::string& path);

}  // namespace tailrace::storage
