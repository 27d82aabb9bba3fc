// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "ground/base/types.hpp"

namespace tailrace::journal {

/// A set of ranges of a file's bytes. No two ranges touch: ranges that touch are joined.
class Ranges {
 public:
  /// Returns the parts of [begin, end) that are in no range.
  [[nodiscard]] std::vector<std::pair<Bytes, Bytes>> gaps(Bytes begin, Bytes end) const {
    std::vector<std::pair<Bytes, Bytes>> found;
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin()) begin = std::max(begin, std::prev(next)->second);
    for (; begin < end; ++next) {
      const Bytes stop = next == ends_.end() ? end : std::min(end, next->first);
      if (begin < stop) found.emplace_back(begin, stop);
      if (next == ends_.end()) break;
      begin = next->second;
    }
    return found;
  }
  void add(Bytes begin, Bytes end) {
    auto next = ends_.lower_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) --next;
    while (next != ends_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_.emplace(begin, end);
  }
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  void clear() { ends_.clear(); }

 private:
  std::map<Bytes, Bytes> ends_;  // begin of a range -> its end
};

}  // namespace tailrace::journal
