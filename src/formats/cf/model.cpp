// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cf {

Bytes size_of(Type type) {
  switch (type) {
    case Type::int8:
    case Type::text:
    case Type::uint8:
      return 1;
    case Type::int16:
    case Type::uint16:
      return 2;
    case Type::int32:
    case Type::uint32:
    case Type::float32:
      return 4;
    case Type::float64:
    case Type::int64:
    case Type::uint64:
      return 8;
  }
  return 0;
}

bool is_unsigned(Type type) {
  return type == Type::uint8 || type == Type::uint16 || type == Type::uint32 || type == Type::uint64;
}

bool holds(Type type, double value) {
  if (type == Type::float64) return true;
  if (type == Type::float32)
    return !std::isfinite(value) || std::fabs(value) <= std::numeric_limits<float>::max();
  const double bits = 8.0 * static_cast<double>(size_of(type));
  const double low = is_unsigned(type) ? 0 : -std::exp2(bits - 1);
  const double beyond = std::exp2(is_unsigned(type) ? bits : bits - 1);
  return value >= low && value < beyond && value == std::floor(value);
}

void swap(std::span<std::byte> elements, Bytes element_size) {
  copy_ordered(elements.data(), elements.data(), static_cast<Bytes>(elements.size()), element_size,
               std::endian::big);
}

void put_number(ByteVector& out, Type type, double value) {
  switch (type) {
    case Type::int8:
    case Type::text:
    case Type::uint8:
      return put_big_endian(out, static_cast<std::int8_t>(static_cast<std::int64_t>(value)));
    case Type::int16:
      return put_big_endian(out, static_cast<std::int16_t>(value));
    case Type::uint16:
      return put_big_endian(out, static_cast<std::uint16_t>(value));
    case Type::int32:
      return put_big_endian(out, static_cast<std::int32_t>(value));
    case Type::uint32:
      return put_big_endian(out, static_cast<std::uint32_t>(value));
    case Type::int64:
      return put_big_endian(out, static_cast<std::int64_t>(value));
    case Type::uint64:
      return put_big_endian(out, static_cast<std::uint64_t>(value));
    case Type::float32:
      return put_big_endian(out, static_cast<float>(value));
    case Type::float64:
      return put_big_endian(out, value);
  }
}

Attribute Attribute::text(std::string_view name, std::string_view value) {
  const auto bytes = std::as_bytes(std::span(value));
  return {std::string(name), Type::text, {bytes.begin(), bytes.end()}};
}

Attribute Attribute::number(std::string_view name, Type type, double value) {
  Attribute attribute{std::string(name), type, {}};
  put_number(attribute.values, type, value);
  return attribute;
}

std::optional<Bytes> Contents::bytes_of(const Variable& variable) const {
  Bytes product = size_of(variable.type);
  for (std::size_t i = is_record(variable) ? 1 : 0; i < variable.dimensions.size(); ++i) {
    const Index length = dimensions[static_cast<std::size_t>(variable.dimensions[i])].length;
    if (__builtin_mul_overflow(product, length, &product)) return std::nullopt;
  }
  if (product > std::numeric_limits<Bytes>::max() - 3) return std::nullopt;
  return product;
}

bool are_close(double one, double other, double usual) {
  constexpr double last_bits = 1e-9;
  if (!std::isfinite(one) || !std::isfinite(other)) return one == other;
  return std::fabs(one - other) <= last_bits * std::max(usual, std::fabs(one));
}

namespace {

bool values_are_close(std::span<const std::byte> one, std::span<const std::byte> other) {
  const auto number_at = [](std::span<const std::byte> values, std::size_t at) {
    std::array<std::byte, 8> bytes{};
    std::ranges::copy(values.subspan(at, bytes.size()), bytes.begin());
    swap(bytes, std::ssize(bytes));
    return std::bit_cast<double>(bytes);
  };
  if (one.size() != other.size()) return false;
  if (std::ranges::equal(one, other)) return true;
  double largest = 0;
  for (std::size_t at = 0; at + 8 <= one.size(); at += 8) {
    const double value = std::fabs(number_at(one, at));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (std::size_t at = 0; at + 8 <= one.size(); at += 8) {
    const double value = number_at(one, at), now = number_at(other, at);
    if (!are_close(value, now, std::min(largest, 1.0)) && !(std::isnan(value) && std::isnan(now)))
      return false;
  }
  return true;
}

}  // namespace

bool must_stay(std::string_view name, bool is_text) {
  return is_text ? name == "flag_meanings" || name == "cell_methods" : name != "_FillValue";
}

std::vector<Fixed> lasting_attributes(const Contents& contents) {
  std::vector<Fixed> lasting;
  const auto add = [&](const std::string& owner, const std::vector<Attribute>& attributes) {
    for (const Attribute& each : attributes) {
      if (must_stay(each.name, each.type == Type::text))
        lasting.push_back({cat(owner, ":", each.name), each.type, each.values});
    }
  };
  for (const Variable& each : contents.variables) {
    const auto is_mapping = [](const Attribute& attribute) { return attribute.name == grid_mapping_name; };
    if (std::ranges::none_of(each.attributes, is_mapping)) add(each.name, each.attributes);
  }
  return lasting;
}

Status check_same(const std::vector<Fixed>& own, const std::vector<Fixed>& now, std::string_view what,
                  bool exactly) {
  const auto differs = [what](const Fixed& each, std::string_view how) {
    return Status(Code::state, cat("the ", what, " '", each.name, "' ", how,
                                   "; a run that continues defines the same stream as before"));
  };
  for (const Fixed& each : own) {
    const auto same = std::ranges::find(now, each.name, &Fixed::name);
    if (same == now.end()) return differs(each, "is in the file, and the stream has none");
    const bool may_be_close = each.type == Type::float64 && !exactly;
    const bool is_same =
        each.type == same->type && (may_be_close ? values_are_close(each.values, same->values)
                                                 : std::ranges::equal(each.values, same->values));
    if (!is_same) return differs(each, "has other values in the file");
  }
  for (const Fixed& each : now) {
    if (std::ranges::find(own, each.name, &Fixed::name) == own.end())
      return differs(each, "is not in the file, and the stream has one");
  }
  return {};
}

Status Contents::add(Variable variable) {
  if (variable.name.size() > most_name)
    return {Code::argument,
            cat("the name '", variable.name, "' is longer than the ", most_name, " bytes that NetCDF takes")};
  if (names.contains(variable.name))
    return {Code::argument, cat("a variable '", variable.name, "' is there already")};
  if (!bytes_of(variable))
    return {Code::argument, cat("variable '", variable.name, "' has more than 2^63 bytes")};
  names.insert(variable.name);
  variables.push_back(std::move(variable));
  return {};
}

}  // namespace tailrace::cf
