// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/codec/codec.hpp"

namespace tailrace::codec {

/// The bytes around the lines of a listing whose tool reads it as a whole and compares its age with that of
/// the data file.
struct Enclosure {
  std::string_view head;  // before the lines
  std::string_view tail;  // behind the lines
  /// Among the first 128 bytes of every listing of the kind, also of those that the tool itself has made. The
  /// tool makes a listing again if there is none, so such a file is nobody's loss.
  std::string_view mark;
};

/// A kind of listing: a text file beside a data file that has one line for each record, by which another tool
/// finds them. A line follows from the record's bytes, its number and its place alone.
struct Listing {
  std::string_view word;    // as index= takes it
  std::string_view suffix;  // of the listing's name, behind the name of the data file
  /// Returns the line, with its end, of the record at `offset`, which is the `number`-th of the file, from 1.
  /// Returns Code::corrupt if no record begins there, and Code::format if the tool's line is not known for
  /// such a record.
  Result<std::string> (*line)(const ReadBytes& read, std::int64_t number, Bytes offset) = nullptr;
  /// Returns where the record lies that a line tells of, or nothing if the line, which comes without its end,
  /// is not one of the `number`-th record.
  std::optional<Bytes> (*offset_of)(std::string_view line, std::int64_t number) = nullptr;
  /// The words before offset and length of a line's record, if those in front of them come from tables that
  /// another version of a library may have otherwise. Empty: a line is the same for ever.
  std::string_view place_key = {};
  std::string_view line_end = "\n";  // a line is what lies before it
  std::optional<Enclosure> enclosure = {};
};

}  // namespace tailrace::codec
