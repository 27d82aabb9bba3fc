// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/stripe_cut.hpp"

#include <algorithm>

namespace tailrace::exchange {

StripeCut::StripeCut(Bytes position, Bytes bytes, Bytes stripe, std::vector<std::uint64_t>& numbers,
                     int aggregators)
    : position_(position),
      bytes_(bytes),
      stripe_(stripe),
      numbers_(numbers.begin(), numbers.begin() + aggregators) {
  if (bytes > 0) all_ = (position + bytes - 1) / stripe - position / stripe + 1;
  for (int a = 0; a < aggregators; ++a)
    numbers[static_cast<std::size_t>(a)] += static_cast<std::uint64_t>(count(a));
}

Stripe StripeCut::stripe(int aggregator, std::int64_t round) const {
  const Bytes begin = (position_ / stripe_ + first(aggregator) + round) * stripe_ - position_;
  return {aggregator, numbers_[static_cast<std::size_t>(aggregator)] + static_cast<std::uint64_t>(round),
          std::max<Bytes>(begin, 0), std::min(begin + stripe_, bytes_)};
}

void StripeCut::stripes(std::int64_t round, std::vector<Stripe>& list) const {
  list.clear();
  for (int a = 0; a < aggregators(); ++a) {
    if (round < count(a)) list.push_back(stripe(a, round));
  }
}

}  // namespace tailrace::exchange
