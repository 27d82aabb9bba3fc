// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/json.hpp"

#include <cmath>
#include <cstring>

namespace tailrace::cf {

namespace {

template <typename T>
T from_big_endian(std::span<const std::byte> bytes) {
  ByteVector own(bytes.begin(), bytes.end());
  swap(own, sizeof(T));
  T value{};
  std::memcpy(&value, own.data(), sizeof value);
  return value;
}

Json number_of_real(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t there = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < there ? static_cast<std::uint32_t>(bytes[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) text += i <= there ? letters[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

Json number_of(Type type, std::span<const std::byte> bytes) {
  switch (type) {
    case Type::int8:
      return from_big_endian<std::int8_t>(bytes);
    case Type::uint8:
    case Type::text:
      return from_big_endian<std::uint8_t>(bytes);
    case Type::int16:
      return from_big_endian<std::int16_t>(bytes);
    case Type::uint16:
      return from_big_endian<std::uint16_t>(bytes);
    case Type::int32:
      return from_big_endian<std::int32_t>(bytes);
    case Type::uint32:
      return from_big_endian<std::uint32_t>(bytes);
    case Type::int64:
      return from_big_endian<std::int64_t>(bytes);
    case Type::uint64:
      return from_big_endian<std::uint64_t>(bytes);
    case Type::float32:
      return number_of_real(static_cast<double>(from_big_endian<float>(bytes)));
    case Type::float64:
      return number_of_real(from_big_endian<double>(bytes));
  }
  return nullptr;
}

Json value_of(const Attribute& attribute) {
  if (attribute.type == Type::text)
    return std::string(reinterpret_cast<const char*>(attribute.values.data()), attribute.values.size());
  const auto size = static_cast<std::size_t>(size_of(attribute.type));
  Json list = Json::array();
  for (std::size_t at = 0; at + size <= attribute.values.size(); at += size)
    list.push_back(number_of(attribute.type, std::span(attribute.values).subspan(at, size)));
  return list.size() == 1 ? list.front() : list;
}

}  // namespace tailrace::cf
