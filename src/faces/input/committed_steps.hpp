// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "faces/input/definition.hpp"
#include "ground/storage/identity.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::input {

/// The steps in the index beside a data file, at the time when it was read. A writer that continues from a
/// checkpoint takes steps back and writes them again: it cuts a step from the index before it touches the
/// step's bytes, and adds it again when all bytes are durable. So if the index has not changed while bytes
/// were read, they are those of the steps in it. Immutable. Any thread may use it.
class CommittedSteps {
 public:
  /// Local. Blocks on storage. Reads the index beside `data_path`, if there is one. Code::corrupt if it is
  /// damaged. Steps at times that are no leads of the stream are left out.
  static Result<CommittedSteps> read(storage::Target& target, const std::string& data_path,
                                     const FilesDefinition& files = {});

  /// False if the file has no index: another program has written it.
  [[nodiscard]] bool has_index() const { return stamp_.has_value(); }
  /// Returns the version of the step at this lead of the stream, or nothing if the index has no such step. A
  /// step that was taken back and written again gets another version, unless it and all steps before it lie
  /// at the same places as before.
  [[nodiscard]] std::optional<std::uint64_t> version(std::int64_t lead) const;
  /// True if the index was the same when both were read.
  [[nodiscard]] bool are_those_of(const CommittedSteps& other) const { return stamp_ == other.stamp_; }
  /// Local. Blocks on storage. True if the index has not been written, made or removed since it was read.
  [[nodiscard]] Result<bool> is_current(storage::Target& target) const;

 private:
  std::string index_path_;
  /// Identity of the index when it was read; none: there was no index.
  std::optional<storage::Identity> stamp_;
  bool shows_changes_ = true;                       // any later change shows in the stamp
  std::map<std::int64_t, std::uint64_t> versions_;  // by lead
};

/// Local. Blocks on storage. Returns an identity that changes with each write to the file, or nothing if
/// there is no file.
Result<std::optional<storage::Identity>> stamp_of(storage::Target& target, const std::string& path);

}  // namespace tailrace::input
