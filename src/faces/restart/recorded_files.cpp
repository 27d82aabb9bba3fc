// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/restart/recorded_files.hpp"

#include <algorithm>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/undo_file.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::restart {

void RecordedFiles::load(std::vector<journal::Position> positions, std::int64_t generation,
                         const std::vector<journal::UndoName>& undo) {
  loaded_.clear();
  recorded_.clear();
  for (journal::Position& each : positions) {
    if (each.since == 0) each.since = generation;
    each.undo = journal::undo_files_of(each, generation, undo);
    loaded_.push_back({std::move(each), false});
  }
}

const journal::Position* RecordedFiles::find(const std::string& path) const {
  for (const RecordedFile& entry : loaded_) {
    if (!entry.taken && journal::is_same_path(entry.position.path, path)) return &entry.position;
  }
  return nullptr;
}

void RecordedFiles::take(const std::string& path) {
  const journal::Position* const found = find(path);
  for (RecordedFile& entry : loaded_) entry.taken = entry.taken || &entry.position == found;
}

std::vector<std::int64_t> RecordedFiles::taken() const {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < loaded_.size(); ++i) {
    if (loaded_[i].taken) numbers.push_back(static_cast<std::int64_t>(i));
  }
  return numbers;
}

void RecordedFiles::take(const std::vector<std::int64_t>& numbers) {
  for (const std::int64_t number : numbers) {
    if (number >= 0 && number < std::ssize(loaded_)) loaded_[static_cast<std::size_t>(number)].taken = true;
  }
}

std::vector<journal::Position> RecordedFiles::left() const {
  std::vector<journal::Position> list;
  for (const RecordedFile& entry : loaded_) {
    if (!entry.taken) list.push_back(entry.position);
  }
  return list;
}

void RecordedFiles::note(const journal::Position& position) {
  Bytes& bytes = recorded_[storage::tidy_path(position.path)];
  bytes = std::max(bytes, position.size);
}

void RecordedFiles::emptied(const std::string& path) {
  const auto found = recorded_.find(storage::tidy_path(path));
  if (found == recorded_.end()) return;
  if (found->second > 0) {
    log(LogLevel::warn, cat(path, " is begun anew; a checkpoint has recorded ", found->second,
                            " bytes that it held: a run that goes on from there will not find them"));
  }
  recorded_.erase(found);
}

}  // namespace tailrace::restart
