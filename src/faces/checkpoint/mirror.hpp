// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "faces/checkpoint/capture/copy_on_write.hpp"
#include "faces/checkpoint/part.hpp"

namespace tailrace::checkpoint {

/// Captures the items of a save while the program goes on. A large item is captured by a mirror: a copy of
/// the memory in which the item lies, gaps included, because a mirror can be copied unit by unit in any
/// order. Small items, and items with wide gaps, are packed at once.
class Mirror {
 public:
  explicit Mirror(const std::vector<SaveItem>& items);

  /// Returns the bytes of memory that the capture takes.
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  /// Captures into `memory`, and makes the items point there in place of the caller's arrays. Leaves to
  /// `behind` what it can copy later: behind.wait() must return before an item is read. If `behind` refuses,
  /// copies everything before it returns, and returns the reason as an error.
  Status take(std::vector<SaveItem>& items, std::byte* memory, capture::CopyOnWrite& behind) const;

 private:
  /// Memory in which items lie. Several items may share a region.
  struct Region {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    Bytes place = 0;  // in the capture's memory
  };
  static Region whole_units(const Region& region);
  void redirect(SaveItem& item, Bytes packed_place, std::byte* memory) const;

  std::vector<Region> regions_;
  std::vector<Bytes> packed_places_;  // of each item; -1: it lies in a region
  Bytes bytes_ = 0;
};

}  // namespace tailrace::checkpoint
