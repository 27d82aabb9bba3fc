// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/counters/counters.hpp"

#include <algorithm>

#include "ground/base/text.hpp"

namespace tailrace::comm {

Result<int> Counters::make() {
  is_made_.resize(static_cast<std::size_t>(most));
  const auto free = std::ranges::find(is_made_, false);
  if (free == is_made_.end())
    return Status(Code::unsupported, cat("one process keeps ", most, " counters at most"));
  *free = true;
  const auto counter = static_cast<int>(free - is_made_.begin());
  set(counter, 0);
  return counter;
}

}  // namespace tailrace::comm
