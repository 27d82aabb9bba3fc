// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/grib2/header.hpp"
#include "formats/grib2/packing/information.hpp"

namespace tailrace::grib2 {

/// An edition of GRIB, as far as the packing of values depends on it.
struct Edition {
  std::string_view name;  // for error texts
  References references;
};

/// The packing of one record.
struct Choice {
  Index coded = 0;  // the values that are not missing
  /// With 0 bits all values are the reference. If no value is there, only the bits mean something.
  Scaling scaling;
  bool constant = false;  // all values are equal
};

/// Returns the most bits that a value of the field takes.
int widest(const codec::FieldDefinition& field);
/// Returns the type and the value of a level, for error texts.
std::string place(const Field& field, Index level);

/// Chooses how the values of records are packed. Each thread has an object of its own.
class Choosing {
 public:
  explicit Choosing(const Edition& edition) : edition_(edition) {}
  /// Forgets the record before.
  void begin();
  /// Moves the missing values out of `values`, as compact() does, and returns the packing of the others.
  /// Code::data for values that the edition cannot hold, or not as exactly as the field asks for.
  template <typename Value>
  Result<Choice> choose(const Field& field, Index level, Value* values, Index count);

  /// The bitmap of the last record: empty if no value is missing.
  [[nodiscard]] const ByteVector& bitmap() const { return bitmap_; }
  /// As codec::Encoder::offending and kept_bits.
  [[nodiscard]] Index offending() const { return offending_; }
  [[nodiscard]] std::optional<codec::KeptBits> kept_bits() const { return kept_bits_; }

 private:
  template <typename Value>
  Status not_finite(const Field& field, Index level, const Value* values, Index count);
  template <typename Value>
  Result<Choice> choose_scaling(const Field& field, Index level, const Value* values, Index coded);
  std::optional<Scaling> constant_scaling(const Field& field, const Range& range, double accuracy) const;

  Edition edition_;
  Index offending_ = -1;
  ByteVector bitmap_;
  InformedScaling informed_;
  std::optional<codec::KeptBits> kept_bits_;
};

}  // namespace tailrace::grib2
