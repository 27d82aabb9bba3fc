// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/growth.hpp"

#include <algorithm>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::journal {

void Growth::wrote(Bytes offset, Bytes bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  if (offset < end_) replace(offset);
  end_ = std::max(end_, offset + bytes);
}

void Growth::stream_wrote(Bytes offset, Bytes bytes) {
  if (!completing_) return wrote(offset, bytes);
  const std::lock_guard lock(mutex_);
  end_ = std::max(end_, offset + bytes);
}

void Growth::cut(Bytes size) {
  const std::lock_guard lock(mutex_);
  if (size < end_) replace(size);
  end_ = std::min(end_, size);
}

void Growth::replace(Bytes offset) {
  if (!overwritten_at_) overwritten_at_ = offset;
  if (offset >= recorded_ || std::exchange(warned_, true)) return;
  log(LogLevel::warn, cat(path_, " is written over at byte ", offset,
                          "; a checkpoint has recorded its first ", tailrace::counted(recorded_, "byte"),
                          " as they were: a run that goes on from there will not find them"));
}

}  // namespace tailrace::journal
