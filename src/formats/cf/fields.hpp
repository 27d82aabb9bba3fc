// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/cf/conventions.hpp"
#include "formats/cf/grid.hpp"
#include "formats/codec/codec.hpp"

namespace tailrace::cf {

/// Adds an attribute that the program has given to the variable that it names, or to the file. Returns
/// Code::argument if there is no such variable, or if the attribute does not belong there; then nothing is
/// added.
Status give(Conventions& conventions, const codec::GivenAttribute& given);

/// The fields of a stream, as the codecs of NetCDF and Zarr define and adopt them, and the CF metadata of the
/// fields.
class Fields {
 public:
  /// Returns the field as it can be tried without the fields before it, which its attributes may name.
  static codec::FieldDefinition alone(codec::FieldDefinition field);

  Fields(const codec::StreamDefinition& stream, Conventions::Accept accept)
      : conventions_(stream, std::move(accept)) {}

  /// As codec::Codec::define.
  Status define(const codec::FieldDefinition& field);
  /// Returns the bytes that `define` would prepare: the field's name and grid. Adds no field.
  Result<ByteVector> prepare(const codec::FieldDefinition& field);
  /// As codec::Codec::prepared.
  [[nodiscard]] ByteVector prepared(int field) const;
  /// As codec::Codec::adopt.
  Status adopt(const codec::FieldDefinition& field, std::span<const std::byte> prepared);

  [[nodiscard]] const Conventions& conventions() const { return conventions_; }
  [[nodiscard]] const std::vector<Conventions::Field>& all() const { return conventions_.fields(); }
  [[nodiscard]] const Conventions::Field& at(int field) const {
    return all()[static_cast<std::size_t>(field)];
  }
  [[nodiscard]] const Grid& grid(int field) const { return grids_[static_cast<std::size_t>(field)]; }
  [[nodiscard]] ElementType type_of(int field) const { return types_[static_cast<std::size_t>(field)]; }
  /// Adds an attribute to the variable of a field.
  void add_attribute(int field, Attribute attribute) {
    conventions_.add_attribute(at(field).variable, std::move(attribute));
  }
  /// As codec::Codec::add_attribute.
  Status add_attribute(const codec::GivenAttribute& given) { return give(conventions_, given); }
  /// Returns Code::argument if no field has the key's number, or if its records do not have `count` elements.
  [[nodiscard]] Status check_record(const codec::RecordKey& key, Index count) const;

 private:
  Result<Grid> read_grid(const codec::FieldDefinition& field);
  Status add(const codec::FieldDefinition& field, const Grid& grid);

  Conventions conventions_;
  std::vector<Grid> grids_;
  std::vector<ElementType> types_;
  // The last georeference, and the keys of its grid. They are kept because decoding a sample takes time, and
  // fields often share a layout.
  std::optional<codec::Georeference> georeference_;
  codec::Keys keys_;
};

}  // namespace tailrace::cf
