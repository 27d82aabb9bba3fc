// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/found.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace tailrace::cf {

namespace {

struct NumberInfo {
  std::string_view name;
  Bytes size = 0;
};
constexpr std::array<NumberInfo, 11> number_infos{{{"no number", 0},
                                                   {"int8", 1},
                                                   {"uint8", 1},
                                                   {"int16", 2},
                                                   {"uint16", 2},
                                                   {"int32", 4},
                                                   {"uint32", 4},
                                                   {"int64", 8},
                                                   {"uint64", 8},
                                                   {"float32", 4},
                                                   {"float64", 8}}};

template <typename T>
double loaded(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return static_cast<double>(value);
}

template <typename T>
bool append_as(ByteVector& out, double value) {
  T number{};
  if constexpr (std::is_integral_v<T>) {
    // The largest 64-bit integers are no doubles, so the upper bound is the power of two above them.
    constexpr double least = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double beyond = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
    if (!(value >= least && value < beyond)) return false;
    number = static_cast<T>(value);
    if (static_cast<double>(number) != value) return false;
  } else {
    number = static_cast<T>(value);
  }
  const auto bytes = std::as_bytes(std::span(&number, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
  return true;
}

}  // namespace

Bytes size_of(Number type) { return number_infos[static_cast<std::size_t>(type)].size; }
std::string_view name_of(Number type) { return number_infos[static_cast<std::size_t>(type)].name; }

Number number_of(ElementType type) {
  switch (type) {
    case ElementType::i8:
      return Number::int8;
    case ElementType::i16:
      return Number::int16;
    case ElementType::i32:
      return Number::int32;
    case ElementType::i64:
      return Number::int64;
    case ElementType::f32:
      return Number::float32;
    case ElementType::f64:
      return Number::float64;
    case ElementType::byte:
      return Number::uint8;
    case ElementType::u16:
      return Number::uint16;
    case ElementType::u32:
      return Number::uint32;
    case ElementType::u64:
      return Number::uint64;
    case ElementType::c64:
    case ElementType::c128:
      break;
  }
  return Number::none;
}

double value_of(Number type, const std::byte* element) {
  switch (type) {
    case Number::none:
      break;
    case Number::int8:
      return loaded<std::int8_t>(element);
    case Number::uint8:
      return loaded<std::uint8_t>(element);
    case Number::int16:
      return loaded<std::int16_t>(element);
    case Number::uint16:
      return loaded<std::uint16_t>(element);
    case Number::int32:
      return loaded<std::int32_t>(element);
    case Number::uint32:
      return loaded<std::uint32_t>(element);
    case Number::int64:
      return loaded<std::int64_t>(element);
    case Number::uint64:
      return loaded<std::uint64_t>(element);
    case Number::float32:
      return loaded<float>(element);
    case Number::float64:
      return loaded<double>(element);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

bool append(ByteVector& out, Number type, double value) {
  switch (type) {
    case Number::none:
      break;
    case Number::int8:
      return append_as<std::int8_t>(out, value);
    case Number::uint8:
      return append_as<std::uint8_t>(out, value);
    case Number::int16:
      return append_as<std::int16_t>(out, value);
    case Number::uint16:
      return append_as<std::uint16_t>(out, value);
    case Number::int32:
      return append_as<std::int32_t>(out, value);
    case Number::uint32:
      return append_as<std::uint32_t>(out, value);
    case Number::int64:
      return append_as<std::int64_t>(out, value);
    case Number::uint64:
      return append_as<std::uint64_t>(out, value);
    case Number::float32:
      return append_as<float>(out, value);
    case Number::float64:
      return append_as<double>(out, value);
  }
  return false;
}

std::vector<double> FoundAttribute::numbers() const {
  std::vector<double> read;
  const auto size = static_cast<std::size_t>(size_of(type));
  for (std::size_t at = 0; size > 0 && at + size <= values.size(); at += size)
    read.push_back(value_of(type, values.data() + at));
  return read;
}

const FoundAttribute* FoundVariable::find(std::string_view attribute) const {
  const auto found = std::ranges::find(attributes, attribute, &FoundAttribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::string FoundVariable::text(std::string_view attribute) const {
  const FoundAttribute* const found = find(attribute);
  if (found == nullptr || found->type != Number::none) return "";
  const std::size_t last = found->text.find_last_not_of(std::string_view("\0 ", 2));
  return found->text.substr(0, last == std::string::npos ? 0 : last + 1);
}

void FoundContents::index_names() {
  by_name.clear();
  for (std::size_t i = 0; i < variables.size(); ++i) by_name.emplace(variables[i].name, static_cast<int>(i));
}

int FoundContents::find(std::string_view name) const {
  if (!by_name.empty()) {
    const auto known = by_name.find(std::string(name));
    return known == by_name.end() ? -1 : known->second;
  }
  const auto found = std::ranges::find(variables, name, &FoundVariable::name);
  return found == variables.end() ? -1 : static_cast<int>(found - variables.begin());
}

int FoundContents::find_from(const FoundVariable& by, std::string_view name) const {
  if (name.starts_with("/")) return find(name.substr(1));
  const std::size_t own = by.name.rfind('/');
  for (std::string group = own == std::string::npos ? "" : by.name.substr(0, own + 1);;) {
    const int found = find(group + std::string(name));
    if (found >= 0 || group.empty()) return found;
    group.pop_back();
    const std::size_t outer = group.rfind('/');
    group.resize(outer == std::string::npos ? 0 : outer + 1);
  }
}

std::string_view base_name(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

}  // namespace tailrace::cf
