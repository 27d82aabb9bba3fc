// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ground/base/types.hpp"

namespace tailrace::codec {
class Codec;
}

namespace tailrace::placement {

/// An encoded record and where in its file it goes.
struct Record {
  int field = 0;
  Index level = 0;
  Bytes offset = 0;
  Bytes length = 0;
  std::vector<Bytes> parts{};  // codec::Encoder::parts
};

/// Gives the encoded records of a stream their offsets. Chunks are numbered in put order, and encoded in any
/// order. An offset depends on what was put and on the step's begin alone, never on who encoded a record or
/// when; but for Arrival. All chunks of a step are placed or dropped before any of the next step.
class Placement {
 public:
  virtual ~Placement() = default;
  /// Says that the put order has come to a chunk.
  virtual void announce(std::uint64_t chunk) = 0;
  /// Says that the lengths of the chunk's records are known. The chunk belongs to `step`.
  virtual void on_encoded(std::uint64_t chunk, std::int64_t step) = 0;
  /// Returns a chunk of the step that can be placed or dropped now.
  [[nodiscard]] virtual std::optional<std::uint64_t> next(std::int64_t step) const = 0;
  /// Returns the bytes that a step takes at least if `encoded` bytes of its records are known.
  [[nodiscard]] virtual Bytes least_step(Bytes encoded) const = 0;
  /// Says at which offset of its file a step begins, before the first of its chunks is placed.
  virtual void begin_step(Bytes offset) = 0;
  /// Places the chunk that next() has returned: sets the offset of each of its records.
  virtual void place(std::uint64_t chunk, std::span<Record> records) = 0;
  /// Leaves out the chunk that next() has returned.
  virtual void drop(std::uint64_t chunk) = 0;
  /// Returns the offset behind the step that has begun, with all records placed so far.
  [[nodiscard]] virtual Bytes end() const = 0;
};

/// Returns the placement of the codec's format.
std::unique_ptr<Placement> make_placement(const codec::Codec& codec);
/// As make_placement(), but in a format without places records follow one another as they become ready
/// (Arrival).
std::unique_ptr<Placement> make_placement_by_arrival(const codec::Codec& codec);
/// Returns a placement that follows the offsets that servers have taken by themselves (Taken).
std::unique_ptr<Placement> make_placement_of_taken();

}  // namespace tailrace::placement
