// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Records of many sizes, kinds and widths are compared, octet for octet, with those that ecCodes packs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "formats/grib2/values.hpp"
#include "grib_fixture.hpp"

namespace tailrace::codec::test {
namespace {

constexpr double absent = -999;

enum class Kind { smooth, noise, mostly_equal, tiny_range, huge, with_missing, constant };
constexpr int kinds = 7;

std::vector<float> values_of(Kind kind, Index count, std::mt19937_64& random) {
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<float> values(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) {
    double value = 273 + 30 * std::sin(0.001 * static_cast<double>(i)) + 0.01 * unit();
    if (kind == Kind::noise) value = 1e5 * (unit() - 0.5);
    if (kind == Kind::mostly_equal) value = random() % 5000 == 0 ? 17 * unit() : 0;  // runs of zero blocks
    if (kind == Kind::tiny_range) value = 1e-44 * std::floor(1000 * unit());         // D is not 0
    if (kind == Kind::huge) value = 1e38 * (unit() - 0.5);
    if (kind == Kind::with_missing && random() % 3 == 0) value = absent;
    if (kind == Kind::constant) value = 101325.1;
    values[static_cast<std::size_t>(i)] = static_cast<float>(value);
  }
  return values;
}

FieldDefinition list_of(Index count, ElementType type, int bits) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.georeference.keys = {{"gridType", "unstructured_grid"}};
  field.shape = {count};
  field.type = type;
  field.bits = bits;
  field.missing = absent;
  return field;
}

/// Returns the record from section 5 on, as ecCodes makes it of the values that are there. Sections 5 and 6
/// of `record` say how, and which values.
ByteVector packed_by_eccodes(const ByteVector& record, std::vector<float> values, int bits) {
  const auto parts = grib2::cut(record);
  EXPECT_TRUE(parts.is_ok()) << parts.status().text();
  ByteVector bitmap;
  const Index coded = grib2::compact(values.data(), static_cast<Index>(values.size()), absent, bitmap);
  const std::vector<double> doubles(values.begin(), values.begin() + coded);
  ByteVector expected;
  const Status status =
      grib2::EccodesPacking().append(parts->representation, doubles.data(), coded, bits, bitmap, expected);
  EXPECT_TRUE(status.is_ok()) << status.text();
  expected.resize(expected.size() + 4, std::byte{'7'});
  return expected;
}

class OwnPacking : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(packing, OwnPacking, testing::Values("simple", "ccsds"));

/// Returns the encoded record of `values`, given as floats or as doubles.
template <typename Value>
ByteVector encoded(Codec& codec, const std::vector<float>& values) {
  std::vector<Value> given(values.begin(), values.end());
  ByteVector out;
  const Status status = codec.encoder()->encode({0, 0, hour, 0}, reinterpret_cast<std::byte*>(given.data()),
                                                static_cast<Index>(given.size()), out);
  EXPECT_TRUE(status.is_ok()) << status.text();
  return out;
}

void compare(const std::string& packing, Kind kind, Index count, int bits, std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", " << count << " values in "
                                  << bits << " bits");
  const std::vector<float> values = values_of(kind, count, random);
  const auto floats = codec_of(stream_of(packing)), doubles = codec_of(stream_of(packing));
  ASSERT_TRUE(floats->define(list_of(count, ElementType::f32, bits)).is_ok());
  ASSERT_TRUE(doubles->define(list_of(count, ElementType::f64, bits)).is_ok());
  ASSERT_EQ(floats->assembled_type(0), ElementType::f32);
  const ByteVector record = encoded<float>(*floats, values);
  EXPECT_TRUE(record == encoded<double>(*doubles, values)) << "floats and doubles make different records";
  EXPECT_LE(static_cast<Bytes>(record.size()), floats->encoded_bound(0));
  if (kind == Kind::constant) return;  // ours in any case, and tested beside a fresh handle
  const ByteVector expected = packed_by_eccodes(record, values, bits);
  ASSERT_LT(expected.size(), record.size());
  EXPECT_EQ(std::memcmp(record.data() + (record.size() - expected.size()), expected.data(), expected.size()),
            0);
}

TEST_P(OwnPacking, octets_are_those_of_eccodes_for_each_width_and_kind) {
  std::mt19937_64 random(31);
  for (int bits = 1; bits <= 32; ++bits) {
    for (int kind = 0; kind < kinds; ++kind) compare(GetParam(), Kind{kind}, 9000 + bits, bits, random);
  }
}

// Intervals of 4,096 codes, compressed in portions of 4,096, by libaec of 65,536.
TEST_P(OwnPacking, octets_are_those_of_eccodes_around_intervals_and_portions) {
  std::mt19937_64 random(37);
  for (const Index count : {2, 31, 33, 4095, 4096, 4097, 65535, 65536, 65537, 69632, 131072, 200001}) {
    const Kind kind{static_cast<int>(random() % kinds)};
    compare(GetParam(), kind, count, 8 + static_cast<int>(random() % 17), random);
    compare(GetParam(), Kind::smooth, count, 16, random);
    compare(GetParam(), Kind::mostly_equal, count, 12, random);
  }
}

struct Parameters {
  const char *flags, *block, *interval;
  bool taken;  // by libaec
};

/// Returns the record of these values in 13 bits, or nothing if libaec refuses the parameters.
std::optional<ByteVector> encoded_with(const Parameters& parameters, const std::vector<float>& values,
                                       Bytes& bound) {
  StreamDefinition stream = stream_of("ccsds");
  stream.keys = {{"ccsdsFlags", parameters.flags},
                 {"ccsdsBlockSize", parameters.block},
                 {"ccsdsRsi", parameters.interval}};
  const auto codec = codec_of(stream);
  const auto count = static_cast<Index>(values.size());
  const Status defined = codec->define(list_of(count, ElementType::f64, 13));
  EXPECT_TRUE(defined.is_ok()) << defined.text();
  if (!defined.is_ok()) return std::nullopt;
  bound = codec->encoded_bound(0);
  std::vector<double> given(values.begin(), values.end());
  ByteVector record;
  const Status status =
      codec->encoder()->encode({0, 0, hour, 0}, reinterpret_cast<std::byte*>(given.data()), count, record);
  return status.is_ok() ? std::optional(record) : std::nullopt;
}

// An interval of 4,096 blocks of 64 codes is longer than a portion.
TEST(own_packing, ccsds_with_other_parameters_is_that_of_eccodes) {
  constexpr Parameters tried[] = {
      {"14", "8", "128", true},   {"14", "16", "128", true},  {"14", "64", "128", true},
      {"14", "46", "128", false}, {"14", "32", "1", true},    {"14", "32", "46", true},
      {"14", "32", "4096", true}, {"14", "64", "4096", true}, {"14", "32", "5000", false},
      {"6", "32", "128", true},   {"8", "32", "128", true},   {"15", "32", "128", true},
      {"46", "32", "1", true},    {"78", "46", "128", true},  {"30", "32", "128", true}};
  constexpr Index two_of_these = 2 * 4096 * 64 + 11;
  std::mt19937_64 random(41);
  for (const Parameters& parameters : tried) {
    SCOPED_TRACE(testing::Message() << "flags " << parameters.flags << ", blocks of " << parameters.block
                                    << ", " << parameters.interval << " in an interval");
    const bool long_interval = std::string(parameters.interval) == "4096";
    const Index count = long_interval ? two_of_these : 20011;
    for (const Kind kind : {Kind::smooth, Kind::noise, Kind::mostly_equal}) {
      const std::vector<float> values = values_of(kind, count, random);
      Bytes bound = 0;
      const std::optional<ByteVector> record = encoded_with(parameters, values, bound);
      EXPECT_EQ(record.has_value(), parameters.taken);
      if (!record) continue;
      const ByteVector expected = packed_by_eccodes(*record, values, 13);
      EXPECT_TRUE(std::equal(expected.rbegin(), expected.rend(), record->rbegin()));
      EXPECT_LE(static_cast<Bytes>(record->size()), bound);
    }
  }
}

}  // namespace
}  // namespace tailrace::codec::test
