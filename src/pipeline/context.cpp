// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/context.hpp"

#include <algorithm>

namespace tailrace::pipeline {

Result<OpenFiles::Open*> OpenFiles::get(const std::string& path) {
  if (const auto found = files_.find(path); found != files_.end()) return &found->second;
  make_room();
  Result<std::unique_ptr<storage::File>> file = target_->open(path, storage::OpenMode::existing);
  TR_TRY(file.status());
  order_.push_back(path);
  Open& open = files_[path];
  open.file = std::shared_ptr<storage::File>(std::move(*file));
  return &open;
}

/// Files roll over: the oldest has mostly been synced, so that closing it can lose nothing.
void OpenFiles::make_room() {
  if (files_.size() < most_open) return;
  const auto synced = std::find_if(order_.begin(), order_.end(),
                                   [this](const std::string& path) { return !files_.at(path).unsynced; });
  if (synced != order_.end()) {
    retire(std::string(*synced));
  } else if (files_.size() >= most_unsynced) {
    retire(std::string(order_.front()));
  }
}

/// A system tells a failed write-back to the descriptors that were open meanwhile, and some tell it at close
/// only (NFS; close(2)): the next descriptor of the file would not hear of it.
void OpenFiles::retire(const std::string& path) {
  const Open& open = files_.at(path);
  Status status = open.unsynced ? open.file->sync() : Status();
  const Status closed = open.file->close();
  if (status.is_ok()) status = closed;
  if (!status.is_ok()) lost_.emplace(path, status);
  drop(path);
}

void OpenFiles::drop(const std::string& path) {
  files_.erase(path);
  std::erase(order_, path);
}

Result<std::shared_ptr<storage::File>> OpenFiles::to_write(const std::string& path) {
  const Result<Open*> open = get(path);
  TR_TRY(open.status());
  (*open)->unsynced = true;
  return (*open)->file;
}

Status OpenFiles::sync(const std::string& path) {
  const auto sync_open = [&]() -> Status {
    if (const auto lost = lost_.find(path); lost != lost_.end()) return lost->second;
    const Result<Open*> open = get(path);
    TR_TRY(open.status());
    TR_TRY((*open)->file->sync());
    (*open)->unsynced = false;
    return {};
  };
  Status status = sync_open();
  // A descriptor whose fsync failed stays failed; what is written next goes through a new one.
  if (!status.is_ok()) {
    drop(path);
    lost_.erase(path);
  }
  return status;
}

void OpenFiles::forget(const std::string& path) {
  drop(path);
  lost_.erase(path);
}

void LaneCursor::finish(std::uint64_t number) {
  needed_[static_cast<std::size_t>(number - released_)] = 0;
  if (number != released_) return;
  while (!needed_.empty() && needed_.front() == 0) {
    needed_.pop_front();
    ++released_;
  }
  reader_->release(released_);
}

}  // namespace tailrace::pipeline
