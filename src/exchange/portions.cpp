// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "exchange/portions.hpp"

#include <algorithm>

namespace tailrace::exchange {

Portions::Portions(Bytes position, Bytes bytes, Bytes window, std::vector<std::uint64_t>& numbers,
                   int aggregators)
    : position_(position),
      bytes_(bytes),
      window_(window),
      numbers_(numbers.begin(), numbers.begin() + aggregators) {
  if (bytes > 0) windows_ = (position + bytes - 1) / window - position / window + 1;
  for (int a = 0; a < aggregators; ++a)
    numbers[static_cast<std::size_t>(a)] += static_cast<std::uint64_t>(count(a));
}

std::int64_t Portions::rounds() const {
  std::int64_t most = 0;
  for (int a = 0; a < aggregators(); ++a) most = std::max(most, count(a));
  return most;
}

Window Portions::window(int aggregator, std::int64_t round) const {
  const Bytes block = position_ / window_ + first(aggregator) + round;
  Window window;
  window.aggregator = aggregator;
  window.number = numbers_[static_cast<std::size_t>(aggregator)] + static_cast<std::uint64_t>(round);
  window.begin = std::max<Bytes>(block * window_ - position_, 0);
  window.end = std::min((block + 1) * window_ - position_, bytes_);
  return window;
}

}  // namespace tailrace::exchange
