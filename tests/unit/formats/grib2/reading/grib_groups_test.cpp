// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Complex packing as wgrib2 and operational centres write it. ecCodes reads it, and writes no differences.
#include <gtest/gtest.h>

#include <cmath>

#include "../../sources/messages.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sources {
namespace {

/// Appends numbers of any width, the most significant bit first.
class BitWriter {
 public:
  void put(std::uint64_t value, int width) {
    for (int bit = width - 1; bit >= 0; --bit, ++count_) {
      if (count_ % 8 == 0) octets.push_back(std::byte{0});
      if ((value >> bit & 1) != 0) octets.back() |= static_cast<std::byte>(0x80 >> (count_ % 8));
    }
  }
  void fill_octet() { count_ = octets.size() * 8; }
  ByteVector octets;

 private:
  std::size_t count_ = 0;
};

/// How a test message is packed.
struct Way {
  int order = 0;    // of differences; 0: template 5.2
  int missing = 0;  // management of missing values
};

constexpr Index group_length = 7, extra_octets = 3, width = 11, reference_bits = 13;

/// Packs whole numbers in groups of 7; every 5th is missing, and all of the third group.
ByteVector grouped(const Way& way) {
  const Index points = test::small_points;
  std::vector<bool> is_absent;
  for (Index i = 0; i < points; ++i)
    is_absent.push_back(way.missing > 0 && (i % 5 == 3 || i / group_length == 2));
  std::vector<std::int64_t> numbers, there;
  for (Index i = 0; i < points; ++i)
    numbers.push_back(std::llround(200 + 150 * std::sin(static_cast<double>(i) / 5)));
  std::int64_t least = 0;
  std::vector<std::int64_t> first;
  for (Index i = 0; i < points; ++i) {
    if (is_absent[static_cast<std::size_t>(i)]) continue;
    const std::int64_t value = numbers[static_cast<std::size_t>(i)];
    const std::size_t seen = there.size();
    there.push_back(value);
    std::int64_t& coded = numbers[static_cast<std::size_t>(i)];
    if (seen < static_cast<std::size_t>(way.order)) {
      first.push_back(value);
      coded = 0;
    } else if (way.order == 1) {
      coded = value - there[seen - 1];
    } else if (way.order == 2) {
      coded = value - 2 * there[seen - 1] + there[seen - 2];
    }
    least = std::min(least, coded);
  }
  BitWriter data;
  for (const std::int64_t each : first) data.put(static_cast<std::uint64_t>(each), 8 * extra_octets);
  if (way.order > 0)
    data.put(static_cast<std::uint64_t>(-least) | 1U << (8 * extra_octets - 1), 8 * extra_octets);
  const Index groups = (points + group_length - 1) / group_length;
  const std::uint64_t most = (1U << reference_bits) - 1;
  for (Index g = 0; g < groups; ++g)
    data.put(g == 2 && way.missing > 0 ? most : static_cast<std::uint64_t>(g), reference_bits);
  data.fill_octet();
  for (Index g = 0; g < groups; ++g) data.put(g == 2 && way.missing > 0 ? 0 : width, 4);
  data.fill_octet();
  for (Index g = 0; g < groups; ++g) data.put(2, 3);  // 3 + 2 * 2
  data.fill_octet();
  for (Index i = 0; i < points; ++i) {
    const Index g = i / group_length;
    if (g == 2 && way.missing > 0) continue;
    const bool absent = is_absent[static_cast<std::size_t>(i)];
    // With two values that mean missing, both are used.
    const std::uint64_t mark = (1U << width) - 1 - (way.missing == 2 && i % 2 == 0 ? 1 : 0);
    const std::int64_t code = numbers[static_cast<std::size_t>(i)] - least - g;
    data.put(absent ? mark : static_cast<std::uint64_t>(code), width);
  }
  ByteVector message = test::message(2, test::with({}), test::wave(points));
  grib2::Parts parts = *grib2::cut(message);
  ByteVector out = parts.head;
  ByteVector section(way.order > 0 ? 49 : 47);
  const auto put = [&](std::size_t octet, std::int64_t value, int octets) {
    grib2::put_number(&section[octet - 1], static_cast<std::uint64_t>(value), octets);
  };
  put(1, static_cast<std::int64_t>(section.size()), 4);
  put(5, 5, 1);
  put(6, points, 4);
  put(10, way.order > 0 ? 3 : 2, 2);
  put(12, 0x43480000, 4);  // R = 200
  put(16, 0x8000 | 2, 2);  // E = -2
  put(18, 1, 2);           // D = 1
  put(20, reference_bits, 1);
  put(22, 1, 1);
  put(23, way.missing, 1);
  put(32, groups, 4);
  put(36, 0, 1);
  put(37, 4, 1);
  put(38, 3, 4);
  put(42, 2, 1);
  put(43, points - (groups - 1) * group_length, 4);
  put(47, 3, 1);
  if (way.order > 0) {
    put(48, way.order, 1);
    put(49, extra_octets, 1);
  }
  out.insert(out.end(), section.begin(), section.end());
  grib2::append_bitmap({}, out);
  grib2::append_data_header(static_cast<Bytes>(data.octets.size()), out);
  out.insert(out.end(), data.octets.begin(), data.octets.end());
  grib2::finish(0, out);
  return out;
}

TEST(grib_groups, with_differences_and_missing_values_are_decoded_as_eccodes_does) {
  for (const int order : {0, 1, 2}) {
    for (const int missing : {0, 1, 2}) {
      SCOPED_TRACE(cat("order ", order, ", management of missing values ", missing));
      const ByteVector message = grouped({order, missing});
      const auto source = open(test::file_of("a.grib", {message}), "a.grib", "");
      ASSERT_TRUE(source.is_ok()) << source.status().text();
      const auto ours = test::read_all<double>(**source, (*source)->inventory().records.at(0));
      ASSERT_TRUE(ours.missing.is_ok()) << ours.missing.status().text();
      const std::vector<double> theirs = test::decoded_by_eccodes(message, 1e30);
      ASSERT_EQ(theirs.size(), ours.values.size());
      Index holes = 0;
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        if (theirs[i] == 1e30) {
          ++holes;
          EXPECT_TRUE(std::isnan(ours.values[i])) << i;
        } else {
          EXPECT_EQ(ours.values[i], theirs[i]) << i;
        }
      }
      EXPECT_EQ(*ours.missing, holes);
      EXPECT_EQ(holes > 0, missing > 0);
    }
  }
}

// Groups of no values and no bits need no bytes, so that their number may be anything.
TEST(grib_groups, more_groups_than_values_are_refused) {
  ByteVector message = grouped({});
  const std::size_t section = grib2::section_begin(message, 5);
  const auto put = [&](std::size_t octet, std::uint64_t value, int octets) {
    grib2::put_number(&message[section + octet - 1], value, octets);
  };
  put(20, 0, 1);  // bits of references, widths and lengths
  put(37, 0, 1);
  put(47, 0, 1);
  put(32, 1U << 26, 4);
  put(38, 0, 4);
  put(42, 0, 1);
  put(43, test::small_points, 4);
  const auto source = open(test::file_of("a.grib", {message}), "a.grib", "");
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  const auto values = test::read_all<double>(**source, (*source)->inventory().records.at(0));
  EXPECT_EQ(values.missing.status().code(), Code::corrupt) << values.missing.status().text();
  EXPECT_NE(values.missing.status().text().find("groups"), std::string::npos)
      << values.missing.status().text();
}

}  // namespace
}  // namespace tailrace::sources
