// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <span>

#include "faces/files/file.hpp"

namespace tailrace::unformatted {

/// What every rank knows of the C stream behind a file of records: where it stands, how far the file reaches,
/// and the bytes carried: markers and small items that wait on the I/O rank until an array takes them along,
/// or there are many. ask(), cut(), take_back() and write_over() `by_any` are collective.
class RecordStream {
 public:
  RecordStream(files::File& file, Bytes size) : file_(&file), size_(size) {}

  /// Returns the place in the file of the next byte to be carried.
  [[nodiscard]] Bytes end() const { return at_ + count_; }
  /// Returns the size of the file once all bytes are sent.
  [[nodiscard]] Bytes size() const { return count_ > 0 ? std::max(size_, end()) : size_; }

  /// Says that the next bytes belong at `position`.
  void begin_at(Bytes position) {
    if (end() != position) send();
    if (count_ == 0) at_ = position;
  }
  void append(std::span<const std::byte> bytes);
  void send();
  void send_many() {
    if (count_ >= Bytes{1} << 16) send();
  }
  /// Returns the bytes carried, for an array that takes them along: `pass` follows. Without the stream only
  /// their number counts.
  ByteVector carried();
  /// Says that so many bytes go to the file, from the first one carried on.
  void pass(Bytes bytes);
  /// Writes over bytes of a record that has not ended. `by_any`: any aggregator may have written them.
  void write_over(Bytes at, const ByteVector& bytes, bool by_any);
  /// Drops what is carried from `begin` on, of a failed record: the next one writes over what the file has of
  /// it, or that is cut off. `torn`: there may be bytes behind the end.
  void take_back(Bytes begin, bool torn);

  /// Moves the stream to `position`, from where an array call moves it on by `bytes`.
  void move_to(Bytes position, Bytes bytes = 0);
  void forget_position() { stream_at_ = -1; }
  /// Does File::ask(). `what` is for the watchdog and the error.
  Result<files::Outcome> ask(const char* what, const files::Operation& operation);
  /// Returns true if the file, once all bytes are sent, has nothing behind `size`.
  [[nodiscard]] bool ends_at(Bytes size) const { return !torn_ && size_ <= size; }
  Status cut(Bytes size);

 private:
  files::File* file_;
  Bytes size_;           // of the file, without the bytes carried
  bool torn_ = false;    // a failed item may have left bytes behind `size_`
  Bytes stream_at_ = 0;  // position of C's stream; -1: not known
  ByteVector bytes_;     // carried, on ranks that hold the stream
  Bytes at_ = 0;         // place of the first of them in the file
  Bytes count_ = 0;
};

}  // namespace tailrace::unformatted
