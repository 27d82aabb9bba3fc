// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/reading/grib_groups.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sources {

namespace {

using grib2::get_number;
using Octets = std::span<const std::byte>;

constexpr std::int64_t absent = std::numeric_limits<std::int64_t>::max();
constexpr Index most_bits = 32;

/// A list of unsigned numbers of `width` bits each, without gaps. Up to eight bytes behind the last number
/// are read.
class Bits {
 public:
  Bits() = default;
  Bits(const std::byte* octets, Index bit, int width) : octets_(octets), bit_(bit), width_(width) {}

  std::int64_t next() {
    if (width_ == 0) return 0;
    std::uint64_t word = 0;
    std::memcpy(&word, octets_ + bit_ / 8, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    const auto value = static_cast<std::int64_t>(word << (bit_ % 8) >> (64 - width_));
    bit_ += width_;
    return value;
  }
  [[nodiscard]] Index bit() const { return bit_; }

 private:
  const std::byte* octets_ = nullptr;
  Index bit_ = 0;
  int width_ = 0;
};

/// The description of the groups in section 5.
struct Groups {
  Index count = 0;
  int reference_bits = 0;
  int missing = 0;  // 0: none, 1: the largest code means missing, 2: the two largest do
  Index least_width = 0;
  int width_bits = 0;
  Index least_length = 0;
  Index length_unit = 0;
  Index last_length = 0;
  int length_bits = 0;
  int order = 0;  // of the spatial differences; 0: none
  int extra_octets = 0;
};

Result<Groups> groups_of(Octets section) {
  const auto at = [&](std::size_t octet, int width) {
    return static_cast<std::int64_t>(get_number(&section[octet - 1], width));
  };
  const bool has_differences = get_number(&section[9], 2) == 3;
  const std::size_t least = has_differences ? 49 : 47;
  if (section.size() < least)
    return contradiction("octets of section 5", static_cast<Index>(least),
                         static_cast<Index>(section.size()));
  Groups groups;
  groups.reference_bits = static_cast<int>(at(20, 1));
  groups.missing = static_cast<int>(at(23, 1));
  groups.count = at(32, 4);
  groups.least_width = at(36, 1);
  groups.width_bits = static_cast<int>(at(37, 1));
  groups.least_length = at(38, 4);
  groups.length_unit = at(42, 1);
  groups.last_length = at(43, 4);
  groups.length_bits = static_cast<int>(at(47, 1));
  if (has_differences) {
    groups.order = static_cast<int>(at(48, 1));
    groups.extra_octets = static_cast<int>(at(49, 1));
    if (groups.order > 2) return contradiction("order of spatial differences, at most", 2, groups.order);
    if (groups.extra_octets > 8)
      return contradiction("octets of extra descriptors, at most", 8, groups.extra_octets);
  }
  for (const int bits : {groups.reference_bits, groups.width_bits, groups.length_bits}) {
    if (bits > most_bits) return contradiction("bits of a group's numbers, at most", most_bits, bits);
  }
  if (groups.missing > 2) return contradiction("management of missing values, at most", 2, groups.missing);
  return groups;
}

/// Turns differences back into values, in place. `first` are the first values, `least` was subtracted from
/// all differences. A damaged message may overflow the sums: unsigned numbers wrap without harm.
void add_up(std::span<std::int64_t> numbers, int order, const std::array<std::int64_t, 2>& first,
            std::int64_t least) {
  std::uint64_t last = 0, before = 0;
  int seen = 0;
  for (std::int64_t& number : numbers) {
    if (number == absent) continue;
    auto sum = static_cast<std::uint64_t>(number);
    if (seen < order) {
      sum = static_cast<std::uint64_t>(first[static_cast<std::size_t>(seen++)]);
    } else {
      sum += static_cast<std::uint64_t>(least) + (order == 1 ? last : 2 * last - before);
    }
    before = last;
    last = sum;
    number = static_cast<std::int64_t>(sum);
  }
}

/// Reads the references, widths and lengths of all groups, and then the values of each group.
class GroupReader {
 public:
  GroupReader(const Groups& groups, Octets data) : groups_(groups), data_(data) {}

  Status read(std::span<std::int64_t> numbers) {
    // A group without values and bits takes no bytes. So the file's size does not limit the number of groups;
    // the number of values does.
    const Index most_groups = std::max<Index>(std::ssize(numbers), 1);
    if (groups_.count > most_groups)
      return contradiction("number of groups, at most", most_groups, groups_.count);
    const Index bits = static_cast<Index>(data_.size()) * 8;
    Index at = Index{groups_.extra_octets} * 8 * (groups_.order == 0 ? 0 : groups_.order + 1);
    Bits lists[3];
    int number = 0;
    for (const int width : {groups_.reference_bits, groups_.width_bits, groups_.length_bits}) {
      lists[number++] = Bits(data_.data(), at, width);
      at = (at + groups_.count * width + 7) / 8 * 8;
      if (at > bits) return contradiction("octets of group descriptors, at most", bits / 8, at / 8);
    }
    std::size_t done = 0;
    for (Index group = 0; group < groups_.count; ++group) {
      const std::int64_t reference = lists[0].next(), width = lists[1].next() + groups_.least_width;
      Index length = lists[2].next() * groups_.length_unit + groups_.least_length;
      if (group == groups_.count - 1) length = groups_.last_length;
      if (width > most_bits) return contradiction("bits of a group's values, at most", most_bits, width);
      if (length > static_cast<Index>(numbers.size() - done))
        return contradiction("values of the groups", static_cast<Index>(numbers.size()),
                             static_cast<Index>(done) + length);
      if (length * width > bits - at)
        return contradiction("bits of a group's values, at most", bits - at, length * width);
      take(numbers.subspan(done, static_cast<std::size_t>(length)), reference,
           Bits(data_.data(), at, static_cast<int>(width)), static_cast<int>(width));
      at += length * width;
      done += static_cast<std::size_t>(length);
    }
    if (done == numbers.size()) return {};
    return contradiction("values of the groups", static_cast<Index>(numbers.size()),
                         static_cast<Index>(done));
  }

 private:
  void take(std::span<std::int64_t> numbers, std::int64_t reference, Bits codes, int width) const {
    // A group of width 0 has no codes: all its values are the reference, which also says if they are missing.
    const int code_bits = width == 0 ? groups_.reference_bits : width;
    const std::int64_t least_absent = (std::int64_t{1} << code_bits) - groups_.missing;
    for (std::int64_t& number : numbers) {
      const std::int64_t code = codes.next();
      const bool is_absent = groups_.missing > 0 && (width == 0 ? reference : code) >= least_absent;
      number = is_absent ? absent : reference + code;
    }
  }

  const Groups& groups_;
  const Octets data_;
};

std::int64_t sign_and_magnitude(std::uint64_t number, int octets) {
  const std::uint64_t sign = std::uint64_t{1} << (8 * octets - 1);
  const auto magnitude = static_cast<std::int64_t>(number & (sign - 1));
  return (number & sign) != 0 ? -magnitude : magnitude;
}

template <typename Number, typename Word>
void copy_numbers(const std::byte* from, Index count, double* to) {
  for (Index i = 0; i < count; ++i) {
    Word word = 0;
    std::memcpy(&word, from + i * static_cast<Index>(sizeof word), sizeof word);
    if constexpr (std::endian::native == std::endian::little)
      word = sizeof word == 4 ? static_cast<Word>(__builtin_bswap32(static_cast<std::uint32_t>(word)))
                              : static_cast<Word>(__builtin_bswap64(word));
    to[i] = std::bit_cast<Number>(word);
  }
}

}  // namespace

bool is_complex(Octets representation) {
  const std::uint64_t packing = get_number(&representation[9], 2);
  return packing == 2 || packing == 3;
}

Status decode_groups(Octets representation, Octets data, Index count, const Codes& scale, double* values) {
  const Result<Groups> groups = groups_of(representation);
  TR_TRY(groups.status());
  if (groups->count == 0) {
    for (Index i = 0; i < count; ++i) values[i] = scale.reference;
    return {};
  }
  static_assert(sizeof(std::int64_t) == sizeof(double));
  const std::span numbers(reinterpret_cast<std::int64_t*>(values), static_cast<std::size_t>(count));
  TR_TRY(GroupReader(*groups, data).read(numbers));
  if (groups->order > 0 && groups->extra_octets > 0) {
    const auto octets = static_cast<std::size_t>(groups->extra_octets);
    std::array<std::int64_t, 2> first{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(groups->order); ++i)
      first[i] = static_cast<std::int64_t>(get_number(&data[i * octets], groups->extra_octets));
    const std::uint64_t least =
        get_number(&data[static_cast<std::size_t>(groups->order) * octets], groups->extra_octets);
    add_up(numbers, groups->order, first, sign_and_magnitude(least, groups->extra_octets));
  }
  for (std::int64_t& number : numbers) {
    const double value = number == absent
                             ? std::numeric_limits<double>::quiet_NaN()
                             : (static_cast<double>(number) * scale.unit + scale.reference) * scale.factor;
    std::memcpy(&number, &value, sizeof value);
  }
  return {};
}

Status decode_ieee(Octets representation, Octets data, Index count, double* values) {
  if (representation.size() < 12)
    return contradiction("octets of section 5", 12, static_cast<Index>(representation.size()));
  const auto precision = static_cast<int>(get_number(&representation[11], 1));
  if (precision != 1 && precision != 2)
    return {Code::corrupt, cat("precision of IEEE numbers: expected 1 or 2, got ", precision)};
  const int width = 4 * precision;
  if (count * width > static_cast<Index>(data.size()))
    return contradiction("octets of IEEE numbers", count * width, static_cast<Index>(data.size()));
  if (width == 4)
    copy_numbers<float, std::uint32_t>(data.data(), count, values);
  else
    copy_numbers<double, std::uint64_t>(data.data(), count, values);
  return {};
}

}  // namespace tailrace::sources
