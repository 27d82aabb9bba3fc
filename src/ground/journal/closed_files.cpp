// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/closed_files.hpp"

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::journal {

namespace {

/// Turns "no such file" into success, because the program may remove its files while an asynchronous save
/// goes on.
Status unless_gone(const Status& status) {
  const bool gone = status.error_number() == ENOENT || status.error_number() == ENOTDIR;
  return gone ? Status() : status;
}

/// Synchronises all directories, even after an error. Returns the first error.
Status sync_all(storage::Target& target, const std::set<std::string>& directories) {
  Status first;
  for (const std::string& directory : directories) {
    const Status status = unless_gone(target.sync_directory_of(directory + "/file"));
    if (first.is_ok()) first = status;
  }
  return first;
}

}  // namespace

Status sync_if_there(storage::Target& target, const std::string& path) {
  return unless_gone(storage::sync_file(target, path, storage::OpenMode::read_regular));
}

Status ClosedFiles::Due::sync(storage::Target& target) const {
  if (failure_ != nullptr) {
    failure_->told = true;
    if (failure_->others == 0) return failure_->status;
    return {failure_->status.code(),
            cat(failure_->status.text(), "; so it is with ", failure_->others, " more of the closed files"),
            failure_->status.error_number()};
  }
  std::set<std::string> directories;
  for (const auto& [path, is_durable] : files_) {
    TR_TRY(sync_if_there(target, path));
    directories.insert(storage::parent_of(path));
  }
  TR_TRY(sync_all(target, directories));
  for (const auto& [path, is_durable] : files_) *is_durable = true;
  return {};
}

void ClosedFiles::note(storage::Target& target, const std::string& path) {
  files_[storage::tidy_path(path)] = {noted_++, std::make_shared<std::atomic<bool>>(false)};
  if (files_.size() > most_) make_room(target);
}

void ClosedFiles::note_renamed(storage::Target& target, const std::string& from, const std::string& to) {
  // make_room() has made the dropped files durable under their old names only. It remembers no names, so any
  // renamed file may be one of them.
  if (files_.erase(storage::tidy_path(from)) == 0 && !has_dropped_) return;
  // The new name may not be visible on this node yet. Then it is noted all the same.
  const Result<storage::Kind> kind = target.kind_of(to);
  if (!kind.is_ok() || *kind == storage::Kind::nothing || *kind == storage::Kind::file) note(target, to);
}

/// Synchronises the oldest files and drops them. It does so for several files at a time, because they share
/// the synchronisation of their directories.
void ClosedFiles::make_room(storage::Target& target) {
  std::vector<std::pair<std::int64_t, std::string>> oldest;
  for (const auto& [path, entry] : files_) oldest.emplace_back(entry.number, path);
  const std::size_t count = std::min(oldest.size() - most_ + most_ / 16, oldest.size());
  std::partial_sort(oldest.begin(), oldest.begin() + static_cast<std::ptrdiff_t>(count), oldest.end());
  oldest.resize(count);
  std::set<std::string> directories;
  for (const auto& [number, path] : oldest) {
    const auto entry = files_.find(path);
    if (!*entry->second.is_durable) {
      remember(sync_if_there(target, path));
      directories.insert(storage::parent_of(path));
    }
    files_.erase(entry);
  }
  remember(sync_all(target, directories));
  has_dropped_ = true;
}

/// Keeps a failure for the next save. Makes a new object each time: the old one may be in use by a save that
/// tells it at this moment.
void ClosedFiles::remember(const Status& failure) {
  if (failure.is_ok()) return;
  auto now = std::make_shared<Failure>();
  const bool is_first = failure_ == nullptr || failure_->told;
  now->status = is_first ? failure : failure_->status;
  now->others = is_first ? 0 : failure_->others + 1;
  failure_ = std::move(now);
}

ClosedFiles::Due ClosedFiles::due() {
  std::erase_if(files_, [](const auto& each) { return each.second.is_durable->load(); });
  if (failure_ != nullptr && failure_->told) failure_.reset();
  Due due;
  for (const auto& [path, entry] : files_) due.files_.emplace(path, entry.is_durable);
  due.failure_ = failure_;
  return due;
}

}  // namespace tailrace::journal
