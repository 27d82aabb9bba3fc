// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <random>

#include "formats/entropy/libaec.hpp"
#include "formats/grib2/ccsds.hpp"
#include "formats/grib2/values.hpp"

namespace tailrace::grib2 {
namespace {

TEST(grib2_packing, our_packings_agree_with_this_eccodes) {
  EXPECT_TRUE(simple_packing_agrees());
  EXPECT_TRUE(ccsds_packing_agrees());
}

constexpr entropy::Way all_ways[] = {entropy::Way::portable, entropy::Way::avx2, entropy::Way::avx512};

template <typename Value>
void expect_ranges(entropy::Way way) {
  constexpr Index most_values = 70;  // the loop goes by 32
  for (Index count = 1; count <= most_values; ++count) {
    for (Index at = 0; at < count; ++at) {
      std::vector<Value> values(static_cast<std::size_t>(count), 3);
      values[static_cast<std::size_t>(at)] = -7;
      values[static_cast<std::size_t>((at + 1) % count)] = count > 1 ? 11 : -7;
      const Range range = range_of(values.data(), count, way);
      EXPECT_TRUE(range.finite);
      EXPECT_EQ(range.least, -7);
      EXPECT_EQ(range.most, count > 1 ? 11 : -7);
      for (const double bad : {double(NAN), double(INFINITY), -double(INFINITY)}) {
        values[static_cast<std::size_t>(at)] = static_cast<Value>(bad);
        EXPECT_FALSE(range_of(values.data(), count, way).finite) << bad << " at " << at << " of " << count;
      }
    }
  }
}

TEST(grib2_packing, range_finds_least_most_and_anything_not_finite_at_every_place) {
  for (const entropy::Way way : all_ways) {
    if (!entropy::has(way)) continue;
    expect_ranges<float>(way);
    expect_ranges<double>(way);
  }
}

template <typename Code, typename Value>
void expect_same_codes(const std::vector<Value>& values, const Scaling& scaling) {
  const Coding coding(scaling);
  const auto count = static_cast<Index>(values.size());
  std::vector<Code> portable(values.size()), other(values.size());
  compute_codes(values.data(), count, coding, portable.data(), entropy::Way::portable);
  for (const entropy::Way way : {entropy::Way::avx2, entropy::Way::avx512}) {
    if (!entropy::has(way)) continue;
    compute_codes(values.data(), count, coding, other.data(), way);
    EXPECT_TRUE(other == portable) << "way " << static_cast<int>(way) << ", " << scaling.bits << " bits, D "
                                   << scaling.decimal;
  }
}

/// Packs the values in each way, at places that are aligned and that are not, and leaves alone what is
/// around.
template <typename Code, typename Value>
void expect_packed(const std::vector<Value>& values, const Scaling& scaling) {
  const Coding coding(scaling);
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{33}, values.size()}) {
    const auto first = static_cast<Index>(count);
    std::vector<Code> codes(count);
    compute_codes(values.data(), first, coding, codes.data(), entropy::Way::portable);
    ByteVector expected;
    for (const Code code : codes)
      for (std::size_t octet = sizeof code; octet-- > 0;)
        expected.push_back(static_cast<std::byte>(code >> 8 * octet & 0xff));
    for (const entropy::Way way : all_ways) {
      if (!entropy::has(way)) continue;
      for (const std::size_t at : {std::size_t{0}, std::size_t{5}}) {
        ByteVector out(expected.size() + 16, std::byte{0xa5});
        pack_codes<Code>(values.data(), first, coding, out.data() + at, way);
        ByteVector all(out.size(), std::byte{0xa5});
        std::ranges::copy(expected, all.begin() + static_cast<std::ptrdiff_t>(at));
        EXPECT_TRUE(out == all) << "way " << static_cast<int>(way) << ", " << scaling.bits << " bits, D "
                                << scaling.decimal << ", " << count << " values at " << at;
      }
    }
  }
}

template <typename Value>
void expect_packed_octets(const std::vector<Value>& values, const Scaling& scaling) {
  if (scaling.bits == 8) expect_packed<std::uint8_t>(values, scaling);
  if (scaling.bits == 16) expect_packed<std::uint16_t>(values, scaling);
  if (scaling.bits == 32) expect_packed<std::uint32_t>(values, scaling);
}

// With D other than 0 a fused multiplication and addition would round some codes otherwise: often enough to
// be seen where values are large beside their range.
TEST(grib2_packing, every_way_computes_the_same_codes) {
  std::mt19937_64 random(4);
  for (int bits = 1; bits <= most_bits; ++bits) {
    for (const double size : {1.0, 1e-42, 3e37}) {
      std::vector<double> doubles;
      std::vector<float> floats;
      const double base = size < 1 ? 1e-29 : 0;
      for (int i = 0; i < 20011; ++i) {
        floats.push_back(static_cast<float>(size * static_cast<double>(random()) / 9.2e18));
        doubles.push_back(base + size * static_cast<double>(random()) / 9.2e18);
      }
      const auto count = static_cast<Index>(floats.size());
      const auto wide = scaling_for(range_of(doubles.data(), count), bits);
      const auto narrow = scaling_for(range_of(floats.data(), count), bits);
      ASSERT_TRUE(wide && narrow);
      expect_same_codes<std::uint32_t>(doubles, *wide);
      expect_same_codes<std::uint32_t>(floats, *narrow);
      expect_packed_octets(doubles, *wide);
      expect_packed_octets(floats, *narrow);
      if (bits > 16) continue;
      expect_same_codes<std::uint16_t>(doubles, *wide);
      expect_same_codes<std::uint16_t>(floats, *narrow);
    }
  }
}

// libaec compresses where the two coders do not agree, which no machine of ours shows.
TEST(grib2_packing, ccsds_by_libaec_has_the_octets_of_our_coder) {
  if (!entropy::has_libaec()) GTEST_SKIP() << "built without libaec";
  constexpr CcsdsParameters usual{14, 32, 128};
  constexpr Index over_a_portion = 65536 + 4096 + 77;  // of libaec
  std::mt19937_64 random(6);
  std::vector<float> values;
  for (Index i = 0; i < over_a_portion; ++i)
    values.push_back(static_cast<float>(std::sin(1e-3 * static_cast<double>(i)) +
                                        1e-12 * static_cast<double>(random() >> 24)));
  for (int bits = 1; bits <= most_bits; ++bits) {
    const auto scaling = scaling_for(range_of(values.data(), over_a_portion), bits);
    ASSERT_TRUE(scaling.has_value());
    ByteVector own, theirs;
    ASSERT_TRUE(CcsdsPacking(CcsdsPacking::Coder::own)
                    .append(usual, values.data(), over_a_portion, *scaling, own)
                    .is_ok());
    ASSERT_TRUE(CcsdsPacking(CcsdsPacking::Coder::libaec)
                    .append(usual, values.data(), over_a_portion, *scaling, theirs)
                    .is_ok());
    EXPECT_TRUE(own == theirs) << bits;
  }
}

TEST(grib2_packing, the_largest_doubles_are_finite) {
  const double values[] = {DBL_MAX, -DBL_MAX, DBL_MIN, 4.9e-324};
  const Range range = range_of(values, 4);
  EXPECT_TRUE(range.finite);
  EXPECT_EQ(range.least, -DBL_MAX);
  EXPECT_EQ(range.most, DBL_MAX);
}

TEST(grib2_packing, a_reference_is_the_float_at_or_below_and_never_a_denormal) {
  EXPECT_EQ(reference_below(0), 0);
  EXPECT_FALSE(std::signbit(reference_below(-0.0)));
  EXPECT_EQ(reference_below(1e-300), 0);
  EXPECT_EQ(reference_below(-1e-300), -static_cast<double>(FLT_MIN));
  EXPECT_EQ(reference_below(0.5), 0.5);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double size = std::ldexp(1.0, static_cast<int>(random() % 250) - 125);
    const double value = size * (static_cast<double>(random()) / 9.2e18 - 1);
    const double below = reference_below(value);
    EXPECT_LE(below, value);
    EXPECT_EQ(below, static_cast<double>(static_cast<float>(below)));
    if (std::fabs(value) > FLT_MIN) {
      EXPECT_GT(static_cast<double>(std::nextafter(static_cast<float>(below), FLT_MAX)), value);
    }
  }
}

TEST(grib2_packing, compaction_keeps_order_and_marks_what_is_there) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const auto count = static_cast<Index>(1 + random() % 70);
    const double missing = round % 2 == 0 ? -999 : NAN;
    std::vector<double> values, present;
    std::vector<bool> there;
    for (Index i = 0; i < count; ++i) {
      there.push_back(random() % 3 != 0);
      values.push_back(there.back() ? static_cast<double>(i) : missing);
      if (there.back()) present.push_back(values.back());
    }
    ByteVector bitmap;
    const Index left = compact(values.data(), count, missing, bitmap);
    ASSERT_EQ(left, static_cast<Index>(present.size()));
    values.resize(present.size());
    EXPECT_EQ(values, present);
    if (left == count) {
      EXPECT_TRUE(bitmap.empty());
      continue;
    }
    for (Index i = 0; i < count; ++i) {
      const auto octet = std::to_integer<unsigned>(bitmap[static_cast<std::size_t>(i / 8)]);
      EXPECT_EQ((octet >> (7 - i % 8) & 1u) != 0, there[static_cast<std::size_t>(i)]);
    }
  }
}

TEST(grib2_packing, the_fewest_bits_that_keep_the_accuracy_are_chosen) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const double size = std::pow(10.0, static_cast<double>(random() % 60) - 30);
    const double least = size * (static_cast<double>(random() % 2000) - 1000) / 1000;
    const Range range{least, least + size * static_cast<double>(1 + random() % 1000) / 1000, true};
    const double accuracy = size * std::pow(10.0, -static_cast<double>(random() % 8));
    const auto chosen = scaling_within(range, accuracy);
    ASSERT_TRUE(chosen.has_value());
    EXPECT_LE(error_of(*chosen, range), accuracy);
    if (chosen->bits == 1) continue;
    const auto fewer = scaling_for(range, chosen->bits - 1);
    EXPECT_TRUE(!fewer || error_of(*fewer, range) > accuracy) << chosen->bits;
  }
}

TEST(grib2_packing, an_accuracy_beyond_thirty_two_bits_has_no_scaling) {
  EXPECT_FALSE(scaling_within({0, 1, true}, 1e-12).has_value());
  EXPECT_FALSE(scaling_within({1e6, 1e6 + 1, true}, 1e-11)
                   .has_value());  // below the resolution of the values themselves
  EXPECT_TRUE(scaling_within({0, 1, true}, 2.4e-10).has_value());
}

TEST(grib2_packing, packed_length_is_right_beyond_two_gibibytes) {
  EXPECT_EQ(packed_length(0, 16), 0);
  EXPECT_EQ(packed_length(1, 1), 1);
  EXPECT_EQ(packed_length(9, 12), 14);
  EXPECT_EQ(packed_length(4294967294, 32), Bytes{4294967294} * 4);
}

}  // namespace
}  // namespace tailrace::grib2
