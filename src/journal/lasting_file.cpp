// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "journal/lasting_file.hpp"

#include "base/log.hpp"

namespace tailrace::journal {

std::shared_ptr<storage::File> LastingFile::hold() {
  const std::lock_guard lock(mutex_);
  ++holders_;
  return {below_.get(), [self = shared_from_this()](storage::File*) { self->let_go(); }};
}

void LastingFile::let_go() {
  const std::lock_guard lock(mutex_);
  if (--holders_ > 0 || !closed_) return;
  const Status closed = below_->close();
  if (!closed.is_ok()) log(LogLevel::warn, closed.text());
}

Status LastingFile::close() {
  const std::lock_guard lock(mutex_);
  if (closed_) return {Code::state, "close: the file is closed"};
  closed_ = true;
  return holders_ > 0 ? Status() : below_->close();
}

}  // namespace tailrace::journal
