// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"

// The header of a classic NetCDF file, as the NetCDF Classic Format Specification (Unidata) and the CDF-5
// File Format Specification (Argonne and Northwestern) lay it down. All numbers are big-endian.
namespace tailrace::cdf {

/// The byte behind "CDF": how wide offsets and counts are.
enum class Version : char {
  cdf1 = 1,  // both 32 bits
  cdf2 = 2,  // offsets of 64 bits
  cdf5 = 5   // both 64 bits; it also has unsigned and 64-bit integers
};

/// The values stand in the file.
enum class Type : std::int32_t {
  int8 = 1,
  text = 2,
  int16 = 3,
  int32 = 4,
  float32 = 5,
  float64 = 6,
  uint8 = 7,
  int64 = 10
};
[[nodiscard]] Bytes size_of(Type type);
/// Returns true if an element of this type can have the value.
[[nodiscard]] bool holds(Type type, double value);
/// The longest name, in bytes (netcdf.h, NC_MAX_NAME).
inline constexpr std::size_t most_name = 256;

/// Appends `value` as a big-endian number of this type.
void put_number(ByteVector& out, Type type, double value);
/// Makes elements of the host's byte order big-endian ones.
void swap(std::span<std::byte> elements, Bytes element_size);

struct Attribute {
  std::string name;
  Type type = Type::text;
  ByteVector values;  // as in the file, without padding

  static Attribute text(std::string_view name, std::string_view value);
  static Attribute number(std::string_view name, Type type, double value);
};

struct Dimension {
  std::string name;
  Index length = 0;  // 0: the record dimension
};

struct Variable {
  std::string name;
  std::vector<int> dimensions;  // slowest first; a record variable begins with the record dimension
  Type type = Type::float64;
  std::vector<Attribute> attributes;
  /// Makes the data of a variable without the record dimension, as in the file.
  std::function<ByteVector()> data{};
  // Set by Head::add():
  Bytes offset = 0;  // within a record, or among the variables that have no records
  Bytes size = 0;    // in one record, or in all; a multiple of 4
};

/// The beginning of a file, up to its first record: dimensions, attributes, variables, and the data of
/// variables without records. Dimension 0 is the record dimension.
struct Head {
  Version version = Version::cdf5;
  std::vector<Dimension> dimensions;
  std::vector<Attribute> attributes;
  std::vector<Variable> variables;
  Bytes fixed_size = 0;   // of all variables without records
  Bytes record_size = 0;  // of one record of all others

  [[nodiscard]] static bool is_record(const Variable& variable) {
    return !variable.dimensions.empty() && variable.dimensions.front() == 0;
  }
  /// Adds a variable behind the others. Returns Code::format if the version cannot hold it; the head is of no
  /// use then.
  Status add(Variable variable);

 private:
  [[nodiscard]] std::optional<Index> elements(const Variable& variable) const;
};

/// Returns the bytes of a file up to its first record.
[[nodiscard]] ByteVector encode(const Head& head);
/// Returns the number of records as it stands at byte 4 of a file.
[[nodiscard]] ByteVector encode_records(Version version, std::int64_t records);

}  // namespace tailrace::cdf
