// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "ground/base/types.hpp"

namespace tailrace::exchange {

/// A part of an array's bytes in the file that goes through one stripe of one aggregator. Bytes count from
/// the array's first byte in the file.
struct Stripe {
  int aggregator = 0;
  std::uint64_t number = 0;  // in the aggregator's ring
  Bytes begin = 0;
  Bytes end = 0;
};

/// Cuts `bytes` bytes from `position` of a file on into stripes and deals them out: each aggregator has one
/// contiguous share. Stripes end at multiples of their size in the file, so that storage sees whole blocks.
/// Every rank computes the same.
class StripeCut {
 public:
  /// `numbers[a]` is the next stripe number of aggregator a. It goes up by the number of stripes that the
  /// aggregator gets.
  StripeCut(Bytes position, Bytes bytes, Bytes stripe, std::vector<std::uint64_t>& numbers, int aggregators);

  [[nodiscard]] Bytes position() const { return position_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  /// Returns the largest number of stripes of any aggregator: the first one has it.
  [[nodiscard]] std::int64_t rounds() const { return count(0); }
  /// count() returns the number of an aggregator's stripes, stripe() its stripe in one round.
  [[nodiscard]] std::int64_t count(int aggregator) const { return first(aggregator + 1) - first(aggregator); }
  [[nodiscard]] Stripe stripe(int aggregator, std::int64_t round) const;
  /// Sets `list` to the stripes of all aggregators in one round. A caller that passes the same list again
  /// saves its allocation.
  void stripes(std::int64_t round, std::vector<Stripe>& list) const;
  [[nodiscard]] int aggregators() const { return static_cast<int>(numbers_.size()); }

 private:
  /// Returns the place of an aggregator's first stripe among all stripes. Rounding up gives the array's first
  /// stripe to the first aggregator, the I/O rank, even if there are fewer stripes than aggregators.
  [[nodiscard]] std::int64_t first(int aggregator) const {
    return (all_ * aggregator + aggregators() - 1) / aggregators();
  }

  Bytes position_;
  Bytes bytes_;
  Bytes stripe_;
  std::int64_t all_ = 0;  // stripes of all aggregators
  std::vector<std::uint64_t> numbers_;
};

}  // namespace tailrace::exchange
