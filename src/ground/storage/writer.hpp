// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// Bytes that follow one another in a file.
struct Extent {
  Bytes offset = 0;
  Parts parts;
};

/// Writes one process's bytes of a file, in rounds, by itself: files that all processes write together are
/// comm::CollectiveFiles. Methods wait for storage. They must not run at the same time.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Writes the extents, which do not overlap, or fails. A failed round may have left any part of them in the
  /// file, and may be tried again. `epoch` is the number of the step that the bytes belong to. What a step
  /// holds beside its records may come after records of the next step.
  virtual Status round(std::int64_t epoch, std::span<const Extent> extents) = 0;
  /// Makes all rounds so far durable. A failure is final: every later sync() returns it.
  virtual Status sync() = 0;
  /// Closes the file and checks the result. Further calls return Code::state. The destructor closes without a
  /// check.
  virtual Status close() = 0;
};

/// Returns a writer that writes by itself, at offsets, and ignores epochs. It writes extents that follow one
/// another in the file in one call.
std::unique_ptr<Writer> file_writer(std::unique_ptr<File> file);

/// Opens a file that exists, and returns what writes it. Waits for storage.
using MakeWriter = Result<std::unique_ptr<Writer>> (*)(Target& target, const std::string& path);
/// Returns a file_writer of the file.
Result<std::unique_ptr<Writer>> open_file_writer(Target& target, const std::string& path);

}  // namespace tailrace::storage
