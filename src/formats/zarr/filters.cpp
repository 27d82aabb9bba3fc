// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/filters.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "formats/zarr/reading.hpp"
#include "ground/base/text.hpp"

namespace tailrace::zarr {

namespace {

using cf::Json;
using cf::Number;

/// Calls `take` with a value of the C++ type that stands for `type`.
template <typename Take>
void with_type(Number type, const Take& take) {
  switch (type) {
    case Number::int8:
      return take(std::int8_t{});
    case Number::uint8:
      return take(std::uint8_t{});
    case Number::int16:
      return take(std::int16_t{});
    case Number::uint16:
      return take(std::uint16_t{});
    case Number::int32:
      return take(std::int32_t{});
    case Number::uint32:
      return take(std::uint32_t{});
    case Number::int64:
      return take(std::int64_t{});
    case Number::uint64:
      return take(std::uint64_t{});
    case Number::float32:
      return take(float{});
    case Number::float64:
      return take(double{});
    case Number::none:
      return;
  }
}

/// Converts a number. A damaged file may hold reals that no integer of the type can hold: they become the
/// nearest integer, and NaN becomes 0.
template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(value);
}

/// Calls `each` for one element after the other, and returns the results.
template <typename From, typename To, typename Each>
ByteVector mapped(const ByteVector& stored, const Each& each) {
  const std::size_t count = stored.size() / sizeof(From);
  ByteVector out(count * sizeof(To));
  for (std::size_t i = 0; i < count; ++i) {
    From value{};
    std::memcpy(&value, stored.data() + i * sizeof value, sizeof value);
    const To made = each(value);
    std::memcpy(out.data() + i * sizeof made, &made, sizeof made);
  }
  return out;
}

/// Adds two numbers. Integers wrap, as in NumPy.
template <typename To>
To sum(To one, To other) {
  if constexpr (std::is_integral_v<To>) {
    using Unsigned = std::make_unsigned_t<To>;
    return static_cast<To>(static_cast<Unsigned>(static_cast<Unsigned>(one) + static_cast<Unsigned>(other)));
  } else {
    return one + other;
  }
}

template <typename From, typename To>
ByteVector undone(const Filter& filter, const ByteVector& stored) {
  if (filter.kind == Filter::Kind::delta) {
    To last{};
    return mapped<From, To>(stored, [&](From each) { return last = sum(last, converted<To>(each)); });
  }
  if (filter.kind == Filter::Kind::cast)
    return mapped<From, To>(stored, [](From each) { return converted<To>(each); });
  // Like NumPy, divides float32 by a number in float32, and all other types in float64.
  using Real = std::conditional_t<std::is_same_v<From, float>, float, double>;
  const auto scale = static_cast<Real>(filter.scale), offset = static_cast<Real>(filter.offset);
  return mapped<From, To>(stored,
                          [&](From each) { return converted<To>(static_cast<Real>(each) / scale + offset); });
}

/// Reads a type as filters state it, "<f4" or "float32". Returns nothing if it is no type of numbers.
std::optional<Elements> elements_of(const Json& type) {
  if (!type.is_string()) return std::nullopt;
  auto text = type.get<std::string>();
  Elements read;
  const bool has_order = text.starts_with('<') || text.starts_with('>') || text.starts_with('|');
  if (text.starts_with('<')) read.endian = std::endian::little;
  if (text.starts_with('>')) read.endian = std::endian::big;
  if (has_order) text.erase(0, 1);
  read.type = number_named(text);
  if (cf::size_of(read.type) == 1) read.endian.reset();
  return read.type == Number::none ? std::nullopt : std::optional(read);
}

bool are_alike(const Elements& one, const Elements& other) {
  return one.type == other.type && (!one.endian || !other.endian || *one.endian == *other.endian);
}

/// A filter's name, and its keys for the types of elements before and behind it. Without the second key the
/// type stays the same.
struct FilterName {
  std::string_view name;
  Filter::Kind kind;
  const char *before, *behind;
};
constexpr FilterName filter_names[]{{"delta", Filter::Kind::delta, "dtype", "astype"},
                                    {"fixedscaleoffset", Filter::Kind::scale, "dtype", "astype"},
                                    {"quantize", Filter::Kind::cast, "dtype", "astype"},
                                    {"astype", Filter::Kind::cast, "decode_dtype", "encode_dtype"},
                                    {"bitround", Filter::Kind::cast, "", ""}};

}  // namespace

Result<std::optional<Filter>> read_filter(const std::string& name, const Json& configuration, Elements& now) {
  const auto* const known = std::ranges::find(filter_names, std::string_view(name), &FilterName::name);
  if (known == std::end(filter_names)) return std::optional<Filter>();
  const auto type_at = [&](const char* key, const Elements& otherwise) {
    const Json type = configuration.value(key, Json());
    return type.is_null() ? std::optional(otherwise) : elements_of(type);
  };
  const std::optional<Elements> before = type_at(known->before, now);
  const std::optional<Elements> behind = before ? type_at(known->behind, *before) : before;
  Filter filter{known->kind, behind ? behind->type : Number::none, now.type};
  if (known->kind == Filter::Kind::scale) {
    filter.scale = configuration.at("scale").get<double>();
    filter.offset = configuration.at("offset").get<double>();
  }
  if (!behind || !are_alike(*before, now) || filter.scale == 0)
    return Status(Code::unsupported,
                  cat("its chunks went through the filter '", name, "' of Zarr with ", configuration.dump(),
                      ": expected one for elements of ", cf::name_of(now.type),
                      " that makes numbers of them; such a filter is not read here"));
  // A filter keeps the byte order of the elements unless it states another one.
  const std::optional<std::endian> order = now.endian;
  now = *behind;
  if (!now.endian && cf::size_of(now.type) > 1) now.endian = order;
  return std::optional(filter);
}

ByteVector undo(const Filter& filter, const ByteVector& stored) {
  ByteVector out;
  with_type(filter.stored, [&]<typename From>(From) {
    with_type(filter.decoded, [&]<typename To>(To) { out = undone<From, To>(filter, stored); });
  });
  return out;
}

}  // namespace tailrace::zarr
