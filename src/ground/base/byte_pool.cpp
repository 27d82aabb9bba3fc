// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/byte_pool.hpp"

#include <algorithm>
#include <utility>

#include "ground/base/status.hpp"

namespace tailrace {

ByteVector BytePool::take(Bytes size, Bytes most) {
  ByteVector bytes = kept(size, most);
  bytes.resize(static_cast<std::size_t>(size));
  return bytes;
}

ByteVector BytePool::kept(Bytes size, Bytes most) {
  const auto fits = [size](const ByteVector& bytes) {
    const Bytes more = static_cast<Bytes>(bytes.capacity()) - size;
    return more >= 0 && more <= size / 8;
  };
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.rbegin(), kept_.rend(), fits);
  if (found == kept_.rend()) {
    shrink_locked(most);
    return {};
  }
  ByteVector bytes = std::move(*found);
  kept_.erase(std::next(found).base());
  size_ -= static_cast<Bytes>(bytes.capacity());
  return bytes;
}

void BytePool::give_back(ByteVector bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto more = static_cast<Bytes>(bytes.capacity());
  // If the list cannot grow, the bytes go back to the system.
  if (guarded([&]() -> Status {
        kept_.push_back(std::move(bytes));
        return {};
      }).is_ok())
    size_ += more;
}

void BytePool::shorten(ByteVector& bytes) {
  if (bytes.size() >= bytes.capacity() / 5 * 4) return;
  ByteVector shorter = kept(std::ssize(bytes), size());
  shorter.assign(bytes.begin(), bytes.end());
  give_back(std::exchange(bytes, std::move(shorter)));
}

void BytePool::shrink(Bytes most) {
  const std::lock_guard lock(mutex_);
  shrink_locked(most);
}

Bytes BytePool::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

void BytePool::shrink_locked(Bytes most) {
  auto keep = kept_.begin();
  for (; keep != kept_.end() && size_ > most; ++keep) size_ -= static_cast<Bytes>(keep->capacity());
  kept_.erase(kept_.begin(), keep);
}

}  // namespace tailrace
