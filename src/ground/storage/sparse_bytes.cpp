// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/sparse_bytes.hpp"

#include <algorithm>
#include <cstring>

namespace tailrace::storage {

void SparseBytes::write(std::span<const std::byte> data, Bytes offset) {
  while (!data.empty()) {
    Page& page = pages_[offset / page_bytes];
    if (page.empty()) page.resize(page_bytes);
    const auto inside = static_cast<std::size_t>(offset % page_bytes);
    const std::size_t step = std::min(data.size(), page.size() - inside);
    // The address sanitizer moves one byte at a time, but copies fast.
    std::memcpy(page.data() + inside, data.data(), step);
    data = data.subspan(step);
    offset += static_cast<Bytes>(step);
    size_ = std::max(size_, offset);
  }
}

Bytes SparseBytes::read(std::span<std::byte> data, Bytes offset) const {
  const Bytes count = std::clamp<Bytes>(size_ - offset, 0, static_cast<Bytes>(data.size()));
  data = data.first(static_cast<std::size_t>(count));
  while (!data.empty()) {
    const auto inside = static_cast<std::size_t>(offset % page_bytes);
    const std::size_t step = std::min(data.size(), static_cast<std::size_t>(page_bytes) - inside);
    const auto page = pages_.find(offset / page_bytes);
    if (page == pages_.end()) {
      std::fill_n(data.begin(), step, std::byte{0});
    } else {
      std::memcpy(data.data(), page->second.data() + inside, step);
    }
    data = data.subspan(step);
    offset += static_cast<Bytes>(step);
  }
  return count;
}

void SparseBytes::resize(Bytes size) {
  if (size < size_) {
    const Bytes last = size / page_bytes;
    const auto inside = static_cast<std::ptrdiff_t>(size % page_bytes);
    pages_.erase(pages_.lower_bound(inside == 0 ? last : last + 1), pages_.end());
    // The bytes cut off become zeros, because a later extension must read zeros there.
    if (const auto page = pages_.find(last); page != pages_.end()) {
      std::fill(page->second.begin() + inside, page->second.end(), std::byte{0});
    }
  }
  size_ = size;
}

}  // namespace tailrace::storage
