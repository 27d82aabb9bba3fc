// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "journal/lasting_file.hpp"
#include "journal/position.hpp"

namespace tailrace::capi {

/// A formatted Fortran file that may be written. The I/O rank's Fortran has it open, and tells where it
/// stands.
struct TextFile {
  using Stand = int (*)(void* handle, int cuts, std::int64_t* size);
  std::string path;
  Stand stand = nullptr;
  void* handle = nullptr;
  std::shared_ptr<journal::LastingFile> file = nullptr;  // the I/O rank's, made when a save had to make it
                                                         // durable
};

/// On the I/O rank. Returns where the file stands, with all of its bytes handed to the system, or nothing if
/// it was not written to. Returns Code::state if it is refused because the file could not be brought back
/// there.
Result<std::optional<journal::Position>> position_of(TextFile& text, journal::Overwritten overwritten);

}  // namespace tailrace::capi
