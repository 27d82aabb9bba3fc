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
  /// `file` has `size` bytes, and its stream stands at the first of them. With `from` it goes on where a
  /// checkpoint has recorded it.
  RecordFile(files::File& file, const Form& form, Bytes size,
             const std::optional<journal::Position>& from = {});

  /// Returns true if the last call failed because the file had ended.
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  [[nodiscard]] const files::File& file() const { return file_; }
  /// Only for tests, which cannot write 2 GiB.
  void set_subrecord(Bytes bytes) { form_.subrecord = bytes; }
  /// Returns the position of the next byte of a stream file, or of the next record. Both count from 0.
  [[nodiscard]] Bytes position() const { return position_; }
  [[nodiscard]] Bytes size() const { return stream_.size(); }

  [[nodiscard]] bool in_record() const { return record_.has_value(); }
  /// Begins a record. For reading it is collective and finds the record's length with one broadcast. For
  /// writing it is local, but for the first record that is added to a file whose markers nobody has told.
  Status begin(Direction direction);
  /// Moves one item of the record. Collective, as File::move_arrays.
  Status move(const Array& array, Direction direction, Status mine);
  /// Writes a replicated item. The I/O rank writes it, without a message. Its numbers have `unit` bytes.
  Status put(std::span<const std::byte> item, Bytes unit);
  /// Reads an item into every rank. Collective, except for records of at most 4 KiB, whose items came with
  /// begin().
  Status get(std::span<std::byte> item, Bytes unit);
  /// Ends the record and skips the rest of it that was not read. Local.
  Status end();

  Status rewind();
  /// Goes to before the last record, or to before the end of the file if the end was read or written.
  /// Collective.
  Status backspace();
  /// Makes the file end here. Collective.
  Status endfile();
  /// For stream files: sets the position of the next item.
  Status seek(Bytes position);
  Status wait();
  Status flush();
  /// For checkpoints, as in File. Not within a record.
  Status rest();
  Result<journal::Position> recorded_position(journal::Overwritten overwritten);
  /// Does everything that comes before the file is closed. close() does both.
  Status finish();
  Status close();

 private:
  [[nodiscard]] Status check(Direction direction) const;
  Status know_markers();
  Status ended(const std::string& what);
  Status misplaced(Direction direction);
  void abandon_record(const Status& why, bool torn);
  Status move_out(const Array& array, Bytes bytes, const Status& mine);
  Status move_in(const Array& array, Bytes bytes, const Status& mine);
  Status cut();

  files::File& file_;
  Form form_;
  Bytes position_ = 0;
  bool wrote_ = false;      // the last record was written: a sequential file ends behind it
  bool after_end_ = false;  // behind the end of a sequential file, which must be left before the next
                            // operation
  bool has_ended_ = false;
  Direction last_ = Direction::read;
  RecordStream stream_;
  std::optional<Record> record_;
};

}  // namespace tailrace::unformatted
