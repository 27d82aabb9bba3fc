// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ground/base/types.hpp"

namespace tailrace::layout {

/// Sixteen bytes in one register.
typedef char Vector16 __attribute__((vector_size(16)));

template <typename T>
inline T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
inline void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// Copies sizeof(T) to 2*sizeof(T) bytes: the first and the last sizeof(T) bytes, which may overlap.
template <typename T>
inline void copy_ends(std::byte* to, const std::byte* from, Bytes length) {
  const T first = load<T>(from), last = load<T>(from + length - Bytes{sizeof(T)});
  store(to, first);
  store(to + length - Bytes{sizeof(T)}, last);
}

inline void copy_line(std::byte* __restrict to, const std::byte* __restrict from) {
  const Vector16 a = load<Vector16>(from), b = load<Vector16>(from + 16), c = load<Vector16>(from + 32),
                 d = load<Vector16>(from + 48);
  store(to, a);
  store(to + 16, b);
  store(to + 32, c);
  store(to + 48, d);
}

/// Copies one contiguous run of at least 128 bytes. `to` and `from` do not overlap.
void copy_long_run(std::byte* __restrict to, const std::byte* __restrict from, Bytes length);

/// Copies one contiguous run of any length. `to` and `from` do not overlap.
inline void copy_run(std::byte* __restrict to, const std::byte* __restrict from, Bytes length) {
  if (length >= 256) return copy_long_run(to, from, length);
  if (length >= 64) {
    const std::byte* const last = from + length - 64;
    std::byte* const last_to = to + length - 64;
    for (; from < last; from += 64, to += 64) copy_line(to, from);
    return copy_line(last_to, last);
  }
  if (length >= 32) {
    copy_ends<Vector16>(to, from, 32);
    return copy_ends<Vector16>(to + length - 32, from + length - 32, 32);
  }
  if (length >= 16) return copy_ends<Vector16>(to, from, length);
  if (length >= 8) return copy_ends<std::uint64_t>(to, from, length);
  if (length >= 4) return copy_ends<std::uint32_t>(to, from, length);
  if (length >= 2) return copy_ends<std::uint16_t>(to, from, length);
  if (length == 1) *to = *from;
}

/// Writes runs one after another. If the processor has stores that go past the caches, it uses them: the
/// bytes, which nobody on this core reads soon, then displace nothing from the caches, and their lines are
/// not read before they are overwritten. A cache line that several runs share is assembled first. Call
/// finish() before another core is told that the bytes are there: a release store alone does not order these
/// stores.
class StreamWriter {
 public:
  explicit StreamWriter(std::byte* to) : to_(to), begin_(offset_in_line(to)), end_(begin_) {}

  /// Writes `length` bytes behind those written before. `from` and the place written to do not overlap.
  void append(const std::byte* from, Bytes length);
  /// Writes the rest. Called once, at the end.
  void finish();

 private:
  static constexpr Bytes line_bytes = 64;
  static Bytes offset_in_line(const std::byte* at) {
    return static_cast<Bytes>(reinterpret_cast<std::uintptr_t>(at) % line_bytes);
  }
  void write_line();

  alignas(line_bytes) std::byte line_[line_bytes];  // its bytes begin_ .. end_ are not written to memory yet
  std::byte* to_;                                   // the place in memory for these bytes
  Bytes begin_;
  Bytes end_;
};

/// Returns false for most texts, whose elements are copied as runs of bytes.
inline bool is_size_of_number(Bytes element) {
  return element == 1 || element == 2 || element == 4 || element == 8 || element == 16;
}

/// Calls body(std::integral_constant) with the element size, which is_size_of_number(). The compiler then
/// knows the size, and copies an element by one load and one store.
template <typename Body>
inline void with_size(Bytes element, const Body& body) {
  switch (element) {
    case 1:
      return body(std::integral_constant<Bytes, 1>{});
    case 2:
      return body(std::integral_constant<Bytes, 2>{});
    case 4:
      return body(std::integral_constant<Bytes, 4>{});
    case 8:
      return body(std::integral_constant<Bytes, 8>{});
    default:
      return body(std::integral_constant<Bytes, 16>{});
  }
}

}  // namespace tailrace::layout
