// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "formats/netcdf4/filters.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

// Indices of the filter's parameters. A chunk begins with a head, in little-endian numbers: the bits of a
// packed number (4 bytes), the size of the smallest value (1 byte), and the smallest value (16 bytes, of
// which the library uses 8).
enum : std::size_t {
  method_at,
  factor_at,
  count_at,
  class_at,
  size_at,
  sign_at,
  order_at,
  has_fill_at,
  fill_at
};
constexpr unsigned float_by_decimals = 0;  // the method
constexpr unsigned floats = 1;             // the class; 0 = integers
constexpr std::size_t bits_bytes = 4, smallest_at = 5, head_bytes = 21;

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return number;
}

/// Reads numbers of at most 64 bits that stand one behind the other, the highest bit first. The caller has
/// checked that there are enough bytes.
class Bits {
 public:
  explicit Bits(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t take(unsigned count) {
    constexpr unsigned half = 32;
    if (count <= half) return take_half(count);
    const std::uint64_t high = take_half(count - half);
    return high << half | take_half(half);
  }

 private:
  std::uint64_t take_half(unsigned count) {
    for (; held_ < count; held_ += 8) bits_ = bits_ << 8 | std::to_integer<std::uint64_t>(bytes_[next_++]);
    held_ -= count;
    return bits_ >> held_ & ((std::uint64_t{1} << count) - 1);
  }
  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
  std::uint64_t bits_ = 0;  // the lowest `held_` bits, at most 39, are still to be taken
  unsigned held_ = 0;
};

/// The packing of a chunk, from its head and the parameters of the filter. `smallest` and `fill` hold the
/// bits of values.
struct Scaled {
  unsigned bits = 0;
  std::uint64_t smallest = 0;
  std::uint64_t fill = 0;
  bool has_fill = false;  // the highest packed number stands for `fill`
  int decimals = 0;
  std::span<const std::byte> numbers;
};

template <typename Value>
Value scale_of(const Scaled& chunk) {
  if constexpr (std::is_integral_v<Value>) return 1;
  return static_cast<Value>(std::pow(Value{10}, static_cast<Value>(chunk.decimals)));
}

/// Returns the value of a packed number. Sums of integers, signed or not, wrap modulo 2^bits. Like the
/// library, computes reals in their own precision.
template <typename Value>
Value value_of(const Scaled& chunk, std::uint64_t number, [[maybe_unused]] Value scale) {
  if constexpr (std::is_integral_v<Value>) {
    return static_cast<Value>(number + chunk.smallest);
  } else {
    using Whole = std::conditional_t<sizeof(Value) == 4, std::int32_t, std::int64_t>;
    using Stored = std::make_unsigned_t<Whole>;
    const auto smallest = std::bit_cast<Value>(static_cast<Stored>(chunk.smallest));
    return static_cast<Value>(static_cast<Whole>(number)) / scale + smallest;
  }
}

template <typename Value>
Value fill_of(const Scaled& chunk) {
  using Stored = std::conditional_t<std::is_same_v<Value, float>, std::uint32_t,
                                    std::conditional_t<std::is_same_v<Value, double>, std::uint64_t, Value>>;
  return std::bit_cast<Value>(static_cast<Stored>(chunk.fill));
}

template <typename Value>
void unpack(const Scaled& chunk, std::span<std::byte> out) {
  Bits bits(chunk.numbers);
  const std::uint64_t highest = (std::uint64_t{1} << chunk.bits) - 1;
  const Value fill = fill_of<Value>(chunk), scale = scale_of<Value>(chunk);
  for (std::size_t at = 0; at < out.size(); at += sizeof(Value)) {
    const std::uint64_t number = bits.take(chunk.bits);
    const Value value = chunk.has_fill && number == highest ? fill : value_of(chunk, number, scale);
    std::memcpy(&out[at], &value, sizeof value);
  }
}

void unpack(const Scaled& chunk, unsigned kind, Bytes element, std::span<std::byte> out) {
  if (kind == floats) return element == 4 ? unpack<float>(chunk, out) : unpack<double>(chunk, out);
  if (element == 1) return unpack<std::uint8_t>(chunk, out);
  if (element == 2) return unpack<std::uint16_t>(chunk, out);
  if (element == 4) return unpack<std::uint32_t>(chunk, out);
  unpack<std::uint64_t>(chunk, out);
}

Status contradiction(std::string_view what) {
  return {Code::corrupt, cat("a chunk of the filter scaleoffset: ", what)};
}

Result<Scaled> read_head(const Filter& filter, Bytes element, std::span<const std::byte> bytes, Index count) {
  if (bytes.size() < head_bytes)
    return contradiction(cat("expected a head of ", head_bytes, " bytes, got ", bytes.size()));
  Scaled chunk;
  const std::uint64_t bits = little_endian(bytes.first(bits_bytes)),
                      most = 8 * static_cast<std::uint64_t>(element);
  if (bits > most) return contradiction(cat("expected numbers of at most ", most, " bits, got ", bits));
  chunk.bits = static_cast<unsigned>(bits);
  const std::size_t smallest = std::min<std::size_t>(std::to_integer<std::size_t>(bytes[bits_bytes]), 8);
  chunk.smallest = little_endian(bytes.subspan(smallest_at, smallest));
  chunk.has_fill = filter.values[has_fill_at] != 0;
  for (std::size_t i = filter.values.size(); i-- > fill_at;) chunk.fill = chunk.fill << 32 | filter.values[i];
  chunk.decimals = static_cast<int>(filter.values[factor_at]);
  chunk.numbers = bytes.subspan(head_bytes);
  // A chunk has at most 2^30 bytes, so this product cannot overflow.
  const std::uint64_t needed = (static_cast<std::uint64_t>(count) * bits + 7) / 8;
  if (chunk.numbers.size() < needed)
    return contradiction(
        cat("expected ", count, " numbers of ", bits, " bits, got ", counted(chunk.numbers.size(), "byte")));
  return chunk;
}

}  // namespace

Status check_scale_offset(const Filter& filter) {
  if (filter.values.size() <= class_at || filter.values[class_at] != floats ||
      filter.values[method_at] == float_by_decimals)
    return {};
  return {Code::unsupported,
          cat("its chunks went through the filter 'scaleoffset' of HDF5 by method ", filter.values[method_at],
              ", which is not read: expected integers, or reals with a number of decimals (method 0)")};
}

Status undo_scale_offset(const Filter& filter, Bytes element, std::endian order,
                         std::span<const std::byte> bytes, std::span<std::byte> out) {
  const Index count = std::ssize(out) / element;
  if (filter.values.size() < fill_at || filter.values[class_at] > floats ||
      static_cast<Bytes>(filter.values[size_at]) != element ||
      static_cast<Index>(filter.values[count_at]) != count ||
      (filter.values[class_at] == floats && element < 4))
    return contradiction("its parameters contradict the type and the shape of the chunks");
  const Result<Scaled> chunk = read_head(filter, element, bytes, count);
  TR_TRY(chunk.status());
  if (static_cast<Bytes>(chunk->bits) == 8 * element) {
    // Numbers that need all bits stand in the chunk unpacked, in the byte order of the writer's processor.
    // Like the library, takes this order to be little-endian.
    if (order == std::endian::big)
      copy_reversed(out.data(), chunk->numbers.data(), std::ssize(out), element);
    else
      std::memcpy(out.data(), chunk->numbers.data(), out.size());
    return {};
  }
  unpack(*chunk, filter.values[class_at], element, out);
  copy_ordered(out.data(), out.data(), std::ssize(out), element, order);
  return {};
}

}  // namespace tailrace::netcdf4
