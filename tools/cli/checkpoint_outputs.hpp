// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Where a copy says that the outputs of its program stood (docs/formats/checkpoint.md).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "checkpoint/copy.hpp"
#include "files/position.hpp"
#include "streams/resume.hpp"

namespace tailrace::cli {

struct Outputs {
  std::vector<streams::Position> streams;
  std::vector<files::Position> files;
};

Result<Outputs> read_outputs(const ByteVector& bytes);
/// How far back a copy needs undo files; 0, and so all of them, if it does not tell.
std::int64_t oldest_undo(const checkpoint::Copy& copy);
/// Notes for each file which of those beside the copy bring it back.
Status find_undo_files(storage::Target& target, const checkpoint::Copy& copy, Outputs& outputs);

}  // namespace tailrace::cli
