// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

// The data model of NetCDF: dimensions, attributes and variables, for all formats that have them. All numbers
// are big-endian.
namespace tailrace::cf {

/// The types of values. Their numbers are those of netcdf.h.
enum class Type : std::int32_t {
  int8 = 1,
  text = 2,
  int16 = 3,
  int32 = 4,
  float32 = 5,
  float64 = 6,
  uint8 = 7,
  uint16 = 8,
  uint32 = 9,
  int64 = 10,
  uint64 = 11
};
/// Returns true for the unsigned integers.
[[nodiscard]] bool is_unsigned(Type type);
[[nodiscard]] Bytes size_of(Type type);
/// Returns true if an element of this type can have the value.
[[nodiscard]] bool holds(Type type, double value);
/// The longest name, in bytes (netcdf.h, NC_MAX_NAME).
inline constexpr std::size_t most_name = 256;

/// Appends `value` as a big-endian number of this type.
void put_number(ByteVector& out, Type type, double value);
/// Changes elements from the host's byte order to big-endian, or back.
void swap(std::span<std::byte> elements, Bytes element_size);

template <typename T>
void put_big_endian(ByteVector& out, T value) {
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  swap(bytes, sizeof value);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

struct Attribute {
  std::string name;
  Type type = Type::text;
  ByteVector values;  // big-endian, without padding

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
  /// Makes the data of a variable without the record dimension, big-endian.
  std::function<ByteVector()> data{};
};

/// The dimensions, attributes and variables of a file. Dimension 0 is the record dimension.
struct Contents {
  std::vector<Dimension> dimensions;
  std::vector<Attribute> attributes;
  std::vector<Variable> variables;
  std::unordered_set<std::string> names{};  // of the variables; add() adds them
  bool has_records = true;  // false: files have neither the record dimension nor variables with records

  [[nodiscard]] static bool is_record(const Variable& variable) {
    return !variable.dimensions.empty() && variable.dimensions.front() == 0;
  }
  /// Returns false for variables that files leave out.
  [[nodiscard]] bool is_in_file(const Variable& variable) const {
    return has_records || !is_record(variable);
  }
  /// Returns the bytes of a variable, or of its part of one record if it has records. Returns nothing if they
  /// are more than 2^63.
  [[nodiscard]] std::optional<Bytes> bytes_of(const Variable& variable) const;
  /// Adds a variable behind the others. Returns Code::argument if its name is taken or too long, or if it has
  /// more than 2^63 bytes.
  Status add(Variable variable);
};

/// Returns true if two numbers differ only in their last bits, as coordinates may that another C library or
/// another processor has computed. Numbers near 0 differ as much as those of the size `usual`.
[[nodiscard]] bool are_close(double one, double other, double usual = 1);

/// The values of a variable without steps, as a file has them.
struct Fixed {
  std::string name;
  Type type = Type::float64;
  std::span<const std::byte> values;
};
/// Returns Code::state if the variables `own` of a file are not those of the stream, `now`, that is to
/// continue the file. Values of float64 need only be close, as computed ones are, unless `exactly` is true;
/// all others are equal. `what` names them in errors.
Status check_same(const std::vector<Fixed>& own, const std::vector<Fixed>& now,
                  std::string_view what = "variable", bool exactly = false);
/// The attribute by which a variable is known to describe a grid (CF-1.8, section 5.6).
inline constexpr std::string_view grid_mapping_name = "grid_mapping_name";
/// Returns true if a file goes on only with the same attribute of a variable: numbers, and what flags mean.
/// Other texts may change, and the file keeps its own. Fill values are compared with their fields. Attributes
/// of the file describe the run, which may be longer now, and not its values: the file keeps its own.
[[nodiscard]] bool must_stay(std::string_view name, bool is_text);
/// Returns all attributes of variables that must stay, each as variable:name. Those of grid mappings are
/// computed and not among them; grids are compared by themselves.
[[nodiscard]] std::vector<Fixed> lasting_attributes(const Contents& contents);

}  // namespace tailrace::cf
