// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// Bytes that follow one another in a file.
struct Extent {
  Bytes offset = 0;
  Parts parts;
};

/// Writes one process's bytes of a file, in rounds. A collective method moves the bytes of all processes that
/// write the file in each round: it needs the writer of each process to be called in the same order for each
/// epoch, with no extents if the process has none. Methods wait for storage, and never run side by side.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Writes the extents, which do not overlap, or fails. A failed round may have left any part of them in the
  /// file, and may be tried again. `epoch` numbers the steps of a file: that of a round is never lower than
  /// that of the round before.
  virtual Status round(std::int64_t epoch, std::span<const Extent> extents) = 0;
  /// Makes all rounds so far durable. A failure is final: every later sync() returns it.
  virtual Status sync() = 0;
  /// Closes the file and checks the result. Further calls are Code::state. The destructor closes without a
  /// check.
  virtual Status close() = 0;
};

/// Writes at offsets, by itself: epochs do not matter. Extents that follow one another in the file are
/// written in one call.
std::unique_ptr<Writer> file_writer(std::unique_ptr<File> file);

}  // namespace tailrace::storage
