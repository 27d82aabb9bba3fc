// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <utility>

#include "engine/placement/placement.hpp"
#include "formats/codec/codec.hpp"

namespace tailrace::placement {

/// Each record of a step has a place of its own, and a step takes the same bytes whatever was put. A chunk
/// can be placed as soon as it is encoded.
class Fixed final : public Placement {
 public:
  explicit Fixed(codec::FixedPlaces places) : places_(std::move(places)) {}
  void announce(std::uint64_t) override {}
  void on_encoded(std::uint64_t chunk, std::int64_t step) override { encoded_[chunk] = step; }
  [[nodiscard]] std::optional<std::uint64_t> next(std::int64_t step) const override {
    if (encoded_.empty() || encoded_.begin()->second != step) return std::nullopt;
    return encoded_.begin()->first;
  }
  [[nodiscard]] Bytes least_step(Bytes) const override { return places_.step; }
  void begin_step(Bytes offset) override { begin_ = offset; }
  void place(std::uint64_t chunk, std::span<Record> records) override {
    encoded_.erase(chunk);
    for (Record& record : records) {
      const auto& levels = places_.places[static_cast<std::size_t>(record.field)];
      record.offset = begin_ + levels[static_cast<std::size_t>(record.level)];
    }
  }
  void drop(std::uint64_t chunk) override { encoded_.erase(chunk); }
  [[nodiscard]] Bytes end() const override { return begin_ + places_.step; }

 private:
  codec::FixedPlaces places_;
  std::map<std::uint64_t, std::int64_t> encoded_;  // with their steps
  Bytes begin_ = 0;
};

}  // namespace tailrace::placement
