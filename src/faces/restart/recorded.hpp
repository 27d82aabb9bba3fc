// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "faces/checkpoint/copy.hpp"
#include "faces/streams/resume/resume.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/journal/position.hpp"

namespace tailrace::restart {

/// The positions of a program's outputs, as a copy has recorded them (docs/formats/checkpoint.md).
struct Recorded {
  std::vector<streams::Position> streams;
  std::vector<journal::Position> files;

  /// Returns no bytes if there is no output.
  [[nodiscard]] ByteVector pack() const;
  /// Returns Code::corrupt if the bytes are damaged, and Code::unsupported if a later version has written
  /// them.
  static Result<Recorded> unpack(std::span<const std::byte> bytes);
};

/// Returns the oldest generation whose undo files a copy needs. Returns 0 if the copy's positions cannot be
/// read: it may need all of them.
std::int64_t oldest_undo(const checkpoint::Copy& copy);
/// Notes for each recorded file which of the undo files beside the copy bring it back.
Status find_undo_files(storage::Target& target, const checkpoint::Copy& copy, Recorded& recorded);

}  // namespace tailrace::restart
