// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "faces/checkpoint/capture/copy_on_write.hpp"
#include "faces/checkpoint/part.hpp"

namespace tailrace::checkpoint {

/// The capture of a save while the program goes on. Large items are captured by a mirror of the memory in
/// which they lie, gaps and all, which can be copied unit by unit in any order. Small ones, and those with
/// wide gaps, are packed at once.
class Mirror {
 public:
  explicit Mirror(const std::vector<SaveItem>& items);

  /// Returns the bytes of memory that the capture takes.
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  /// Captures into `memory`, and makes the items name it in place of the caller's arrays. Leaves the rest to
  /// `behind`, whose wait() has to return before an item is read. If nothing can be left to it, copies
  /// everything before it returns, and says why.
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
