// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <span>

#include "faces/files/file.hpp"

namespace tailrace::unformatted {

/// The C stream behind a file of records, as every rank knows it: where it stands, how far the file reaches,
/// and how many bytes are carried. Bytes are carried if they wait on the I/O rank until an array takes them
/// along or there are 64 KiB of them: markers and small items. ask(), cut(), take_back(), and write_over()
/// with `by_any`, are collective; all other functions are local.
class RecordStream {
 public:
  RecordStream(files::File& file, Bytes size) : file_(&file), size_(size) {}

  /// Returns the place in the file of the next byte to be carried.
  [[nodiscard]] Bytes end() const { return at_ + count_; }
  /// Returns the size of the file once all bytes are sent.
  [[nodiscard]] Bytes size() const { return count_ > 0 ? std::max(size_, end()) : size_; }

  /// Notes that the next bytes belong at `position`.
  void begin_at(Bytes position) {
    if (end() != position) send();
    if (count_ == 0) at_ = position;
  }
  /// Carries `bytes`, behind those carried already.
  void append(std::span<const std::byte> bytes);
  /// Has the I/O rank write the bytes carried.
  void send();
  void send_many() {
    if (count_ >= Bytes{1} << 16) send();
  }
  /// Gives out the bytes carried, for an array that takes them along. Call pass() next. On a rank without the
  /// stream, only their number is right.
  ByteVector carried();
  /// Notes that `bytes` bytes go to the file, the carried ones first.
  void pass(Bytes bytes);
  /// Writes over bytes of a record that has not ended. `by_any`: any aggregator may have written them, so the
  /// ranks first wait until all aggregators are done.
  void write_over(Bytes at, const ByteVector& bytes, bool by_any);
  /// Drops the bytes of a failed record, which began at `begin`. What the file has of it is cut off, or the
  /// next record writes over it. `torn`: the record may have left bytes behind the end of the file.
  void take_back(Bytes begin, bool torn);

  /// Moves the stream to `position`. An array call then moves it on by `bytes`.
  void move_to(Bytes position, Bytes bytes = 0);
  void forget_position() { stream_at_ = -1; }
  /// Calls File::ask(). `what` is for the watchdog and the error.
  Result<files::Outcome> ask(const char* what, const files::Operation& operation);
  /// True if the file, once all bytes are sent, has nothing behind `size`.
  [[nodiscard]] bool ends_at(Bytes size) const { return !torn_ && size_ <= size; }
  /// Sends all bytes, and makes the file end at `size`.
  Status cut(Bytes size);

 private:
  files::File* file_;
  Bytes size_;           // of the file, without the bytes carried
  bool torn_ = false;    // a failed item may have left bytes behind `size_`
  Bytes stream_at_ = 0;  // position of C's stream; -1: not known
  ByteVector bytes_;     // the bytes carried, on ranks that hold the stream
  Bytes at_ = 0;         // place in the file of the first byte carried
  Bytes count_ = 0;      // number of bytes carried
};

}  // namespace tailrace::unformatted
