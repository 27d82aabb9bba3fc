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

/// A round of a Writer that may still be under way.
class Round {
 public:
  /// Waits until the round is over: until then the system uses its bytes.
  virtual ~Round() = default;
  /// Returns the way of the round's writes, of several the one with the highest number.
  [[nodiscard]] virtual WriteWay way() const = 0;
  /// Waits until the round is over, and returns what became of it, also when it is called again, or after the
  /// writer is closed.
  virtual Status finish() = 0;
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
  /// Begins a round(), or makes it if the writer has one round at a time. The bytes must stay as they are
  /// until the round is over; the lists need not. Rounds that are under way at the same time do not overlap
  /// in the file. Their finish() counts as a method of the writer. sync(), close() and the destructor wait
  /// for all.
  virtual std::unique_ptr<Round> begin(std::int64_t epoch, std::span<const Extent> extents);
  /// Makes all rounds so far durable. A failure is final: every later sync() returns it.
  virtual Status sync() = 0;
  /// Closes the file and checks the result. Further calls return Code::state. The destructor closes without a
  /// check.
  virtual Status close() = 0;
};

/// Returns a writer that writes by itself, at offsets, and ignores epochs. It writes extents that follow one
/// another in the file in one call.
std::unique_ptr<Writer> file_writer(std::unique_ptr<File> file);

/// Returns a writer as file_writer(), but with several writes, also of several rounds, under way at the same
/// time, through the queue. Storage that has no such writes gets one after another.
std::unique_ptr<Writer> overlapping_writer(std::unique_ptr<File> file, std::unique_ptr<WriteQueue> queue);

/// Opens a file that exists, and returns what writes it. Waits for storage.
using MakeWriter = Result<std::unique_ptr<Writer>> (*)(Target& target, const std::string& path);
/// Returns a file_writer of the file.
Result<std::unique_ptr<Writer>> open_file_writer(Target& target, const std::string& path);
/// Returns an overlapping_writer of the file, through io_uring where that is possible, or else POSIX AIO.
Result<std::unique_ptr<Writer>> open_overlapping_writer(Target& target, const std::string& path);

}  // namespace tailrace::storage
