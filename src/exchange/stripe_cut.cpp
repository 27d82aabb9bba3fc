// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "exchange/stripe_cut.hpp"

#include <algorithm>

namespace tailrace::exchange {

StripeCut::StripeCut(Bytes position, Bytes bytes, Bytes stripe, std::vector<std::uint64_t>& numbers,
                     int aggregators)
    : position_(position),
      bytes_(bytes),
      stripe_(stripe),
      numbers_(numbers.begin(), numbers.begin() + aggregators) {
  if (bytes > 0) stripes_ = (position + bytes - 1) / stripe - position / stripe + 1;
  for (int a = 0; a < aggregators; ++a)
    numbers[static_cast<std::size_t>(a)] += static_cast<std::uint64_t>(count(a));
}

std::int64_t StripeCut::rounds() const {
  std::int64_t most = 0;
  for (int a = 0; a < aggregators(); ++a) most = std::max(most, count(a));
  return most;
}

Stripe StripeCut::stripe(int aggregator, std::int64_t round) const {
  const Bytes block = position_ / stripe_ + first(aggregator) + round;
  Stripe stripe;
  stripe.aggregator = aggregator;
  stripe.number = numbers_[static_cast<std::size_t>(aggregator)] + static_cast<std::uint64_t>(round);
  stripe.begin = std::max<Bytes>(block * stripe_ - position_, 0);
  stripe.end = std::min((block + 1) * stripe_ - position_, bytes_);
  return stripe;
}

}  // namespace tailrace::exchange
