// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "formats/grib2/sections.hpp"
#include "grib_fixture.hpp"

namespace tailrace::codec::test {
namespace {

constexpr Index points = 60;

std::byte* bytes_of(std::vector<double>& values) { return reinterpret_cast<std::byte*>(values.data()); }

double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double off = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) off = std::fmax(off, std::fabs(a[i] - b[i]));
  return off;
}

class EachPacking : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(packing, EachPacking, testing::Values("simple", "ccsds"));

TEST_P(EachPacking, decoded_values_keep_the_accuracy_over_all_sizes) {
  std::mt19937_64 random(11);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int exponent = -320; exponent <= 38; exponent += 7) {
    for (int digits = 1; digits <= 7; digits += 2) {
      const double size = std::pow(10.0, exponent);
      std::vector<double> values(points);
      const double offset = (unit() - 0.5) * size * 3;
      for (double& x : values) x = offset + unit() * size;
      if (std::fabs(offset) + size > FLT_MAX) continue;
      FieldDefinition field = field_of("t", "hybrid", {7});
      field.accuracy = std::max(size * std::pow(10.0, -digits), 4.9e-324);
      const Result<ByteVector> message = encode(stream_of(GetParam()), field, {0, 0, hour, 0}, values);
      // Among denormals the accuracy itself may be below what doubles resolve.
      if (!message.is_ok() && exponent < -307) continue;
      ASSERT_TRUE(message.is_ok()) << exponent << " " << message.status().text();
      EXPECT_LE(worst(decode(*message), values), *field.accuracy) << exponent << " " << digits;
    }
  }
}

TEST_P(EachPacking, relative_accuracy_is_of_the_largest_magnitude) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.relative_accuracy = 1e-4;
  for (const double size : {1e-12, 1.0, 5e7}) {
    const std::vector<double> values = wave(points, size);
    const Result<ByteVector> message = encode(stream_of(GetParam()), field, {0, 0, hour, 0}, values);
    ASSERT_TRUE(message.is_ok()) << message.status().text();
    EXPECT_LE(worst(decode(*message), values), 1e-4 * size);
    EXPECT_LT(message->size(), 400u);
  }
}

TEST_P(EachPacking, an_accuracy_that_no_width_holds_is_an_error_and_nothing_is_appended) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.accuracy = 1e-9;
  const auto codec = codec_of(stream_of(GetParam()));
  ASSERT_TRUE(codec->define(field).is_ok());
  std::vector<double> values = wave(points, 1e5);
  ByteVector out(3);
  const Status status = codec->encoder()->encode({0, 0, hour, 0}, bytes_of(values), points, out);
  EXPECT_EQ(status.code(), Code::data);
  EXPECT_EQ(out.size(), 3u);
  for (const char* part : {"field 't'", "level 7", "1e-09"})
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
}

TEST_P(EachPacking, constants_are_right) {
  for (const double value : {0.0, -0.0, 273.15, -1e-30, 3e38, 101325.0}) {
    const Result<ByteVector> message = encode(stream_of(GetParam()), field_of("t", "hybrid", {7}),
                                              {0, 0, hour, 0}, std::vector<double>(points, value));
    ASSERT_TRUE(message.is_ok());
    const std::vector<double> back = decode(*message);
    ASSERT_EQ(back.size(), static_cast<std::size_t>(points));
    for (const double x : back) EXPECT_NEAR(x, value, std::fabs(value) * 1.2e-7);
    EXPECT_LT(message->size(), 200u);
  }
}

TEST(grib2_values, a_constant_between_floats_keeps_its_accuracy_in_simple_packing) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  for (const double accuracy : {1.0, 1e-2, 1e-3, 1e-5, 1e-8}) {
    field.accuracy = accuracy;
    const std::vector<double> values(points, 101325.123456789);
    const Result<ByteVector> message = encode(stream_of(), field, {0, 0, hour, 0}, values);
    ASSERT_TRUE(message.is_ok()) << message.status().text();
    EXPECT_LE(worst(decode(*message), values), accuracy);
  }
  field.accuracy = 1e-5;
  EXPECT_EQ(encode(stream_of("ccsds"), field, {0, 0, hour, 0}, std::vector<double>(points, 101325.123456789))
                .status()
                .code(),
            Code::data);
}

TEST_P(EachPacking, missing_values_come_back_missing_and_others_within_the_accuracy) {
  std::mt19937 random(5);
  for (const double missing : {-9e33, 0.0, double(NAN)}) {
    FieldDefinition field = field_of("t", "hybrid", {7});
    field.accuracy = 1e-3;
    field.missing = missing;
    for (const unsigned one_in : {1u, 2u, 30u, 1000000u}) {
      std::vector<double> values = wave(points, 10, 300), expected = values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (random() % one_in != 0) continue;
        values[i] = missing;
        expected[i] = 1e9;
      }
      const Result<ByteVector> message = encode(stream_of(GetParam()), field, {0, 0, hour, 0}, values);
      ASSERT_TRUE(message.is_ok()) << message.status().text();
      EXPECT_LE(worst(decode(*message, 1e9), expected), 1e-3) << missing << " one in " << one_in;
    }
  }
}

/// Encodes values of a float32 field, in the type in which this build assembles them.
Result<ByteVector> encode_float32(const StreamDefinition& stream, const FieldDefinition& field,
                                  const std::vector<float>& values) {
  const auto codec = codec_of(stream);
  TR_TRY(codec->define(field));
  std::vector<float> narrow = values;
  std::vector<double> wide(values.begin(), values.end());
  const bool is_wide = codec->assembled_type(0) == ElementType::f64;
  auto* const bytes = is_wide ? bytes_of(wide) : reinterpret_cast<std::byte*>(narrow.data());
  ByteVector out;
  TR_TRY(codec->encoder()->encode({0, 0, hour, 0}, bytes, std::ssize(values), out));
  return out;
}

TEST_P(EachPacking, a_missing_value_that_no_float32_is_means_the_nearest_one_in_float32_fields) {
  for (const double missing : {1e20, -1e30, 9.96921e36, 0.1, 3.4028235e38, -32767.7}) {
    FieldDefinition field = field_of("t", "hybrid", {7});
    field.type = ElementType::f32;
    field.accuracy = 1e-3;
    field.missing = missing;
    const std::vector<double> all = wave(points, 10, 300);
    std::vector<float> values(all.begin(), all.end());
    std::vector<double> expected(values.begin(), values.end());
    for (const std::size_t at : {0UL, 7UL, 59UL}) {
      values[at] = static_cast<float>(missing);
      expected[at] = 1e9;
    }
    const Result<ByteVector> message = encode_float32(stream_of(GetParam()), field, values);
    ASSERT_TRUE(message.is_ok()) << missing << " " << message.status().text();
    EXPECT_LE(worst(decode(*message, 1e9), expected), 1e-3) << missing;
  }
}

TEST_P(EachPacking, a_float64_field_keeps_the_float32_nearest_to_its_missing_value) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.missing = 0.1;
  field.bits = 24;
  std::vector<double> values(points, static_cast<double>(0.1F));
  values[3] = 0.1;
  const Result<ByteVector> message = encode(stream_of(GetParam()), field, {0, 0, hour, 0}, values);
  ASSERT_TRUE(message.is_ok()) << message.status().text();
  std::vector<double> expected = values;
  expected[3] = 1e9;
  EXPECT_EQ(decode(*message, 1e9), expected);
}

TEST_P(EachPacking, a_value_that_is_not_finite_is_named_by_field_level_and_index) {
  const auto codec = codec_of(stream_of(GetParam()));
  FieldDefinition field = field_of("t", "hybrid", {1, 7});
  ASSERT_TRUE(codec->define(field).is_ok());
  field.missing = -999;
  ASSERT_TRUE(codec->define(field).is_ok());
  field.missing = NAN;
  ASSERT_TRUE(codec->define(field).is_ok());
  const auto encoder = codec->encoder();
  for (const double bad : {double(NAN), double(INFINITY), -double(INFINITY)}) {
    for (int defined = 0; defined < 3; ++defined) {
      std::vector<double> values = wave(points);
      values[2] = defined == 1 ? -999 : values[2];
      values[41] = bad;
      ByteVector out;
      const Status status = encoder->encode({defined, 1, hour, 0}, bytes_of(values), points, out);
      if (defined == 2 && std::isnan(bad)) {
        EXPECT_TRUE(status.is_ok());
        continue;
      }
      EXPECT_EQ(status.code(), Code::data);
      EXPECT_TRUE(out.empty());
      for (const char* part :
           {"field 't'", "hybrid level 7", "index 41", std::isnan(bad) ? "NaN" : "infinite"})
        EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
    }
  }
}

TEST_P(EachPacking, values_beyond_a_float_reference_are_refused_and_not_fatal) {
  for (const double value : {1e39, -1e39, DBL_MAX}) {
    std::vector<double> values(points, value);
    EXPECT_EQ(
        encode(stream_of(GetParam()), field_of("t", "hybrid", {7}), {0, 0, hour, 0}, values).status().code(),
        Code::data);
    values[3] = value * (1 - 1e-9);
    EXPECT_EQ(
        encode(stream_of(GetParam()), field_of("t", "hybrid", {7}), {0, 0, hour, 0}, values).status().code(),
        Code::data);
  }
}

TEST_P(EachPacking, bounds_hold_for_what_compresses_worst) {
  std::mt19937_64 random(17);
  for (const int bits : {1, 8, 12, 16, 24, 32}) {
    FieldDefinition field = field_of("t", "hybrid", {7});
    field.georeference.keys = {{"gridType", "unstructured_grid"}};
    field.shape = {40000};
    field.bits = bits;
    field.missing = -1;
    const auto codec = codec_of(stream_of(GetParam()));
    ASSERT_TRUE(codec->define(field).is_ok());
    std::vector<double> values(40000);
    for (double& x : values) x = static_cast<double>(random() >> 11) * 0x1p-53;
    values[7] = -1;
    ByteVector out;
    ASSERT_TRUE(codec->encoder()->encode({0, 0, hour, 0}, bytes_of(values), 40000, out).is_ok());
    EXPECT_LE(static_cast<Bytes>(out.size()), codec->encoded_bound(0)) << bits;
    EXPECT_GT(codec->cost(0), 0);
  }
}

// Makes a message as a careful program would without this library: a new handle for each record, keys set in
// a working order.
ByteVector fresh_message(const std::string& packing, bool statistic, long level, const RecordKey& key,
                         int bits, std::vector<double> values, std::optional<double> missing) {
  grib2::Handle handle = std::move(*grib2::Handle::from_sample("GRIB2"));
  const auto set = [&](const std::string& name, auto value) {
    EXPECT_EQ(handle.set(name, value), 0) << name;
  };
  set("packingType", "grid_" + packing);
  set("centre", 65535L);
  set("productionStatusOfProcessedData", 255L);
  set("typeOfProcessedData", 1L);
  set("typeOfGeneratingProcess", 2L);
  set("generatingProcessIdentifier", 255L);
  for (const auto& [name, value] : small_grid()) EXPECT_EQ(handle.set_text(name, value), 0);
  set("Ni", 10L);
  set("Nj", 6L);
  set("iDirectionIncrementInDegrees", 1.0);
  set("jDirectionIncrementInDegrees", 1.0);
  set("dataDate", 20260301L);
  set("dataTime", 0L);
  set("productDefinitionTemplateNumber", statistic ? 8L : 0L);
  set("typeOfLevel", std::string(statistic ? "surface" : "hybrid"));
  set("shortName", std::string(statistic ? "tp" : "t"));
  if (!statistic) set("level", level);
  const std::int64_t start = statistic ? key.interval_start : key.lead;
  const std::int64_t unit = start % 3600 == 0 && key.lead % 3600 == 0 ? 3600
                            : start % 60 == 0 && key.lead % 60 == 0   ? 60
                                                                      : 1;
  set("stepUnits", std::string(unit == 3600 ? "h" : unit == 60 ? "m" : "s"));
  set("indicatorOfUnitOfTimeRange", unit == 3600 ? 1L : unit == 60 ? 0L : 13L);
  if (statistic) set("indicatorOfUnitForTimeRange", unit == 3600 ? 1L : unit == 60 ? 0L : 13L);
  set("startStep", static_cast<long>(start / unit));
  set("endStep", static_cast<long>(key.lead / unit));
  // The sample's own reference and scales would show up in records without values of their own.
  const auto parts = grib2::cut(handle.message());
  handle = std::move(*grib2::Handle::from_message(grib2::constant_message(*parts, points)));
  set("bitsPerValue", static_cast<long>(bits));
  if (missing && std::count(values.begin(), values.end(), *missing) > 0) {
    set("missingValue", *missing);
    set("bitmapPresent", 1L);
  }
  set("values", std::span<const double>(values));
  const auto message = handle.message();
  return {message.begin(), message.end()};
}

std::vector<double> some_values(std::mt19937_64& random) {
  std::vector<double> values(points);
  const double size = std::array{1.0, 1e-42, 1e30, 300.0, 1e-9}[random() % 5];
  const double offset = std::array{0.0, 273.0, -5.0, 0.0}[random() % 4] * size;
  const auto kind = random() % 5;
  for (double& x : values) {
    x = kind == 0 ? offset : offset + size * static_cast<double>(random() % 100000) / 7;
    if (kind == 1 && random() % 3 == 0) x = -999;
    if (kind == 2) x = -999;
  }
  return values;
}

TEST_P(EachPacking, bytes_are_those_of_a_fresh_eccodes_handle_in_any_order_of_records) {
  std::mt19937_64 random(23);
  const auto codec = codec_of(stream_of(GetParam()));
  const std::array<int, 5> widths{16, 12, 8, 24, 17};
  for (const int bits : widths) {
    FieldDefinition field = field_of("t", "hybrid", {1, 7, 300});
    field.bits = bits;
    field.missing = -999;
    ASSERT_TRUE(codec->define(field).is_ok());
    field = field_of("tp");
    field.statistic.process = Process::accum;
    field.statistic.since = Statistic::Since::last_output;
    field.bits = bits;
    field.missing = -999;
    ASSERT_TRUE(codec->define(field).is_ok());
  }
  const auto encoder = codec->encoder();
  for (int round = 0; round < 600; ++round) {
    RecordKey key;
    key.field = static_cast<int>(random() % (2 * widths.size()));
    const bool statistic = key.field % 2 == 1;
    key.level = statistic ? 0 : static_cast<Index>(random() % 3);
    const std::int64_t unit = std::array{3600, 60, 1}[random() % 3];
    key.interval_start = statistic ? static_cast<std::int64_t>(random() % 100) * unit : 0;
    key.lead = key.interval_start + static_cast<std::int64_t>(random() % 500) * unit;
    std::vector<double> values = some_values(random);
    const int bits = widths[static_cast<std::size_t>(key.field / 2)];
    const ByteVector expected =
        fresh_message(GetParam(), statistic, std::array{1L, 7L, 300L}[static_cast<std::size_t>(key.level)],
                      key, bits, values, -999.0);
    ByteVector out;
    const Status status = encoder->encode(key, bytes_of(values), points, out);
    ASSERT_TRUE(status.is_ok()) << status.text();
    ASSERT_EQ(out, expected) << "round " << round << " field " << key.field << " lead " << key.lead;
  }
}

TEST_P(EachPacking, four_threads_write_what_one_writes) {
  const auto codec = codec_of(stream_of(GetParam()));
  FieldDefinition field = field_of("t", "hybrid", {1, 2, 3, 4});
  field.georeference.keys = {{"gridType", "unstructured_grid"}};
  field.shape = {5000};
  ASSERT_TRUE(codec->define(field).is_ok());
  field.accuracy = 1e-3;
  ASSERT_TRUE(codec->define(field).is_ok());
  const auto run = [&](int first) {
    const auto encoder = codec->encoder();
    ByteVector out;
    for (int i = 0; i < 80; ++i) {
      std::vector<double> values = wave(5000, 1 + first + i, i % 5 == 0 ? 0 : 273);
      if (i % 7 == 0) std::fill(values.begin(), values.end(), 5.0);
      EXPECT_TRUE(encoder->encode({i % 2, i % 4, i * hour, 0}, bytes_of(values), 5000, out).is_ok());
    }
    return out;
  };
  std::array<ByteVector, 4> serial, parallel;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { parallel[static_cast<std::size_t>(i)] = run(i); });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) serial[static_cast<std::size_t>(i)] = run(i);
  EXPECT_EQ(serial, parallel);
}

TEST(grib2_values, definitions_in_four_threads_at_once_agree) {
  std::array<ByteVector, 4> messages;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      messages[i] = *encode(stream_of("ccsds"), field_of("t", "hybrid", {7}), {0, 0, hour, 0}, wave(points));
    });
  for (std::thread& thread : threads) thread.join();
  for (const ByteVector& message : messages) EXPECT_EQ(message, messages[0]);
}

TEST(grib2_values, records_of_the_wrong_size_level_or_field_are_refused) {
  const auto codec = codec_of(stream_of());
  ASSERT_TRUE(codec->define(field_of("t", "hybrid", {7})).is_ok());
  const auto encoder = codec->encoder();
  std::vector<double> values = wave(points);
  ByteVector out;
  EXPECT_EQ(encoder->encode({0, 0, hour, 0}, bytes_of(values), points - 1, out).code(), Code::argument);
  EXPECT_EQ(encoder->encode({0, 1, hour, 0}, bytes_of(values), points, out).code(), Code::argument);
  EXPECT_EQ(encoder->encode({1, 0, hour, 0}, bytes_of(values), points, out).code(), Code::argument);
  EXPECT_EQ(encoder->encode({0, 0, -hour, 0}, bytes_of(values), points, out).code(), Code::argument);
  EXPECT_TRUE(out.empty());
}

TEST(grib2_values, widths_and_types_that_grib_has_not_are_refused) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  for (const int bits : {0, 33, -1}) {
    field.bits = bits;
    EXPECT_EQ(define(stream_of(), field).code(), Code::argument);
  }
  field.bits.reset();
  field.type = ElementType::c64;
  EXPECT_EQ(define(stream_of(), field).code(), Code::format);
}

}  // namespace
}  // namespace tailrace::codec::test
