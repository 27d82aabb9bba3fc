// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>

#include "engine/placement/placement.hpp"

namespace tailrace::placement {

/// Base of the placements in which a record's offset depends on the sizes of the records before it. A chunk
/// can be placed as soon as all chunks before it are placed or dropped. Dropped chunks leave no gap.
class InPutOrder : public Placement {
 public:
  void announce(std::uint64_t chunk) final { chunks_.try_emplace(chunk); }
  void on_encoded(std::uint64_t chunk, std::int64_t step) final { chunks_[chunk] = step; }
  [[nodiscard]] std::optional<std::uint64_t> next(std::int64_t step) const final {
    if (chunks_.empty() || chunks_.begin()->second != step) return std::nullopt;
    return chunks_.begin()->first;
  }
  [[nodiscard]] Bytes least_step(Bytes encoded) const final { return encoded; }
  void place(std::uint64_t chunk, std::span<Record> records) final {
    chunks_.erase(chunk);
    for (Record& record : records) give_place(record);
  }
  void drop(std::uint64_t chunk) final { chunks_.erase(chunk); }

 private:
  /// Sets the offset of the next record in put order.
  virtual void give_place(Record& record) = 0;

  std::map<std::uint64_t, std::optional<std::int64_t>> chunks_;  // with their steps once encoded
};

}  // namespace tailrace::placement
