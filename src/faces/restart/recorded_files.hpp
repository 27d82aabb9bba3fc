// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ground/journal/position.hpp"

namespace tailrace::restart {

/// The files as checkpoints have recorded them.
class RecordedFiles {
 public:
  /// Replaces everything that was known by what was loaded, of that generation. `undo` may bring the files
  /// back, the newest first.
  void load(std::vector<journal::Position> positions, std::int64_t generation,
            const std::vector<journal::UndoName>& undo);

  /// Returns where a file of this name that is opened for writing goes on, or nullptr if it begins anew.
  [[nodiscard]] const journal::Position* find(const std::string& path) const;
  /// Says that the file goes on there now. The next open of the file begins it anew.
  void take(const std::string& path);
  /// Return the numbers of the files taken on this rank, and take those of other ranks.
  [[nodiscard]] std::vector<std::int64_t> taken() const;
  void take(const std::vector<std::int64_t>& numbers);
  /// Returns the files that nobody has taken yet. The next save records them once more.
  [[nodiscard]] std::vector<journal::Position> left() const;

  /// Says that a save of this run has recorded the file with this many bytes.
  void note(const journal::Position& position);
  /// Says that the file is emptied. Warns, once, if a save has recorded what it held.
  void emptied(const std::string& path);

 private:
  struct Entry {
    journal::Position position;
    bool taken = false;
  };
  std::vector<Entry> loaded_;              // in the order of the checkpoint: the same on every rank
  std::map<std::string, Bytes> recorded_;  // by tidy path
};

}  // namespace tailrace::restart
