// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/context.hpp"

namespace tailrace::pipeline {

Result<std::shared_ptr<storage::File>> OpenFiles::get(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (const auto found = files_.find(path); found != files_.end()) return found->second;
  Result<std::unique_ptr<storage::File>> file = target_->open(path, storage::OpenMode::existing);
  TR_TRY(file.status());
  // Files roll over: the oldest has long been synced, so that closing it can lose nothing.
  if (order_.size() == most_open) {
    files_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(path);
  return files_[path] = std::shared_ptr<storage::File>(std::move(*file));
}

void OpenFiles::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_.erase(path);
  std::erase(order_, path);
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
