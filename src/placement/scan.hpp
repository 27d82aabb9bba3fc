// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>

#include "placement/placement.hpp"

namespace tailrace::placement {

/// The exclusive scan of encoded sizes in put order, taken as they become known. A chunk can be placed as
/// soon as all sizes before it are known. Dropped chunks leave no gap.
class Scan final : public Placement {
 public:
  void announce(std::uint64_t chunk) override { chunks_.try_emplace(chunk); }
  void on_encoded(std::uint64_t chunk, std::int64_t step) override { chunks_[chunk] = step; }
  [[nodiscard]] std::optional<std::uint64_t> next(std::int64_t step) const override {
    if (chunks_.empty() || chunks_.begin()->second != step) return std::nullopt;
    return chunks_.begin()->first;
  }
  [[nodiscard]] Bytes least_step(Bytes encoded) const override { return encoded; }
  void begin_step(Bytes offset) override { end_ = offset; }
  void place(std::uint64_t chunk, std::span<Record> records) override {
    chunks_.erase(chunk);
    for (Record& record : records) {
      record.offset = end_;
      end_ += record.length;
    }
  }
  void drop(std::uint64_t chunk) override { chunks_.erase(chunk); }
  [[nodiscard]] Bytes end() const override { return end_; }

 private:
  std::map<std::uint64_t, std::optional<std::int64_t>> chunks_;  // with their steps once encoded
  Bytes end_ = 0;
};

}  // namespace tailrace::placement
