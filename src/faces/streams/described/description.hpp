// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/operations/interval.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/described/yaml_reader.hpp"

namespace tailrace::streams {

/// A stream of a description.
struct DescribedStream {
  std::string name;
  std::string pattern;
  std::string options;  // as tr_stream_create takes them: the program's, and the description's over them
  StreamRequest request;
  std::optional<operations::Intervals> every;
  std::string every_text;
  std::vector<WrittenField> fields;
  Place place;
  std::set<std::string> attributes;  // of the file, which the description gives

  /// Returns true if the stream has a step at `lead`. It has those at leads that it refuses.
  [[nodiscard]] bool is_due(std::int64_t lead) const {
    return !every || lead <= 0 || !request.definition.time.check(lead).is_ok() || every->is_end(lead);
  }
};

/// A description that was read: its streams, and the program's fields that each of them gets. All functions
/// are local, and give the same result on every rank that has the same text.
class Description {
 public:
  /// Reads and checks a description. `given` are the options of tr_streams_configure. Errors are
  /// Code::settings with line and column.
  static Result<Description> parse(std::string_view text, const std::string& path, const std::string& given);

  [[nodiscard]] const std::vector<DescribedStream>& streams() const { return streams_; }
  [[nodiscard]] const std::map<std::string, WrittenField>& shared() const { return shared_; }
  /// Returns the options with which the stream defines its field: those of the program, over them what all
  /// streams share of the field, both as far as the stream's format takes them, over them the stream's own.
  [[nodiscard]] Result<std::string> options_of(const DescribedStream& stream, const WrittenField& field,
                                               std::string_view given) const;
  /// Returns true if the description gives this attribute to the stream's field.
  [[nodiscard]] bool gives_attribute(const DescribedStream& stream, const WrittenField& field,
                                     const std::string& attribute) const;
  [[nodiscard]] std::string text_of(Place place) const { return streams::text_of(path_, place); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Status take_every(const WrittenStream& written, DescribedStream& stream) const;
  Status add_stream(WrittenStream written, const std::vector<Option>& given);
  Status check_field(const DescribedStream& stream, const WrittenField& field);

  std::string path_;
  std::vector<DescribedStream> streams_;
  std::map<std::string, WrittenField> shared_;
  std::size_t bytes_ = 0;  // of the options of all fields, with what they share
};

/// Reads a description from a file. Code::io if it cannot be read. Descriptions are read past
/// storage::Target: the user writes them beside the program.
Result<std::string> read_description_text(const std::string& path);

}  // namespace tailrace::streams
