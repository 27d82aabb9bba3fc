// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "engine/placement/placement.hpp"

namespace tailrace::placement {

/// Follows chunks whose records have their offsets already: their servers have taken them from a counter that
/// stood at the step's begin. Therefore no chunk waits here for a place.
class Taken final : public Placement {
 public:
  void announce(std::uint64_t) override {}
  void on_encoded(std::uint64_t, std::int64_t) override {}
  [[nodiscard]] std::optional<std::uint64_t> next(std::int64_t) const override { return std::nullopt; }
  [[nodiscard]] Bytes least_step(Bytes encoded) const override { return encoded; }
  void begin_step(Bytes offset) override { end_ = offset; }
  /// Leaves the offsets as they are.
  void place(std::uint64_t, std::span<Record> records) override {
    for (const Record& record : records) end_ += record.length;
  }
  void drop(std::uint64_t) override {}
  /// Returns the begin and all lengths together: where the step ends if its records leave no hole.
  [[nodiscard]] Bytes end() const override { return end_; }

 private:
  Bytes end_ = 0;
};

}  // namespace tailrace::placement
