// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "formats/grib2/header.hpp"
#include "grib_fixture.hpp"
#include "ground/base/text.hpp"

namespace tailrace::codec::test {
namespace {

FieldDefinition on_grid(Keys keys, std::vector<Index> shape) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.georeference.keys = std::move(keys);
  field.shape = std::move(shape);
  return field;
}

Keys rotated() {
  return {{"gridType", "rotated_ll"},
          {"Ni", "468"},
          {"Nj", "378"},
          {"latitudeOfFirstGridPointInDegrees", "-21.4"},
          {"longitudeOfFirstGridPointInDegrees", "-33.5"},
          {"iDirectionIncrementInDegrees", "0.15"},
          {"jDirectionIncrementInDegrees", "0.15"},
          {"jScansPositively", "1"},
          {"latitudeOfSouthernPoleInDegrees", "-30"},
          {"longitudeOfSouthernPoleInDegrees", "-15"}};
}

void expect_number(const grib2::Handle& handle, const std::string& key, double value) {
  EXPECT_NEAR(handle.number(key).value_or(-1e9), value, 1e-9) << key;
}

TEST(grib2_grid, rotated_latitude_longitude_reads_back_with_its_last_point_computed) {
  const auto handle = open_record(stream_of(), on_grid(rotated(), {378, 468}), {0, 0, hour, 0});
  EXPECT_EQ(handle.text("gridType"), "rotated_ll");
  EXPECT_EQ(handle.integer("numberOfDataPoints"), 468 * 378);
  EXPECT_EQ(handle.integer("numberOfValues"), 468 * 378);
  expect_number(handle, "longitudeOfFirstGridPointInDegrees", 326.5);
  expect_number(handle, "longitudeOfLastGridPointInDegrees", 36.55);
  expect_number(handle, "latitudeOfLastGridPointInDegrees", 35.15);
  expect_number(handle, "latitudeOfSouthernPoleInDegrees", -30);
  expect_number(handle, "longitudeOfSouthernPoleInDegrees", 345);
}

TEST(grib2_grid, increments_follow_from_first_and_last_and_rows_from_their_order) {
  const auto handle = open_record(stream_of(), field_of("t", "hybrid", {7}), {0, 0, hour, 0});
  expect_number(handle, "iDirectionIncrementInDegrees", 1);
  expect_number(handle, "jDirectionIncrementInDegrees", 1);
  EXPECT_EQ(handle.integer("Ni"), 10);  // from the shape
  EXPECT_EQ(handle.integer("Nj"), 6);
  EXPECT_EQ(handle.integer("jScansPositively"), 0);
}

TEST(grib2_grid, an_unstructured_grid_has_as_many_points_as_the_record) {
  const auto handle =
      open_record(stream_of(), on_grid({{"gridType", "unstructured_grid"}}, {20480}), {0, 0, hour, 0});
  EXPECT_EQ(handle.text("gridType"), "unstructured_grid");
  EXPECT_EQ(handle.integer("gridDefinitionTemplateNumber"), 101);
  EXPECT_EQ(handle.integer("numberOfDataPoints"), 20480);
  EXPECT_EQ(handle.numbers("values").size(), 20480u);
  const Status status = define(
      stream_of(), on_grid({{"gridType", "unstructured_grid"}, {"numberOfDataPoints", "20481"}}, {20480}));
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_NE(status.text().find("20481"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("20480"), std::string::npos) << status.text();
}

TEST(grib2_grid, gaussian_grids_follow_from_their_number) {
  const auto regular = open_record(stream_of(), on_grid({{"gridType", "regular_gg"}, {"N", "32"}}, {64, 128}),
                                   {0, 0, hour, 0});
  EXPECT_EQ(regular.text("gridType"), "regular_gg");
  expect_number(regular, "latitudeOfFirstGridPointInDegrees", 87.863799);
  expect_number(regular, "longitudeOfLastGridPointInDegrees", 357.1875);
  const auto reduced =
      open_record(stream_of(), on_grid({{"gridType", "reduced_gg"}, {"N", "32"}}, {6114}), {0, 0, hour, 0});
  EXPECT_EQ(reduced.text("gridType"), "reduced_gg");
  EXPECT_EQ(reduced.numbers("pl").size(), 64u);
  EXPECT_EQ(reduced.numbers("pl")[0], 20);
}

TEST(grib2_grid, rows_of_a_reduced_grid_may_be_given) {
  const Keys keys{{"gridType", "reduced_gg"}, {"N", "2"}, {"pl", "4,8,8,4"}};
  const auto handle = open_record(stream_of(), on_grid(keys, {24}), {0, 0, hour, 0});
  EXPECT_EQ(handle.numbers("pl"), (std::vector<double>{4, 8, 8, 4}));
  EXPECT_EQ(define(stream_of(), on_grid(keys, {25})).code(), Code::format);
  EXPECT_EQ(define(stream_of(), on_grid({{"gridType", "reduced_gg"}, {"N", "3"}}, {24})).code(),
            Code::format);
}

TEST(grib2_grid, names_of_grids_stand_for_their_keys) {
  for (const Keys& keys : {Keys{{"gridName", "O32"}},
                           {{"gridType", "reduced_gg"}, {"N", "32"}, {"isOctahedral", "1"}},
                           {{"gridName", "O32"}, {"N", "32"}, {"isOctahedral", "1"}}}) {
    const auto handle = open_record(stream_of(), on_grid(keys, {5248}), {0, 0, hour, 0});
    EXPECT_EQ(handle.text("gridType"), "reduced_gg");
    EXPECT_EQ(handle.text("gridName"), "O32");
    EXPECT_EQ(handle.integer("isOctahedral"), 1);
    const std::vector<double> rows = handle.numbers("pl");
    ASSERT_EQ(rows.size(), 64U);
    EXPECT_EQ(rows[0], 20);
    EXPECT_EQ(rows[31], 144);
    EXPECT_EQ(rows[32], 144);
    EXPECT_EQ(rows[63], 20);
    expect_number(handle, "latitudeOfFirstGridPointInDegrees", 87.863799);
    expect_number(handle, "longitudeOfLastGridPointInDegrees", 357.5);
  }
  EXPECT_EQ(
      open_record(stream_of(), on_grid({{"gridName", "N32"}}, {6114}), {0, 0, hour, 0}).text("gridName"),
      "N32");
  EXPECT_EQ(
      open_record(stream_of(), on_grid({{"gridName", "F32"}}, {64, 128}), {0, 0, hour, 0}).text("gridType"),
      "regular_gg");
  FieldDefinition by_its_keys = on_grid({}, {5248});
  by_its_keys.keys = {{"gridName", "O32"}};
  EXPECT_TRUE(define(stream_of(), by_its_keys).is_ok()) << define(stream_of(), by_its_keys).text();
  StreamDefinition of_all = stream_of();
  of_all.keys = std::exchange(by_its_keys.keys, {});
  EXPECT_TRUE(define(of_all, by_its_keys).is_ok()) << define(of_all, by_its_keys).text();
  const auto refused = [](const Keys& keys, const std::string& part) {
    const Status status = define(stream_of(), on_grid(keys, {5248}));
    EXPECT_EQ(status.code(), Code::format);
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  };
  refused({{"gridName", "O33"}}, "5248");
  refused({{"gridName", "O32"}, {"N", "33"}}, "'N' = 33 contradicts gridName=O32");
  refused({{"gridName", "N32"}, {"isOctahedral", "1"}}, "'isOctahedral' = 1 contradicts gridName=N32");
  for (const char* const name : {"X32", "O", "", "32", "O-1", "O99999999"})
    refused({{"gridName", name}}, cat("gridName=", name, ": expected a regular, reduced or octahedral"));
}

// Template 3.150 of the WMO. The installed ecCodes may not know it.
TEST(grib2_grid, healpix_is_written_whatever_ecCodes_knows) {
  const Keys keys{{"gridType", "healpix"}, {"Nside", "4"}, {"orderingConvention", "nested"}};
  FieldDefinition field = on_grid(keys, {192});
  field.levels = {"isobaricInhPa", {850, 500}, {}, {}};
  field.statistic.process = Process::average;
  const std::vector<double> values = wave(192);
  for (const Keys& given : {keys, Keys{{"gridName", "H4"}, {"ordering", "1"}}}) {
    field.georeference.keys = given;
    const Result<ByteVector> message = encode(stream_of(), field, {0, 1, 6 * hour, 0}, values);
    ASSERT_TRUE(message.is_ok()) << message.status().text();
    const std::size_t at = grib2::section_begin(*message, 3);
    const std::string expected{
        "\0\0\0\x2a\3\0\0\0\0\xc0\0\0\0\x96\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\0\0\0\0\4\x02\xae\xa5\x40\4\1\0",
        42};
    const std::string section(reinterpret_cast<const char*>(&(*message)[at]), 42);
    EXPECT_EQ(section, expected);
    EXPECT_EQ(grib2::section_begin(*message, 4), at + 42);
    EXPECT_EQ(grib2::get_number(&(*message)[8], 8), message->size());
    EXPECT_GE((*message)[25], std::byte{32}) << "older tables do not have the grid";
    // All else lies where it should.
    const auto handle = std::move(*grib2::Handle::from_message(*message));
    EXPECT_EQ(handle.integer("level"), 500);
    EXPECT_EQ(handle.text("stepRange"), "0-6");
    EXPECT_EQ(handle.text("shortName"), "t");
    EXPECT_EQ(handle.integer("numberOfDataPoints"), 192);
    const std::vector<double> decoded = decode(*message);
    ASSERT_EQ(decoded.size(), 192U);
    EXPECT_NEAR(decoded[100], values[100], 1e-3);
    // A message gives its grid to others.
    FieldDefinition other = field_of("sp");
    other.shape = {192};
    other.georeference = {*message, {}};
    const Result<ByteVector> next = encode(stream_of(), other, {0, 0, hour, 0}, values);
    ASSERT_TRUE(next.is_ok()) << next.status().text();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(&(*next)[grib2::section_begin(*next, 3)]), 42),
              expected);
  }
  FieldDefinition by_its_keys = on_grid({}, {192});
  by_its_keys.keys = keys;
  EXPECT_TRUE(define(stream_of(), by_its_keys).is_ok()) << define(stream_of(), by_its_keys).text();
  StreamDefinition of_all = stream_of();
  of_all.keys = std::exchange(by_its_keys.keys, {});
  EXPECT_TRUE(define(of_all, by_its_keys).is_ok()) << define(of_all, by_its_keys).text();
}

TEST(grib2_grid, healpix_that_contradicts_itself_is_refused) {
  const auto refused = [](const Keys& more, Index points, const std::string& part) {
    Keys keys{{"gridType", "healpix"}};
    keys.insert(keys.end(), more.begin(), more.end());
    const Status status = define(stream_of(), on_grid(keys, {points}));
    EXPECT_EQ(status.code(), Code::format);
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  };
  refused({}, 192, "needs Nside=");
  refused({{"Nside", "4"}}, 191, "has 192 points, and a record has 191 elements");
  refused({{"Nside", "3"}, {"orderingConvention", "nested"}}, 108, "expected a power of 2 as Nside, got 3");
  refused({{"Nside", "4"}, {"orderingConvention", "rings"}}, 192, "expected ring or nested");
  refused({{"Nside", "4"}, {"Ni", "16"}}, 192, "has no key Ni");
  refused({{"Nside", "-4"}}, 192, "expected a whole number from 0");
  refused({{"Nside", "4"}, {"longitudeOfFirstGridPointInDegrees", "nan"}}, 192,
          "longitudeOfFirstGridPointInDegrees");
  refused({{"Nside", "4"}, {"numberOfDataPoints", "191"}}, 192, "the record has 192");
  EXPECT_TRUE(define(stream_of(), on_grid({{"gridType", "healpix"}, {"Nside", "3"}}, {108})).is_ok());
}

TEST(grib2_grid, a_sample_message_gives_its_grid_and_its_product_is_replaced) {
  StreamDefinition ensemble = stream_of("ccsds");
  ensemble.member = 3;
  FieldDefinition accumulated = on_grid(rotated(), {378, 468});
  accumulated.statistic.process = Process::average;
  Result<ByteVector> sample = encode(ensemble, accumulated, {0, 0, 5 * hour, 0}, wave(378 * 468));
  ASSERT_TRUE(sample.is_ok()) << sample.status().text();
  FieldDefinition field = field_of("sp");
  field.shape = {378, 468};
  field.georeference = {*sample, {}};
  const auto handle = open_record(stream_of(), field, {0, 0, hour, 0});
  EXPECT_EQ(handle.text("gridType"), "rotated_ll");
  EXPECT_EQ(handle.text("shortName"), "sp");
  EXPECT_EQ(handle.text("typeOfLevel"), "surface");
  EXPECT_EQ(handle.text("level"), "0");
  EXPECT_EQ(handle.text("packingType"), "grid_simple");
  EXPECT_EQ(handle.integer("productDefinitionTemplateNumber"), 0);
  expect_number(handle, "latitudeOfSouthernPoleInDegrees", -30);
  field.shape = {378, 467};
  EXPECT_EQ(define(stream_of(), field).code(), Code::format);
}

TEST(grib2_grid, a_sample_does_not_say_where_the_forecast_comes_from) {
  StreamDefinition analysis = stream_of();
  analysis.keys = {{"centre", "98"},
                   {"tablesVersion", "19"},
                   {"typeOfProcessedData", "an"},
                   {"setLocalDefinition", "1"},
                   {"localDefinitionNumber", "1"},
                   {"experimentVersionNumber", "0007"}};
  FieldDefinition field = field_of("t", "hybrid", {7});
  const Result<ByteVector> sample = encode(analysis, field, {0, 0, 0, 0}, wave(60));
  ASSERT_TRUE(sample.is_ok()) << sample.status().text();
  const Result<ByteVector> by_keys = encode(stream_of(), field, {0, 0, hour, 0}, wave(60));
  field.georeference = {*sample, {}};
  const Result<ByteVector> by_sample = encode(stream_of(), field, {0, 0, hour, 0}, wave(60));
  ASSERT_TRUE(by_sample.is_ok()) << by_sample.status().text();
  EXPECT_EQ(*by_sample, *by_keys);
}

TEST(grib2_grid, a_sample_gives_its_vertical_coefficients_to_hybrid_fields_alone) {
  FieldDefinition source = field_of("t", "hybrid", {1, 2});
  source.levels.coefficients = {0, 10, 0, 0, 0.5, 1};
  const Result<ByteVector> sample = encode(stream_of(), source, {0, 0, hour, 0}, wave(60));
  ASSERT_TRUE(sample.is_ok()) << sample.status().text();
  FieldDefinition field = field_of("u", "hybrid", {2});
  field.georeference = {*sample, {}};
  EXPECT_EQ(open_record(stream_of(), field, {0, 0, hour, 0}).numbers("pv"), source.levels.coefficients);
  field = field_of("sp");
  field.georeference = {*sample, {}};
  EXPECT_EQ(open_record(stream_of(), field, {0, 0, hour, 0}).integer("NV"), 0);
}

TEST(grib2_grid, every_grid_sample_of_eccodes_can_be_a_sample) {
  for (const char* name : {"regular_ll_pl_grib2", "rotated_ll_sfc_grib2", "regular_gg_ml_grib2",
                           "rotated_gg_pl_grib2", "reduced_gg_pl_32_grib2", "reduced_ll_sfc_grib2",
                           "polar_stereographic_pl_grib2", "reduced_rotated_gg_ml_grib2"}) {
    const grib2::Handle source = std::move(*grib2::Handle::from_sample(name));
    FieldDefinition field = field_of("t", "pressure", {850});
    const auto message = source.message();
    field.georeference = {ByteVector(message.begin(), message.end()), {}};
    field.shape = {static_cast<Index>(source.numbers("values").size())};
    const auto handle = open_record(stream_of(), field, {0, 0, hour, 0});
    EXPECT_EQ(handle.text("gridType"), source.text("gridType")) << name;
    EXPECT_EQ(handle.text("md5GridSection"), source.text("md5GridSection")) << name;
    EXPECT_EQ(handle.text("shortName"), "t") << name;
    EXPECT_EQ(handle.text("level"), "850") << name;
  }
}

TEST(grib2_grid, the_same_record_from_keys_and_from_its_own_sample_has_the_same_bytes) {
  const FieldDefinition keys = field_of("t", "hybrid", {7});
  const Result<ByteVector> first = encode(stream_of(), keys, {0, 0, hour, 0}, wave(60));
  ASSERT_TRUE(first.is_ok());
  FieldDefinition sampled = keys;
  sampled.georeference = {*first, {}};
  const Result<ByteVector> second = encode(stream_of(), sampled, {0, 0, hour, 0}, wave(60));
  ASSERT_TRUE(second.is_ok()) << second.status().text();
  EXPECT_EQ(*first, *second);
}

TEST(grib2_grid, damaged_samples_are_refused_wherever_they_are_cut_or_changed) {
  const Result<ByteVector> whole =
      encode(stream_of(), field_of("t", "hybrid", {7}), {0, 0, hour, 0}, wave(60));
  ASSERT_TRUE(whole.is_ok());
  FieldDefinition field = field_of("t", "hybrid", {7});
  for (std::size_t length = 1; length < whole->size(); ++length) {
    field.georeference = {ByteVector(whole->begin(), whole->begin() + static_cast<std::ptrdiff_t>(length)),
                          {}};
    EXPECT_EQ(grib2::cut(field.georeference.sample).status().code(), Code::corrupt) << length;
  }
  field.georeference.sample = *whole;
  field.georeference.sample[7] = std::byte{1};
  const Status status = define(stream_of(), field);
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("edition"), std::string::npos) << status.text();
  field.georeference.sample = *whole;
  field.georeference.sample[16] = std::byte{0x7f};  // a section far beyond the end
  EXPECT_EQ(define(stream_of(), field).code(), Code::corrupt);
}

TEST(grib2_grid, a_field_without_a_grid_is_told_to_call_georeference) {
  const Status status = define(stream_of(), on_grid({}, {6, 10}));
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_NE(status.text().find("georeference"), std::string::npos) << status.text();
}

TEST(grib2_grid, the_grid_may_be_given_by_keys_of_the_field) {
  FieldDefinition field = on_grid({}, {6, 10});
  field.keys = small_grid();
  const auto handle = open_record(stream_of(), field, {0, 0, hour, 0});
  EXPECT_EQ(handle.integer("Ni"), 10);
  EXPECT_EQ(handle.text("shortName"), "t");
}

// Arrays have all rows in one direction, and so do the values in the file.
TEST(grib2_grid, rows_in_alternating_directions_are_refused) {
  Keys keys = rotated();
  keys.emplace_back("alternativeRowScanning", "1");
  const Status by_key = define(stream_of(), on_grid(keys, {378, 468}));
  EXPECT_EQ(by_key.code(), Code::format);
  EXPECT_NE(by_key.text().find("alternativeRowScanning=0"), std::string::npos) << by_key.text();
  keys.back() = {"scanningMode", "80"};
  EXPECT_EQ(define(stream_of(), on_grid(keys, {378, 468})).code(), Code::format);
  keys.back() = {"alternativeRowScanning", "0"};
  EXPECT_TRUE(define(stream_of(), on_grid(keys, {378, 468})).is_ok());
}

TEST(grib2_grid, half_described_and_contradictory_grids_are_refused) {
  for (const char* left_out : {"latitudeOfFirstGridPointInDegrees", "longitudeOfFirstGridPointInDegrees",
                               "iDirectionIncrementInDegrees", "jDirectionIncrementInDegrees",
                               "latitudeOfSouthernPoleInDegrees", "longitudeOfSouthernPoleInDegrees"}) {
    Keys keys = rotated();
    std::erase_if(keys, [&](const auto& key) { return key.first == left_out; });
    const Status status = define(stream_of(), on_grid(keys, {378, 468}));
    EXPECT_EQ(status.code(), Code::format) << left_out;
  }
  Keys keys = rotated();
  keys.emplace_back("longitudeOfLastGridPointInDegrees", "36.7");  // one increment too far
  EXPECT_EQ(define(stream_of(), on_grid(keys, {378, 468})).code(), Code::format);
  keys = small_grid();
  keys.emplace_back("jScansPositively", "1");  // but rows go south
  EXPECT_EQ(define(stream_of(), on_grid(keys, {6, 10})).code(), Code::format);
  EXPECT_EQ(define(stream_of(), on_grid({{"gridType", "no_such_grid"}}, {6, 10})).code(), Code::format);
}

TEST(grib2_grid, a_shape_that_lies_otherwise_than_the_grid_is_refused_with_both) {
  const Status status = define(stream_of(), on_grid(rotated(), {468, 378}));
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_NE(status.text().find("468 x 378"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("378 x 468"), std::string::npos) << status.text();
  EXPECT_TRUE(define(stream_of(), on_grid(rotated(), {468 * 378})).is_ok());
  EXPECT_TRUE(define(stream_of(), on_grid(rotated(), {1, 378, 468})).is_ok());
}

TEST(grib2_grid, points_beyond_what_grib_counts_are_refused_at_definition) {
  FieldDefinition field = on_grid({{"gridType", "unstructured_grid"}}, {Index{1} << 32});
  EXPECT_EQ(define(stream_of(), field).code(), Code::format);
  field.shape = {Index{3} << 30};
  field.bits = 16;  // 6 GiB in one section
  EXPECT_EQ(define(stream_of(), field).code(), Code::format);
  field.bits = 8;
  EXPECT_TRUE(define(stream_of(), field).is_ok()) << define(stream_of(), field).text();
  EXPECT_EQ(define(stream_of("ccsds"), field).code(), Code::format);
}

}  // namespace
}  // namespace tailrace::codec::test
