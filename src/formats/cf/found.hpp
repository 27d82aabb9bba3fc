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

// The dimensions, attributes and variables of a file of any writer, whatever its format is.
namespace tailrace::cf {

/// The types of numbers that files of other writers have. The values are not part of any format.
enum class Number : std::int32_t {
  none, /* texts, structures and all else that is no number */
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
/// Returns the size of one element in bytes, or 0 for what is no number.
[[nodiscard]] Bytes size_of(Number type);
[[nodiscard]] std::string_view name_of(Number type);
/// Returns the type of our own files' elements; Number::none for complex numbers.
[[nodiscard]] Number number_of(ElementType type);
/// Returns an element of the host's byte order as float64.
[[nodiscard]] double value_of(Number type, const std::byte* element);
/// Appends the value in the host's byte order. A value that the type does not hold appends nothing, and
/// returns false.
bool append(ByteVector& out, Number type, double value);

struct FoundAttribute {
  std::string name;
  Number type = Number::none;  // none: it is a text
  std::string text;
  ByteVector values;  // numbers of the host's byte order

  [[nodiscard]] std::vector<double> numbers() const;
};

struct FoundVariable {
  std::string name;
  std::vector<int> dimensions;  // slowest first
  Number type = Number::none;
  std::vector<FoundAttribute> attributes;

  /// Returns the attribute, or null.
  [[nodiscard]] const FoundAttribute* find(std::string_view attribute) const;
  /// Returns the text of an attribute without zeros and blanks at its end; empty if there is no such text.
  [[nodiscard]] std::string text(std::string_view attribute) const;
};

struct FoundContents {
  std::vector<Dimension> dimensions;  // with the length that they have, the record dimension too
  std::vector<FoundAttribute> attributes;
  std::vector<FoundVariable> variables;
  std::unordered_map<std::string, int>
      by_name{};  // see index_names(); empty: names are looked for one by one

  /// Makes find() quick, once all variables are there.
  void index_names();
  /// Returns the variable's number, or -1.
  [[nodiscard]] int find(std::string_view name) const;
  /// Returns the variable that an attribute of `by` names, or -1: the one in the group of `by`, or else in
  /// the nearest group around it. A name that begins with "/" is looked for from the root on.
  [[nodiscard]] int find_from(const FoundVariable& by, std::string_view name) const;
};

/// Returns a variable's name without its groups.
[[nodiscard]] std::string_view base_name(std::string_view name);

/// Reads all values of a variable as they lie in the file: neither scaled nor masked.
using ReadNumbers = std::function<Result<std::vector<double>>(std::size_t variable)>;

}  // namespace tailrace::cf
