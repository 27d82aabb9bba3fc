// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/cf/model.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

// The dimensions, attributes and variables that were found in a file of any writer, for all formats with
// variables.
namespace tailrace::cf {

/// The types of numbers in files of any writer. The enumerators' values are not part of any format.
enum class Number : std::int32_t {
  none, /* no number: texts, structures and others */
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64,
};
/// Returns the size of one element in bytes, or 0 for Number::none.
[[nodiscard]] Bytes size_of(Number type);
[[nodiscard]] std::string_view name_of(Number type);
/// Returns the type that elements of a field have in files of Tailrace; Number::none for complex numbers.
[[nodiscard]] Number number_of(ElementType type);
/// Returns an element, which is in the host's byte order, as float64.
[[nodiscard]] double value_of(Number type, const std::byte* element);
/// Appends the value as an element of the type, in the host's byte order. Returns false, and appends nothing,
/// if the type cannot hold the value.
bool append(ByteVector& out, Number type, double value);

struct FoundAttribute {
  std::string name;
  Number type = Number::none;  // none: the attribute is a text
  std::string text;
  ByteVector values;  // numbers in the host's byte order

  [[nodiscard]] std::vector<double> numbers() const;
};

struct FoundVariable {
  std::string name;
  std::vector<int> dimensions;  // slowest first
  Number type = Number::none;
  std::vector<FoundAttribute> attributes;
  /// > 0: the elements are texts of so many bytes, and `type` is none. The dimension along which the bytes of
  /// a text lie is none of `dimensions`.
  Bytes text_bytes = 0;

  /// Returns the size of an element as the file has it; 0 if it is neither a number nor a text.
  [[nodiscard]] Bytes element_bytes() const { return text_bytes > 0 ? text_bytes : size_of(type); }
  /// Returns the attribute, or null.
  [[nodiscard]] const FoundAttribute* find(std::string_view attribute) const;
  /// Returns the text of an attribute, without zeros and blanks at its end. Empty if no attribute with a text
  /// has this name.
  [[nodiscard]] std::string text(std::string_view attribute) const;
};

struct FoundContents {
  std::vector<Dimension> dimensions;  // also the record dimension has its actual length, not 0
  std::vector<FoundAttribute> attributes;
  std::vector<FoundVariable> variables;
  std::unordered_map<std::string, int>
      by_name{};  // made by index_names(); while it is empty, find() compares one name after the other

  /// Makes find() quick, once all variables are there.
  void index_names();
  /// Returns the variable's number, or -1.
  [[nodiscard]] int find(std::string_view name) const;
  /// Returns the number of the variable that an attribute of `by` names, or -1. Looks in the group of `by`,
  /// then in the groups around it, the nearest first. A name that begins with "/" counts from the root.
  [[nodiscard]] int find_from(const FoundVariable& by, std::string_view name) const;
};

/// Returns a variable's name without its groups.
[[nodiscard]] std::string_view base_name(std::string_view name);

/// Reads all values of a variable as the file has them, neither scaled nor masked.
using ReadNumbers = std::function<Result<std::vector<double>>(std::size_t variable)>;

}  // namespace tailrace::cf
