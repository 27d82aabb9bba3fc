// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "base/text.hpp"
#include "layout/rule.hpp"

namespace tailrace::layout {

Result<std::vector<Index>> indices_by_callback(const std::vector<Index>& shape, int ranks, int me,
                                               const std::function<int(std::span<const Index>)>& owner_of) {
  TR_TRY(check_shape(shape));
  std::vector<Index> mine;
  if (product(shape) == 0) return mine;
  std::vector<Index> at(shape.size(), 0);
  Index global = 0;
  do {
    const int owner = owner_of(at);
    if (owner < 0 || owner >= ranks)
      return layout_error("the layout's callback gave rank ", owner, " as owner of ",
                          element_text(global, shape), " expected 0 .. ", ranks - 1);
    if (owner == me) mine.push_back(global);
    ++global;
  } while (advance(at, shape));
  return mine;
}

}  // namespace tailrace::layout
