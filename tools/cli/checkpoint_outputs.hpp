// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Where a copy says that the outputs of its program stood (docs/formats/checkpoint.md).
#pragma once

#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "files/position.hpp"
#include "streams/resume.hpp"

namespace tailrace::cli {

struct Outputs {
  std::vector<streams::Position> streams;
  std::vector<files::Position> files;
};

Result<Outputs> read_outputs(const ByteVector& bytes);

}  // namespace tailrace::cli
