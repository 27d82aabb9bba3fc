// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "stages/record_pool.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::stages {

ByteVector RecordPool::take(Bytes size, Bytes most) {
  const auto fits = [size](const ByteVector& record) { return static_cast<Bytes>(record.size()) == size; };
  const auto found = std::find_if(records_.rbegin(), records_.rend(), fits);
  if (found == records_.rend()) {
    shrink(most);
    return ByteVector(static_cast<std::size_t>(size));
  }
  ByteVector record = std::move(*found);
  records_.erase(std::next(found).base());
  size_ -= size;
  return record;
}

void RecordPool::give_back(ByteVector record) {
  size_ += static_cast<Bytes>(record.size());
  records_.push_back(std::move(record));
}

void RecordPool::shrink(Bytes most) {
  auto keep = records_.begin();
  for (; keep != records_.end() && size_ > most; ++keep) size_ -= static_cast<Bytes>(keep->size());
  records_.erase(records_.begin(), keep);
}

}  // namespace tailrace::stages
