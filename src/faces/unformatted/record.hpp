// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "faces/unformatted/record_stream.hpp"

namespace tailrace::unformatted {

using arrays::Direction;

/// The form of a file's records, and how the program has opened the file.
struct Form {
  bool sequential = true;
  bool swapped = false;  // the file's byte order is not this machine's
  bool reads = true;
  bool writes = true;
  bool at_end = false;  // opened behind its last byte
  Bytes subrecord = 2147483639;
  Bytes marker = 0;  // 4 or 8 bytes; 0: the file's first record tells
};

/// The record that is being read or written, as every rank knows it. All functions are local, except for
/// those that write once the first subrecord is complete: they are collective, since
/// RecordStream::write_over() is.
struct Record {
  const Form& form;
  Direction direction = Direction::write;
  Bytes begin = 0;                // in the file
  std::vector<Bytes> parts = {};  // lengths of its subrecords; when writing, of the complete ones
  Bytes done = 0;                 // bytes of items
  Bytes head_at = 0;              // writing: where the current subrecord's marker lies in the file
  Bytes head = 0;                 // writing: what that marker holds
  Bytes filled = 0;               // writing: bytes in the current subrecord
  ByteVector content = {};        // reading: all bytes of a small record
  Status failure = {};
  bool has_ended = false;  // it has failed because the file had ended

  // Reading; the first two are for sequential files.
  [[nodiscard]] Bytes total() const;          // bytes of all items
  [[nodiscard]] Bytes total_in_file() const;  // the same with the markers
  [[nodiscard]] bool is_small() const { return form.sequential && total() <= 4096; }
  /// Returns the place in the file of byte `at` of the record's items.
  [[nodiscard]] Bytes offset_of(Bytes at) const;
  /// Returns Code::argument if fewer than `bytes` bytes of the record are left. `path` is the file's, for the
  /// text.
  [[nodiscard]] Status check_rest(const std::string& path, Bytes bytes) const;
  /// For reading: returns the frame of the next array of `bytes`, which has the markers within it.
  [[nodiscard]] std::shared_ptr<files::Framing> frame_in(Bytes bytes, Bytes unit) const;
  /// On the rank that holds the stream: reads the next `bytes` of the items.
  [[nodiscard]] files::Outcome load(std::FILE* stream, Bytes bytes) const;
  /// On the same rank: finds the lengths of the record's subrecords (none at the end of the file) and, if the
  /// record is small, reads its content.
  [[nodiscard]] files::Outcome find(std::FILE* stream) const;
  /// On every rank: takes over what find() has found.
  void take(const files::Outcome& found);

  // Writing.
  void open_part(RecordStream& stream);
  void close_part(RecordStream& stream, bool continues);
  void put(RecordStream& stream, std::span<const std::byte> item);
  /// Returns the frame of the next array of `bytes`: the bytes that the stream carries come before the array,
  /// markers of subrecords within it. A marker gets the length that its subrecord has so far.
  std::shared_ptr<files::Framing> frame_out(RecordStream& stream, Bytes bytes, Bytes unit);

 private:
  void make_room(RecordStream& stream);
  void set_head(RecordStream& stream, Bytes length);
  [[nodiscard]] ByteVector tail() const;
};

// The following functions are for the rank that holds the stream.
/// Returns the begin of the record that ends before `at`.
files::Outcome find_back(std::FILE* stream, Bytes at, const Form& form);
/// Returns how many bytes the markers of the file have, 4 or 8: the size with which the markers of its first
/// record agree. If they agree with both sizes, the records behind it decide; if with none, returns 4.
Bytes told_marker(std::FILE* stream, bool swapped);

}  // namespace tailrace::unformatted
