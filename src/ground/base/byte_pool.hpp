// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mutex>
#include <vector>

#include "ground/base/bytes.hpp"

namespace tailrace {

/// Keeps memory that was used, for the same use again. Memory returned to the system would cost a page fault
/// for every 4 KiB when it is needed again, and a page fault takes longer than filling 4 KiB.
/// Any thread may call the functions.
class BytePool {
 public:
  /// Returns memory of `size` bytes with any content: the memory given back last whose size is `size` or at
  /// most an eighth more. If the pool has none, it first frees memory until at most `most` bytes are left in
  /// the pool, then allocates.
  [[nodiscard]] ByteVector take(Bytes size, Bytes most);
  /// Returns memory as take() finds it, with the size that it was given back with. If the pool has none, it
  /// frees memory as take() does, and returns none: a caller whose thread must not fail allocates elsewhere.
  [[nodiscard]] ByteVector kept(Bytes size, Bytes most);
  void give_back(ByteVector bytes) noexcept;
  /// Moves bytes that fill less than four fifths of their memory into memory of their size, and keeps the
  /// larger one. Both are there for a moment.
  void shorten(ByteVector& bytes);
  /// Frees memory, the oldest first, until at most `most` bytes are left.
  void shrink(Bytes most);
  [[nodiscard]] Bytes size() const;

 private:
  void shrink_locked(Bytes most);

  mutable std::mutex mutex_;
  std::vector<ByteVector> kept_;
  Bytes size_ = 0;
};

}  // namespace tailrace
