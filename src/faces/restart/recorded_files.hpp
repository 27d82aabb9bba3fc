// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ground/journal/position.hpp"

namespace tailrace::restart {

/// The files that the loaded checkpoint has recorded, and those that saves of this run have recorded. All
/// functions are local.
class RecordedFiles {
 public:
  /// Takes the positions of a loaded copy of `generation`, in place of everything that was known. `undo` are
  /// the undo files that may bring the files back, the newest first.
  void load(std::vector<journal::Position> positions, std::int64_t generation,
            const std::vector<journal::UndoName>& undo);

  /// Returns where a file of this name goes on if the program opens it for writing now, or nullptr if it
  /// begins anew.
  [[nodiscard]] const journal::Position* find(const std::string& path) const;
  /// Notes that the program has opened the file, which goes on there. The next open begins it anew.
  void take(const std::string& path);
  /// Returns the numbers of the files that were taken on this rank.
  [[nodiscard]] std::vector<std::int64_t> taken() const;
  /// Notes that another rank has taken the files of these numbers.
  void take(const std::vector<std::int64_t>& numbers);
  /// Returns the files that no rank has taken yet, as far as this rank knows. The next save records them once
  /// more.
  [[nodiscard]] std::vector<journal::Position> left() const;

  /// Notes that a save of this run has recorded the file with this many bytes.
  void note(const journal::Position& position);
  /// Notes that the program empties the file. Warns, once, if a save of this run has recorded bytes that it
  /// held.
  void emptied(const std::string& path);

 private:
  struct RecordedFile {
    journal::Position position;
    bool taken = false;
  };
  std::vector<RecordedFile> loaded_;       // in the order of the checkpoint: the same on every rank
  std::map<std::string, Bytes> recorded_;  // bytes of each file, by tidy path
};

}  // namespace tailrace::restart
