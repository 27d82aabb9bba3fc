// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/placement/placement.hpp"

namespace tailrace::placement {

/// Places chunks one behind another in the order in which their sizes become known. No chunk waits for
/// another one, and the order of the records within a step differs from run to run.
class Arrival final : public Placement {
 public:
  void announce(std::uint64_t) override {}
  void on_encoded(std::uint64_t chunk, std::int64_t step) override { arrived_.emplace_back(chunk, step); }
  [[nodiscard]] std::optional<std::uint64_t> next(std::int64_t step) const override {
    const auto first = std::ranges::min_element(arrived_, {}, &Arrived::second);
    return first == arrived_.end() || first->second != step ? std::nullopt : std::optional(first->first);
  }
  [[nodiscard]] Bytes least_step(Bytes encoded) const override { return encoded; }
  void begin_step(Bytes offset) override { end_ = offset; }
  void place(std::uint64_t chunk, std::span<Record> records) override {
    drop(chunk);
    for (Record& record : records) {
      record.offset = end_;
      end_ += record.length;
    }
  }
  void drop(std::uint64_t chunk) override {
    std::erase_if(arrived_, [&](const Arrived& each) { return each.first == chunk; });
  }
  [[nodiscard]] Bytes end() const override { return end_; }

 private:
  using Arrived = std::pair<std::uint64_t, std::int64_t>;  // a chunk and its step

  std::vector<Arrived> arrived_;
  Bytes end_ = 0;
};

}  // namespace tailrace::placement
