// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/cf/conventions.hpp"
#include "formats/cf/grid.hpp"
#include "formats/codec/codec.hpp"

namespace tailrace::cf {

/// Returns the keys of a latitude-longitude grid, those of a sample message included. A build without ecCodes
/// cannot read samples: the keys that were given are all then.
Result<codec::Keys> grid_keys(const codec::Georeference& georeference);

/// The fields of a stream as the codecs of NetCDF define and adopt them, with the conventions that follow.
class Fields {
 public:
  Fields(const codec::StreamDefinition& stream, Conventions::Accept accept)
      : conventions_(stream, std::move(accept)) {}

  /// Do what codec::Codec says. What is prepared is the field's grid.
  Status define(const codec::FieldDefinition& field);
  /// Returns what `define` would prepare. No field is added.
  Result<ByteVector> prepare(const codec::FieldDefinition& field);
  [[nodiscard]] ByteVector prepared(int field) const;
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
  /// Returns Code::argument if there is no such field, or if a record of it has another number of elements.
  [[nodiscard]] Status check_record(const codec::RecordKey& key, Index count) const;

 private:
  Result<Grid> read_grid(const codec::FieldDefinition& field);
  Status add(const codec::FieldDefinition& field, const Grid& grid);

  Conventions conventions_;
  std::vector<Grid> grids_;
  std::vector<ElementType> types_;
  // Fields share layouts, and decoding a sample takes time: the last georeference, and its grid by keys.
  std::optional<codec::Georeference> georeference_;
  codec::Keys keys_;
};

}  // namespace tailrace::cf
