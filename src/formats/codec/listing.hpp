// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/codec/codec.hpp"

namespace tailrace::codec {

/// The bytes around the lines of a listing, if its tool reads the listing as a whole and ignores a listing
/// that is older than the data file.
struct Enclosure {
  std::string_view head;  // before the lines
  std::string_view tail;  // behind the lines
  /// A text among the first 128 bytes of every listing of this kind, including those that the tool itself has
  /// made. A file with the mark may be removed or replaced: the tool makes a missing listing again.
  std::string_view mark;
};

/// A kind of listing: a text file beside a data file, with one line for each record, by which one other tool
/// finds the records. A line follows from the record's bytes, its number and its place alone.
struct Listing {
  std::string_view word;    // as index= takes it
  std::string_view suffix;  // of the listing's name, behind the name of the data file
  /// Returns the line, with its end, of the record at `offset`. `number` counts the records of the file
  /// from 1. Returns Code::corrupt if no record begins at `offset`, and Code::format if it is not known how
  /// the tool would write the line of this record.
  Result<std::string> (*line)(const ReadBytes& read, std::int64_t number, Bytes offset) = nullptr;
  /// Returns the offset that a line states, or nothing if it is no line of the record with this number. The
  /// line is given without its end.
  std::optional<Bytes> (*offset_of)(std::string_view line, std::int64_t number) = nullptr;
  /// The word in a line before the record's offset and length. What stands in front of this word may differ
  /// between versions of a library that has the tables. Empty if all versions write the same line.
  std::string_view place_key = {};
  std::string_view line_end = "\n";  // ends each line
  std::optional<Enclosure> enclosure = {};
};

}  // namespace tailrace::codec
