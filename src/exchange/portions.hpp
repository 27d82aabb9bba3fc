// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.hpp"

namespace tailrace::exchange {

/// A part of an array's bytes in the file that goes through one window of one aggregator. Bytes count from
/// the array's first byte in the file.
struct Window {
  int aggregator = 0;
  std::uint64_t number = 0;  // in the aggregator's ring
  Bytes begin = 0;
  Bytes end = 0;
};

/// Cuts `bytes` bytes from `position` of a file on into windows and deals them out: each aggregator has one
/// contiguous share. Windows end at multiples of their size in the file, so that storage sees whole blocks.
/// Every rank computes the same.
class Portions {
 public:
  /// `numbers[a]` is the next window number of aggregator a. It goes up by the number of windows that the
  /// aggregator gets.
  Portions(Bytes position, Bytes bytes, Bytes window, std::vector<std::uint64_t>& numbers, int aggregators);

  [[nodiscard]] Bytes position() const { return position_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  /// Returns the largest number of windows of any aggregator.
  [[nodiscard]] std::int64_t rounds() const;
  /// Return the number of an aggregator's windows, and one of them.
  [[nodiscard]] std::int64_t count(int aggregator) const { return first(aggregator + 1) - first(aggregator); }
  [[nodiscard]] Window window(int aggregator, std::int64_t round) const;
  [[nodiscard]] int aggregators() const { return static_cast<int>(numbers_.size()); }

 private:
  /// The result is rounded up, so that the array's first window always belongs to the first aggregator, the
  /// I/O rank.
  [[nodiscard]] std::int64_t first(int aggregator) const {
    return (windows_ * aggregator + aggregators() - 1) / aggregators();
  }

  Bytes position_;
  Bytes bytes_;
  Bytes window_;
  std::int64_t windows_ = 0;
  std::vector<std::uint64_t> numbers_;
};

}  // namespace tailrace::exchange
