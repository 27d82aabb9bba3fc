// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <utility>

#include "codec/codec.hpp"
#include "placement/placement.hpp"

namespace tailrace::placement {

/// Each field has a place of its own in a step, in which its records follow one another in put order. A chunk
/// can be placed as soon as all chunks before it are. Dropped chunks leave no gap.
class Packed final : public Placement {
 public:
  explicit Packed(codec::FixedPlaces places) : places_(std::move(places)) {}
  void announce(std::uint64_t chunk) override { chunks_.try_emplace(chunk); }
  void on_encoded(std::uint64_t chunk, std::int64_t step) override { chunks_[chunk] = step; }
  [[nodiscard]] std::optional<std::uint64_t> next(std::int64_t step) const override {
    if (chunks_.empty() || chunks_.begin()->second != step) return std::nullopt;
    return chunks_.begin()->first;
  }
  [[nodiscard]] Bytes least_step(Bytes encoded) const override { return encoded; }
  void begin_step(Bytes offset) override {
    begin_ = offset;
    used_.clear();
  }
  void place(std::uint64_t chunk, std::span<Record> records) override {
    chunks_.erase(chunk);
    for (Record& record : records) {
      Bytes& used = used_[record.field];
      record.offset = begin_ + places_.places[static_cast<std::size_t>(record.field)].front() + used;
      used += record.length;
    }
  }
  void drop(std::uint64_t chunk) override { chunks_.erase(chunk); }
  [[nodiscard]] Bytes end() const override { return begin_ + places_.step; }

 private:
  codec::FixedPlaces places_;
  std::map<std::uint64_t, std::optional<std::int64_t>> chunks_;  // with their steps once encoded
  std::map<int, Bytes> used_;                                    // by field, in the step that has begun
  Bytes begin_ = 0;
};

}  // namespace tailrace::placement
