// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/options.hpp"
#include "ground/base/status.hpp"

// Reads the YAML of a description of streams. Every function is local.
namespace tailrace::streams {

/// A place in a description, counted from 1.
struct Place {
  int line = 0;
  int column = 0;
};
/// Returns "output.yaml:3:5".
std::string text_of(const std::string& path, Place place);
/// Returns the error that the text at a place has.
Status error_at(const std::string& path, Place place, std::string_view text);

/// An option with the place of its key.
struct WrittenOption {
  Option option;
  Place place;
};
using WrittenOptions = std::vector<WrittenOption>;

/// A field of a stream, or the part of `fields:` that all streams share of it.
struct WrittenField {
  std::string name;     // by which the program defines and puts it
  std::string in_file;  // its name in the files of the stream
  WrittenOptions options;
  Place place;
  bool is_later = false;  // the program may define it behind its first step
};

struct WrittenStream {
  std::string name;
  std::string pattern;
  std::optional<WrittenOption> every;
  WrittenOptions options;
  std::vector<WrittenField> fields;
  Place place;
  Place pattern_place;
};

/// The streams and fields that a description lists, in its order.
struct Written {
  std::vector<WrittenStream> streams;
  std::map<std::string, WrittenField> shared;
};

/// The most bytes that a description has.
inline constexpr std::size_t most_description_bytes = std::size_t{1} << 20;

/// The most bytes that its values have, where they stand by aliases and where fields share them.
inline constexpr std::size_t most_taken_bytes = std::size_t{8} << 20;

/// Reads a description. `path` is for messages. Code::settings with line and column if it is no YAML, has a
/// key that nothing takes, or a value of another kind. Aliases count as often as they stand in the text:
/// a description in which they make more than 8 MiB is refused.
Result<Written> read_yaml(std::string_view text, const std::string& path);

}  // namespace tailrace::streams
