// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "faces/unformatted/record_stream.hpp"

namespace tailrace::unformatted {

using arrays::Direction;

struct Form {
  bool sequential = true;
  bool swapped = false;  // the file's byte order is not this machine's
  bool reads = true;
  bool writes = true;
  bool at_end = false;  // opened behind its last byte
  Bytes subrecord = 2147483639;
  Bytes marker = 0;  // 4 or 8 bytes; 0: the file's first record tells
};

/// What every rank knows of the record that is read or written. Writing is collective behind the first
/// subrecord, as RecordStream::write_over(), otherwise all is local.
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
  /// Returns the place in the file of byte `at` of the items.
  [[nodiscard]] Bytes offset_of(Bytes at) const;
  /// Returns Code::argument if the record, of the file at `path`, has no more `bytes`.
  [[nodiscard]] Status check_rest(const std::string& path, Bytes bytes) const;
  /// Returns the frame of the next array: the markers within it.
  [[nodiscard]] std::shared_ptr<files::Framing> frame_in(Bytes bytes, Bytes unit) const;
  // On the rank that holds the stream: reads the next bytes of items, and finds the record's parts (none at
  // the end of the file) and, if it is small, its content.
  [[nodiscard]] files::Outcome load(std::FILE* stream, Bytes bytes) const;
  [[nodiscard]] files::Outcome find(std::FILE* stream) const;
  /// Takes over what find() has found.
  void take(const files::Outcome& found);

  // Writing.
  void open_part(RecordStream& stream);
  void close_part(RecordStream& stream, bool continues);
  void put(RecordStream& stream, std::span<const std::byte> item);
  /// Returns the frame of the next array, with the bytes that the stream carries. Markers get the lengths
  /// known by now.
  std::shared_ptr<files::Framing> frame_out(RecordStream& stream, Bytes bytes, Bytes unit);

 private:
  void make_room(RecordStream& stream);
  void set_head(RecordStream& stream, Bytes length);
  [[nodiscard]] ByteVector tail() const;
};

// On the rank that holds the stream.
/// Returns the begin of the record that ends before `at`.
files::Outcome find_back(std::FILE* stream, Bytes at, const Form& form);
/// Returns how many bytes the markers of the file have: 8 if those of its first record agree, and those of 4
/// do not. Where both agree, the records behind it decide.
Bytes told_marker(std::FILE* stream, bool swapped);

}  // namespace tailrace::unformatted
