// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/byte_order.hpp"

#include <cstdint>
#include <cstring>

namespace tailrace {

namespace {

std::uint8_t reversed(std::uint8_t value) { return value; }
std::uint16_t reversed(std::uint16_t value) { return __builtin_bswap16(value); }
std::uint32_t reversed(std::uint32_t value) { return __builtin_bswap32(value); }
std::uint64_t reversed(std::uint64_t value) { return __builtin_bswap64(value); }

template <typename T>
[[gnu::always_inline]] inline void copy_each(std::byte* to, const std::byte* from, Bytes length) {
  for (Bytes at = 0; at < length; at += Bytes{sizeof(T)}) {
    T value;
    std::memcpy(&value, from + at, sizeof value);
    value = reversed(value);
    std::memcpy(to + at, &value, sizeof value);
  }
}

[[gnu::always_inline]] inline void copy_sized(std::byte* to, const std::byte* from, Bytes length,
                                              Bytes size) {
  if (size == 1) copy_each<std::uint8_t>(to, from, length);
  if (size == 2) copy_each<std::uint16_t>(to, from, length);
  if (size == 4) copy_each<std::uint32_t>(to, from, length);
  if (size == 8) copy_each<std::uint64_t>(to, from, length);
}

void copy_plain(std::byte* to, const std::byte* from, Bytes length, Bytes size) {
  copy_sized(to, from, length, size);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) void copy_wide(std::byte* to, const std::byte* from, Bytes length,
                                               Bytes size) {
  copy_sized(to, from, length, size);
}
const bool has_wide = __builtin_cpu_supports("avx2");
#else
constexpr bool has_wide = false;
constexpr auto* copy_wide = copy_plain;
#endif

}  // namespace

void copy_reversed(std::byte* to, const std::byte* from, Bytes length, Bytes size) {
  (has_wide ? copy_wide : copy_plain)(to, from, length, size);
}

void copy_ordered(std::byte* to, const std::byte* from, Bytes length, Bytes size, std::endian order) {
  if (order == std::endian::native || size == 1)
    std::memmove(to, from, static_cast<std::size_t>(length));
  else
    copy_reversed(to, from, length, size);
}

}  // namespace tailrace
