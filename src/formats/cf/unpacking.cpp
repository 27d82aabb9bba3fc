// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/unpacking.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ground/base/text.hpp"

namespace tailrace::cf {

namespace {

Result<std::vector<double>> numbers_of(const FoundVariable& variable, std::string_view name,
                                       std::size_t least, std::size_t most) {
  const FoundAttribute* const found = variable.find(name);
  if (found == nullptr) return std::vector<double>();
  std::vector<double> numbers = found->numbers();
  if (found->type != Number::none && numbers.size() >= least && numbers.size() <= most) return numbers;
  return Status(Code::format, cat("variable '", variable.name, "': attribute ", name, " must hold ",
                                  least == most ? counted(least, "number") : "numbers", ", and holds ",
                                  found->type == Number::none ? cat("the text \"", variable.text(name), "\"")
                                                              : counted(numbers.size(), "number")));
}

/// Returns the value that the NetCDF library stores in elements that were never written (netcdf.h,
/// NC_FILL_*). Returns nothing for single bytes, because all of their values may be data.
ByteVector default_fill_of(Number type) {
  ByteVector fill;
  const auto put = [&fill](auto value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    fill.assign(bytes.begin(), bytes.end());
  };
  switch (type) {
    case Number::none:
    case Number::int8:
    case Number::uint8:
      break;
    case Number::int16:
      put(std::int16_t{-32767});
      break;
    case Number::uint16:
      put(std::uint16_t{65535});
      break;
    case Number::int32:
      put(std::int32_t{-2147483647});
      break;
    case Number::uint32:
      put(std::uint32_t{4294967295});
      break;
    case Number::int64:
      put(std::int64_t{-9223372036854775806});
      break;
    case Number::uint64:
      put(std::uint64_t{18446744073709551614U});
      break;
    case Number::float32:
      put(9.9692099683868690e+36f);
      break;
    case Number::float64:
      put(9.9692099683868690e+36);
      break;
  }
  return fill;
}

/// Returns the type of a variable's elements. Classic files have no unsigned types, so an attribute may say
/// that the elements are unsigned.
Number type_of(const FoundVariable& variable) {
  const std::string text = lower_case(variable.text("_Unsigned"));
  if (text != "true") return variable.type;
  switch (variable.type) {
    case Number::int8:
      return Number::uint8;
    case Number::int16:
      return Number::uint16;
    case Number::int32:
      return Number::uint32;
    case Number::int64:
      return Number::uint64;
    default:
      return variable.type;
  }
}

Status add_missing(const FoundVariable& variable, bool has_default_fill, Unpacking& how) {
  const bool has_fill = variable.find("_FillValue") != nullptr;
  for (const std::string_view name : {"_FillValue", "missing_value"}) {
    const FoundAttribute* const found = variable.find(name);
    // Some writers have the text "NaN" here. It is ignored, because NaN is always missing.
    if (found == nullptr || found->type == Number::none) continue;
    const bool same_size = size_of(found->type) == size_of(how.type);
    if (same_size && found->type == variable.type) {
      // Copies the bytes, because a double does not hold every element of 64 bits.
      const auto size = static_cast<std::size_t>(size_of(how.type));
      for (std::size_t at = 0; at + size <= found->values.size(); at += size)
        how.missing.emplace_back(found->values.begin() + static_cast<std::ptrdiff_t>(at),
                                 found->values.begin() + static_cast<std::ptrdiff_t>(at + size));
      continue;
    }
    for (const double number : found->numbers()) {
      ByteVector element;
      if (append(element, how.type, number)) how.missing.push_back(std::move(element));
    }
  }
  if (!has_fill && has_default_fill) {
    if (ByteVector fill = default_fill_of(variable.type); !fill.empty())
      how.missing.push_back(std::move(fill));
  }
  return {};
}

Status add_limits(const FoundVariable& variable, Unpacking& how) {
  const FoundAttribute* limits = nullptr;
  const Result<std::vector<double>> range = numbers_of(variable, "valid_range", 2, 2);
  TR_TRY(range.status());
  if (!range->empty()) {
    limits = variable.find("valid_range");
    how.least = range->front();
    how.most = range->back();
  }
  for (const bool is_least : {true, false}) {
    const std::string_view name = is_least ? "valid_min" : "valid_max";
    const Result<std::vector<double>> limit = numbers_of(variable, name, 1, 1);
    TR_TRY(limit.status());
    if (limit->empty()) continue;
    limits = variable.find(name);
    (is_least ? how.least : how.most) = limit->front();
  }
  if (limits == nullptr) return {};
  // Limits have the type of the elements. If they have the type of the unpacked values, they hold for these
  // (NetCDF Users Guide, appendix A).
  const auto is_real = [](Number type) { return type == Number::float32 || type == Number::float64; };
  how.limits_are_unpacked = how.is_scaled && is_real(limits->type) && !is_real(how.type);
  // Rounds the limits to float32 like the elements: 0.1 as a float32 is more than 0.1 as a float64.
  if (how.type == Number::float32) {
    for (double* const each : {&how.least, &how.most}) {
      if (std::abs(*each) <= std::numeric_limits<float>::max()) *each = static_cast<float>(*each);
    }
  }
  // In a classic file the limits of unsigned elements are signed, as the elements are.
  if (how.type != variable.type && limits->type == variable.type) {
    const double span = std::ldexp(1.0, static_cast<int>(8 * size_of(how.type)));
    if (how.least < 0 && std::isfinite(how.least)) how.least += span;
    if (how.most < 0 && std::isfinite(how.most)) how.most += span;
  }
  return {};
}

/// Returns true if values of one type come from elements of the other. Integers come from integers, without
/// loss.
template <typename Value, typename Raw>
constexpr bool takes() {
  using Has = std::numeric_limits<Value>;
  using Given = std::numeric_limits<Raw>;
  return !Has::is_integer ||
         (Given::is_integer && Has::digits >= Given::digits && (Has::is_signed || !Given::is_signed));
}

template <typename Raw, typename Value>
Index unpack_as(const Unpacking& how, const std::byte* elements, Index stride, Index count,
                std::byte* values) {
  if constexpr (!takes<Value, Raw>()) return count;
  std::vector<Raw> missing(how.missing.size());
  for (std::size_t i = 0; i < missing.size(); ++i)
    std::memcpy(&missing[i], how.missing[i].data(), sizeof(Raw));
  const bool has_limits = std::isfinite(how.least) || std::isfinite(how.most);
  Index absent = 0;
  for (Index i = 0; i < count; ++i) {
    Raw raw;
    std::memcpy(&raw, elements + i * stride * Index{sizeof raw}, sizeof raw);
    const double unpacked =
        how.is_scaled ? static_cast<double>(raw) * how.scale + how.offset : static_cast<double>(raw);
    // Elements that are not scaled are converted directly: by way of float64 a NaN would lose its bits.
    Value value = how.is_scaled ? static_cast<Value>(unpacked) : static_cast<Value>(raw);
    bool is_missing = std::ranges::find(missing, raw) != missing.end();
    if (has_limits) {
      const double limited = how.limits_are_unpacked ? unpacked : static_cast<double>(raw);
      is_missing = is_missing || limited < how.least || limited > how.most;
    }
    if (is_missing) value = std::numeric_limits<Value>::quiet_NaN();
    if constexpr (std::is_integral_v<Value>) {
      absent += is_missing ? 1 : 0;
      if (is_missing) continue;
    } else {
      absent += value != value ? 1 : 0;
    }
    std::memcpy(values + i * Index{sizeof value}, &value, sizeof value);
  }
  return absent;
}

template <typename Value>
Index unpack_to(const Unpacking& how, const std::byte* elements, Index stride, Index count,
                std::byte* values) {
  switch (how.type) {
    case Number::none:
      break;
    case Number::int8:
      return unpack_as<std::int8_t, Value>(how, elements, stride, count, values);
    case Number::uint8:
      return unpack_as<std::uint8_t, Value>(how, elements, stride, count, values);
    case Number::int16:
      return unpack_as<std::int16_t, Value>(how, elements, stride, count, values);
    case Number::uint16:
      return unpack_as<std::uint16_t, Value>(how, elements, stride, count, values);
    case Number::int32:
      return unpack_as<std::int32_t, Value>(how, elements, stride, count, values);
    case Number::uint32:
      return unpack_as<std::uint32_t, Value>(how, elements, stride, count, values);
    case Number::int64:
      return unpack_as<std::int64_t, Value>(how, elements, stride, count, values);
    case Number::uint64:
      return unpack_as<std::uint64_t, Value>(how, elements, stride, count, values);
    case Number::float32:
      return unpack_as<float, Value>(how, elements, stride, count, values);
    case Number::float64:
      return unpack_as<double, Value>(how, elements, stride, count, values);
  }
  return 0;
}

/// Copies texts of `length` bytes to places of `room` bytes, and fills those with zeros. No text is missing.
Index copy_texts(Bytes length, const std::byte* elements, Index stride, Index count, Bytes room,
                 std::byte* values) {
  const Bytes kept = std::min(length, room);
  for (Index i = 0; i < count; ++i, values += room) {
    std::copy_n(elements + i * stride * length, kept, values);
    std::fill(values + kept, values + room, std::byte{0});
  }
  return 0;
}

}  // namespace

std::optional<ElementType> Unpacking::exact_type() const {
  if (text_bytes > 0) return text_type_of(text_bytes);
  if (is_scaled) return std::nullopt;
  switch (type) {
    case Number::int8:
      return ElementType::i8;
    case Number::uint8:
      return ElementType::byte;
    case Number::int16:
      return ElementType::i16;
    case Number::uint16:
      return ElementType::u16;
    case Number::int32:
      return ElementType::i32;
    case Number::uint32:
      return ElementType::u32;
    case Number::int64:
      return ElementType::i64;
    case Number::uint64:
      return ElementType::u64;
    case Number::none:
    case Number::float32:
    case Number::float64:
      break;
  }
  return std::nullopt;
}

Result<Unpacking> unpacking_of_coordinate(const FoundVariable& variable, bool has_default_fill) {
  Unpacking how;
  how.text_bytes = variable.text_bytes;
  if (how.text_bytes > 0) return how;
  how.type = type_of(variable);
  for (const bool is_scale : {true, false}) {
    const Result<std::vector<double>> number =
        numbers_of(variable, is_scale ? "scale_factor" : "add_offset", 1, 1);
    TR_TRY(number.status());
    if (number->empty()) continue;
    (is_scale ? how.scale : how.offset) = number->front();
    how.is_scaled = true;
  }
  TR_TRY(add_missing(variable, has_default_fill, how));
  return how;
}

Result<Unpacking> unpacking_of(const FoundVariable& variable, bool has_default_fill) {
  Result<Unpacking> how = unpacking_of_coordinate(variable, has_default_fill);
  TR_TRY(how.status());
  if (how->text_bytes > 0) return how;
  TR_TRY(add_limits(variable, *how));
  return how;
}

void unpack_coordinate(const Unpacking& how, std::span<double> elements) {
  std::vector<double> missing;
  for (const ByteVector& each : how.missing) missing.push_back(value_of(how.type, each.data()));
  for (double& each : elements) {
    if (std::ranges::find(missing, each) != missing.end())
      each = std::numeric_limits<double>::quiet_NaN();
    else if (how.is_scaled)
      each = each * how.scale + how.offset;
  }
}

Index unpack(const Unpacking& how, const std::byte* elements, Index stride, Index count, ElementType to,
             std::byte* values) {
  if (is_text(to)) return copy_texts(how.text_bytes, elements, stride, count, size_of(to), values);
  switch (to) {
    case ElementType::i8:
      return unpack_to<std::int8_t>(how, elements, stride, count, values);
    case ElementType::i16:
      return unpack_to<std::int16_t>(how, elements, stride, count, values);
    case ElementType::i32:
      return unpack_to<std::int32_t>(how, elements, stride, count, values);
    case ElementType::i64:
      return unpack_to<std::int64_t>(how, elements, stride, count, values);
    case ElementType::byte:
      return unpack_to<std::uint8_t>(how, elements, stride, count, values);
    case ElementType::u16:
      return unpack_to<std::uint16_t>(how, elements, stride, count, values);
    case ElementType::u32:
      return unpack_to<std::uint32_t>(how, elements, stride, count, values);
    case ElementType::u64:
      return unpack_to<std::uint64_t>(how, elements, stride, count, values);
    case ElementType::f32:
      return unpack_to<float>(how, elements, stride, count, values);
    default:
      return unpack_to<double>(how, elements, stride, count, values);
  }
}

}  // namespace tailrace::cf
