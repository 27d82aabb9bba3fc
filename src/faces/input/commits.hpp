// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ground/storage/identity.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::input {

/// The steps that the index beside a data file told when it was read. A writer that goes on from a checkpoint
/// takes steps back and writes them once more: it cuts the index before it touches their bytes, and the index
/// has a step again once all its bytes are durable. So bytes that were read between two looks at an index
/// that did not change are those of the steps that it tells. Immutable. Any thread may use it.
class Commits {
 public:
  /// Local. Reads the index beside `data_path`, if there is one. Code::corrupt if it is damaged.
  static Result<Commits> read(storage::Target& target, const std::string& data_path);

  /// Returns false if no index lies beside the file: another program has written it.
  [[nodiscard]] bool has_index() const { return stamp_.has_value(); }
  /// Returns the version of the step that is valid at this time (in seconds), or nothing if the index has no
  /// such step. A step that was taken back and written once more has another version, unless it and all
  /// steps before it lie at the same places as before.
  [[nodiscard]] std::optional<std::uint64_t> version(std::int64_t valid) const;
  /// Returns true if the index had not changed between the two looks.
  [[nodiscard]] bool are_those_of(const Commits& other) const { return stamp_ == other.stamp_; }
  /// Local. Returns true if nothing has been written to the index since it was read, and none has come.
  [[nodiscard]] Result<bool> is_current(storage::Target& target) const;

 private:
  std::string index_path_;
  std::optional<storage::Identity> stamp_;          // of the index; none: there is none
  bool shows_changes_ = true;                       // a change since shows in the stamp
  std::map<std::int64_t, std::uint64_t> versions_;  // by valid time
};

/// Local. Returns what changes with each write to the file at `path`, or nothing if there is no file.
Result<std::optional<storage::Identity>> stamp_of(storage::Target& target, const std::string& path);

}  // namespace tailrace::input
