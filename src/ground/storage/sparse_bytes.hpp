// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <span>
#include <vector>

#include "ground/base/types.hpp"

namespace tailrace::storage {

/// Bytes at 64-bit offsets. Bytes never written take no memory and read as zero. Not thread-safe.
class SparseBytes {
 public:
  [[nodiscard]] Bytes size() const { return size_; }
  void write(std::span<const std::byte> data, Bytes offset);
  /// Returns the number of bytes read, which is less than asked only at the end.
  Bytes read(std::span<std::byte> data, Bytes offset) const;
  void resize(Bytes size);

 private:
  static constexpr Bytes page_bytes = 4096;
  using Page = std::vector<std::byte>;

  std::map<Bytes, Page> pages_;  // by offset / page_bytes; bytes past size_ are zero
  Bytes size_ = 0;
};

}  // namespace tailrace::storage
