// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/types.hpp"

namespace tailrace::placement {

/// The exclusive scan of encoded sizes, taken as they become known. Runs of records (chunks) are announced in
/// put order, and their sizes become known in any order. A chunk gets its offset, in put order, as soon as
/// all sizes before it are known. The offset depends on the sizes before it alone, never on who encoded them
/// or when.
class Scan {
 public:
  struct Placed {
    std::uint64_t chunk = 0;
    Bytes size = 0;
  };
  /// Chunks are numbered 0, 1, 2, ... in put order.
  std::uint64_t announce() {
    sizes_.emplace_back();
    return first_ + sizes_.size() - 1;
  }
  void set_size(std::uint64_t chunk, Bytes size) { sizes_[chunk - first_] = size; }
  /// Returns the chunk that gets the next offset, if its size is known.
  [[nodiscard]] std::optional<Placed> next() const {
    if (sizes_.empty() || !sizes_.front()) return std::nullopt;
    return Placed{first_, *sizes_.front()};
  }
  /// Takes next(). The following chunk goes behind it, or to its place if it is dropped.
  void take(bool dropped) {
    if (!dropped) offset_ += *sizes_.front();
    sizes_.pop_front();
    ++first_;
  }
  [[nodiscard]] Bytes offset() const { return offset_; }
  /// Makes the next chunk begin at `offset`: in another file, or where a failed step began.
  void restart_at(Bytes offset) { offset_ = offset; }

 private:
  std::deque<std::optional<Bytes>> sizes_;
  std::uint64_t first_ = 0;
  Bytes offset_ = 0;
};

}  // namespace tailrace::placement
