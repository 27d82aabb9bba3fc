// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "files/position.hpp"

namespace tailrace::restart {

/// What checkpoints have recorded of files.
class RecordedFiles {
 public:
  /// What was loaded, of that generation, takes the place of all that was known. `undo`: what may bring the
  /// files back, the newest first.
  void load(std::vector<files::Position> positions, std::int64_t generation,
            const std::vector<files::UndoName>& undo);

  /// Where a file of this name that is opened for writing goes on; nullptr: nowhere.
  [[nodiscard]] const files::Position* find(const std::string& path) const;
  /// It goes on there now: whoever opens it next begins it anew.
  void take(const std::string& path);
  /// The numbers of those that were taken on this rank, and to hear those of others.
  [[nodiscard]] std::vector<std::int64_t> taken() const;
  void take(const std::vector<std::int64_t>& numbers);
  /// Those that nobody has taken yet, and that the next save records once more.
  [[nodiscard]] std::vector<files::Position> left() const;

  /// A save of this run has recorded the file with so many bytes.
  void note(const files::Position& position);
  /// The file is emptied: warns, once, where a save has recorded what it held.
  void emptied(const std::string& path);

 private:
  struct Entry {
    files::Position position;
    bool taken = false;
  };
  std::vector<Entry> loaded_;              // in the order of the checkpoint: the same on every rank
  std::map<std::string, Bytes> recorded_;  // by tidy path
};

}  // namespace tailrace::restart
