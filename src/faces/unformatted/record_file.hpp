// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>

#include "faces/unformatted/record.hpp"

namespace tailrace::unformatted {

using arrays::Array;

/// Fortran's unformatted files: a collective file with the bytes that gfortran writes. A sequential file
/// consists of records between markers of 4 or 8 bytes. A record longer than a subrecord holds is continued
/// in further ones (docs/fortran-files.md). A stream file is its items one after another.
///
/// Every rank knows where the file stands, so that most calls send nothing.
class RecordFile {
 public:
  /// `file` has `size` bytes, and its stream stands at the first of them. With `from` the program goes on
  /// where a checkpoint has recorded the file.
  RecordFile(files::File& file, const Form& form, Bytes size,
             const std::optional<journal::Position>& from = {});

  /// Returns true if the last call failed because the file had ended.
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  [[nodiscard]] const files::File& file() const { return file_; }
  /// Only for tests, which cannot write 2 GiB.
  void set_subrecord(Bytes bytes) { form_.subrecord = bytes; }
  /// Returns the position of a stream file's next byte, or of a sequential file's next record, counted from
  /// 0.
  [[nodiscard]] Bytes position() const { return position_; }
  [[nodiscard]] Bytes size() const { return stream_.size(); }

  [[nodiscard]] bool in_record() const { return record_.has_value(); }
  /// Begins a record. Collective for reading: in a sequential file one broadcast tells every rank the
  /// record's length. Local for writing, except for the first record that is added to a file if it is not
  /// known how large the markers are.
  Status begin(Direction direction);
  /// Moves an array, one item of the record. Collective, and blocks as File::move_arrays() does. `mine` is
  /// what the caller found wrong with the array.
  Status move(const Array& array, Direction direction, Status mine);
  /// Writes a replicated item, whose numbers have `unit` bytes. The I/O rank writes its own value, without a
  /// message. Local, except behind the first subrecord.
  Status put(std::span<const std::byte> item, Bytes unit);
  /// Reads an item into every rank. Collective, except for records of at most 4 KiB, whose items came with
  /// begin().
  Status get(std::span<std::byte> item, Bytes unit);
  /// Ends the record, and skips what the program has not read of it. Local, except for a written record
  /// behind its first subrecord.
  Status end();

  /// Goes to the begin of the file. Collective.
  Status rewind();
  /// Goes to before the last record, or to before the end of the file if the end was read or written.
  /// Collective.
  Status backspace();
  /// Makes the file end here. Collective.
  Status endfile();
  /// For stream files: sets the position of the next item. Collective.
  Status seek(Bytes position);
  /// Collective, as File::wait() and File::flush(false).
  Status wait();
  Status flush();
  /// For checkpoints: as File::rest() and File::position(). Not within a record.
  Status rest();
  Result<journal::Position> recorded_position(journal::Overwritten overwritten);
  /// Collective. Does all that comes before closing: ends the record, and cuts a sequential file behind the
  /// last record that was written. close() does the same, and then closes the file.
  Status finish();
  Status close();

 private:
  [[nodiscard]] Status check(Direction direction) const;
  Status know_markers();
  Status ended(const std::string& what);
  Status misplaced(Direction direction);
  void abandon_record(const Status& why, bool torn);
  Status load(std::span<std::byte> item);
  Status load_together(std::span<std::byte> item);
  Status move_out(const Array& array, Bytes bytes, const Status& mine);
  Status move_in(const Array& array, Bytes bytes, const Status& mine);
  Status cut();

  files::File& file_;
  Form form_;
  Bytes position_ = 0;
  bool wrote_ = false;      // the last record was written: a sequential file ends behind it
  bool after_end_ = false;  // behind the end of a sequential file: rewind or backspace must come next
  bool has_ended_ = false;
  Direction last_ = Direction::read;
  RecordStream stream_;
  std::optional<Record> record_;
};

}  // namespace tailrace::unformatted
