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

/// Where the outputs of a program stood, as a copy says (docs/formats/checkpoint.md).
struct Recorded {
  std::vector<streams::Position> streams;
  std::vector<journal::Position> files;

  /// Returns empty bytes if there is no output.
  [[nodiscard]] ByteVector pack() const;
  /// Returns Code::corrupt for bytes that are none, and Code::unsupported for those of a later version.
  static Result<Recorded> unpack(std::span<const std::byte> bytes);
};

/// Returns the oldest generation whose undo files a copy needs, or 0, and so all of them, if it does not
/// tell.
std::int64_t oldest_undo(const checkpoint::Copy& copy);
/// Notes for each file which of the undo files beside the copy bring it back.
Status find_undo_files(storage::Target& target, const checkpoint::Copy& copy, Recorded& recorded);

}  // namespace tailrace::restart
