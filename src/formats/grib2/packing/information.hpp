// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/grib2/packing.hpp"

namespace tailrace::grib2 {

/// Returns the bits of the codes in which the information of a field with accuracy=auto is found, which are
/// the most that its records get.
constexpr int informed_bits(ElementType type) { return type == ElementType::f32 ? 24 : most_bits; }

/// Chooses the scaling of records by the information of their values. Each thread has an object of its own.
class InformedScaling {
 public:
  /// Local. Returns the scaling with the fewest bits whose step between two codes keeps all bits that
  /// information::kept_of() keeps of the codes of informed_bits(), or nothing if the values do not fit these.
  /// `values` are the `coded` values that are there, and `bitmap` tells which of the record's elements they
  /// are; it is empty if they are all. Integers get a step of at most 1, so that they stay as they are.
  template <typename Value>
  std::optional<Scaling> choose(const codec::FieldDefinition& field, const Range& range, const Value* values,
                                Index coded, std::span<const std::byte> bitmap,
                                const References& references = float32_references);
  /// Returns the bits that the last record keeps.
  [[nodiscard]] const codec::KeptBits& kept_bits() const { return kept_bits_; }
  /// Returns the memory that choose() needs beside its arguments.
  static Bytes working_bytes(Index points) { return points * static_cast<Bytes>(sizeof(std::uint32_t)); }

 private:
  void spread(Index coded, std::span<const std::byte> bitmap);

  std::vector<std::uint32_t> codes_;
  codec::KeptBits kept_bits_;
};

}  // namespace tailrace::grib2
