// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "ground/base/status.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// A new file beside another file. It gets the other file's name once its contents are complete.
struct Temporary {
  std::string name;
  std::unique_ptr<File> file;  // for reading and writing, even if `name` is another's
  /// Another name of this very file, for a library that opens files itself. It is valid as long as `file` is
  /// open (proc(5)).
  std::string opened;
};

/// Local. Makes a new, empty file beside `path`, to be renamed to `path`. Safe in a directory in which others
/// may write: they cannot guess the name and put a link or file there, and the call opens nothing that
/// exists.
Result<Temporary> make_temporary(const std::string& path);

/// Local. Gives the file the name `path`, beside which it was made; call it once all bytes are written. Bytes
/// and name are durable on return. After a failure nothing has the temporary name.
Status take_name(Target& target, const Temporary& temporary, const std::string& path);

}  // namespace tailrace::storage
