// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "ground/base/bytes.hpp"

namespace tailrace {

/// Memory that was used, for the same use again: memory that goes back to the system costs a page fault for
/// every 4 KiB when it is needed again, more than it takes to fill it.
class BytePool {
 public:
  /// Returns memory of `size` bytes with any content: the last that was given back of those that have at
  /// least this size, and at most an eighth more. Before it allocates it frees memory until at most `most`
  /// bytes are left in the pool.
  [[nodiscard]] ByteVector take(Bytes size, Bytes most);
  void give_back(ByteVector bytes) noexcept;
  /// Frees memory until at most `most` bytes are left.
  void shrink(Bytes most);
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  std::vector<ByteVector> kept_;
  Bytes size_ = 0;
};

}  // namespace tailrace
