// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "files/lasting_file.hpp"
#include "files/position.hpp"

namespace tailrace::capi {

/// A formatted Fortran file that may be written: the I/O rank's Fortran has it open, and tells where it
/// stands.
struct TextFile {
  using Stand = int (*)(void* handle, int cuts, std::int64_t* size);
  std::string path;
  Stand stand = nullptr;
  void* handle = nullptr;
  std::shared_ptr<files::LastingFile> file = nullptr;  // the I/O rank's, once a save had to make it durable
};

/// Of the I/O rank. Where the file stands, with all of it in the system's hands; nothing for one that was not
/// written to. Code::state if it is refused because it could not be brought back there.
Result<std::optional<files::Position>> position_of(TextFile& text, files::Overwritten overwritten);

}  // namespace tailrace::capi
