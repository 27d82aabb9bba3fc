// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// GRIB1 as ecCodes reads it.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "formats/grib2/edition1/sections.hpp"
#include "formats/grib2/edition1/time.hpp"
#include "formats/grib2/listings.hpp"
#include "formats/grib2/packing.hpp"
#include "formats/grib2/reading/grib_sections.hpp"
#include "formats/grib2/reading/grib_traits.hpp"
#include "formats/grib2/sections.hpp"
#include "grib_fixture.hpp"

namespace tailrace::codec::test {
namespace {

namespace edition1 = grib2::edition1;
using grib2::Handle;

StreamDefinition stream_1(const std::string& packing = "simple", Keys keys = {}) {
  StreamDefinition stream = stream_of(packing);
  stream.format = "grib1";
  stream.keys = std::move(keys);
  return stream;
}

std::string refusal(const StreamDefinition& stream, const FieldDefinition& field) {
  const Status status = define(stream, field);
  EXPECT_FALSE(status.is_ok()) << field.name << " on " << field.levels.type;
  return status.text();
}

void expect_mentions(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* const word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

/// A record of `field` as it is written, opened by ecCodes.
Handle opened(const FieldDefinition& field, const RecordKey& key,
              const StreamDefinition& stream = stream_1()) {
  return open_record(stream, field, key);
}

FieldDefinition statistic_of(const std::string& name, Process process) {
  FieldDefinition field = field_of(name);
  field.statistic.process = process;
  field.statistic.since = Statistic::Since::last_output;
  return field;
}

std::vector<double> smooth(Index count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = 273.15 + 30 * std::sin(0.01 * static_cast<double>(i));
  return values;
}

std::vector<double> noisy(Index count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = -5e4 + 1e5 * std::ldexp(random(), -32);
  return values;
}

double largest_error(const std::vector<double>& wanted, const std::vector<double>& got) {
  if (wanted.size() != got.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) most = std::max(most, std::fabs(wanted[i] - got[i]));
  return most;
}

TEST(grib1, ibm_floats_are_the_largest_that_are_not_above_a_value) {
  EXPECT_EQ(edition1::ibm_below(0), 0);
  EXPECT_EQ(edition1::ibm_below(1e-90), 0);
  EXPECT_EQ(edition1::ibm_below(-1e-90), -std::ldexp(1, -260));
  EXPECT_EQ(edition1::ibm_octets(1), 0x41100000U);
  EXPECT_EQ(edition1::ibm_octets(-118.625), 0xc276a000U);
  EXPECT_EQ(edition1::ibm_octets(edition1::ibm_references.largest), 0x7fffffffU);
  for (const double value :
       {1.0, 0.1, 273.15, 101325.3, -1.0, -0.1, -273.15, 16.0, -15.9999999, 1e60, -1e-60}) {
    const double below = edition1::ibm_below(value);
    EXPECT_LE(below, value);
    EXPECT_LT(value - below, std::fabs(value) * std::ldexp(1, -19)) << value;
    EXPECT_EQ(edition1::ibm_below(below), below) << value;
    const std::uint32_t octets = edition1::ibm_octets(below);
    const double read = std::ldexp(octets & 0xffffffU, 4 * (static_cast<int>(octets >> 24 & 0x7f) - 64) - 24);
    EXPECT_EQ((octets >> 31) != 0 ? -read : read, below) << value;
  }
}

TEST(grib1, values_decode_within_half_a_step_in_each_packing_and_width) {
  for (const std::string packing : {"simple", "second_order"}) {
    for (int bits = 1; bits <= 32; ++bits) {
      for (const std::vector<double>& values :
           {smooth(60), noisy(60, 5), wave(60, 1e-30), wave(60, 1e30, -1e30)}) {
        FieldDefinition field = field_of("t", "isobaricInhPa", {850});
        field.bits = bits;
        const Result<ByteVector> message = encode(stream_1(packing), field, {0, 0, 0, 0}, values);
        ASSERT_TRUE(message.is_ok()) << message.status().text();
        const auto [least, most] = std::ranges::minmax(values);
        const double step = (most - least) / (std::ldexp(1, bits) - 1);
        // E is a power of two, and R lies below the smallest value.
        EXPECT_LE(largest_error(values, decode(*message)),
                  1.01 * step + 1e-6 * std::fabs(least) / std::ldexp(1, bits))
            << packing << " " << bits;
      }
    }
  }
}

TEST(grib1, accuracy_is_kept_in_each_packing) {
  for (const std::string packing : {"simple", "second_order"}) {
    for (const double accuracy : {10.0, 0.5, 1e-3, 1e-4}) {
      for (const std::vector<double>& values : {smooth(60), noisy(60, 7), std::vector<double>(60, 273.16)}) {
        FieldDefinition field = field_of("t", "isobaricInhPa", {850});
        field.accuracy = accuracy;
        const Result<ByteVector> message = encode(stream_1(packing), field, {0, 0, 0, 0}, values);
        ASSERT_TRUE(message.is_ok()) << message.status().text();
        EXPECT_LE(largest_error(values, decode(*message)), accuracy) << packing << " " << accuracy;
      }
    }
  }
}

/// Returns section 4 of the message in which ecCodes has packed the values in `bits`.
ByteVector data_by_eccodes(const std::vector<double>& values, long bits) {
  Handle handle = std::move(*Handle::from_sample("GRIB1"));
  EXPECT_EQ(handle.set("Ni", 10L), 0);
  EXPECT_EQ(handle.set("Nj", 6L), 0);
  EXPECT_EQ(handle.set("bitsPerValue", bits), 0);
  EXPECT_EQ(handle.set("values", std::span<const double>(values)), 0);
  const auto message = handle.message();
  return {message.end() - 4 - (11 + grib2::packed_length(60, static_cast<int>(bits)) + 1) / 2 * 2,
          message.end() - 4};
}

TEST(grib1, simple_packing_writes_the_octets_of_eccodes) {
  for (int bits = 1; bits <= 32; ++bits) {
    for (const std::vector<double>& values : {smooth(60), noisy(60, 3)}) {
      FieldDefinition field = field_of("t", "isobaricInhPa", {850});
      field.bits = bits;
      const Result<ByteVector> message = encode(stream_1(), field, {0, 0, 0, 0}, values);
      ASSERT_TRUE(message.is_ok());
      const ByteVector theirs = data_by_eccodes(values, bits);
      ASSERT_GE(message->size(), theirs.size() + 4);
      EXPECT_EQ(ByteVector(message->end() - 4 - std::ssize(theirs), message->end() - 4), theirs) << bits;
    }
  }
}

TEST(grib1, second_order_packing_makes_smooth_fields_smaller_and_leaves_few_values_alone) {
  FieldDefinition field = field_of("t", "isobaricInhPa", {850});
  field.shape = {60, 100};
  const auto size = [&](const std::string& packing, const std::vector<double>& values) {
    const Result<ByteVector> message = encode(stream_1(packing), field, {0, 0, 0, 0}, values);
    EXPECT_TRUE(message.is_ok()) << message.status().text();
    EXPECT_EQ(Handle::from_message(*message)->text("packingType"), "grid_" + packing);
    return message->size();
  };
  EXPECT_LT(size("second_order", smooth(6000)) * 2, size("simple", smooth(6000)));
  EXPECT_EQ(Handle::from_message(*encode(stream_1("second_order"), field, {0, 0, 0, 0}, noisy(6000, 2)))
                ->text("packingType"),
            "grid_simple")
      << "noise would become longer";
  // The octets do not depend on the records before.
  const auto codec = codec_of(stream_1("second_order"));
  ASSERT_TRUE(codec->define(field).is_ok());
  const auto encoder = codec->encoder();
  std::map<int, ByteVector> seen;
  for (const int kind : {0, 1, 2, 0, 2, 1, 1, 0}) {
    std::vector<double> values = kind == 0 ? smooth(6000) : kind == 1 ? noisy(6000, 1) : wave(6000, 1e5);
    ByteVector out;
    ASSERT_TRUE(
        encoder->encode({0, 0, 0, 0}, reinterpret_cast<std::byte*>(values.data()), 6000, out).is_ok());
    const auto [first, is_new] = seen.try_emplace(kind, out);
    EXPECT_TRUE(is_new || first->second == out) << kind;
  }
  // Few values, constants, and values of which all but few are missing stay simple.
  field.shape = {1, 2};
  const Result<ByteVector> few = encode(stream_1("second_order"), field, {0, 0, 0, 0}, {1, 2});
  ASSERT_TRUE(few.is_ok()) << few.status().text();
  EXPECT_EQ(decode(*few), (std::vector<double>{1, 2}));
  field.shape = {6, 10};
  const Result<ByteVector> same =
      encode(stream_1("second_order"), field, {0, 0, 0, 0}, std::vector<double>(60, 2.5));
  ASSERT_TRUE(same.is_ok());
  EXPECT_EQ(decode(*same), std::vector<double>(60, 2.5));
}

TEST(grib1, missing_values_are_a_bitmap) {
  for (const std::string packing : {"simple", "second_order"}) {
    for (const std::size_t each : {std::size_t{2}, std::size_t{7}, std::size_t{1}}) {
      FieldDefinition field = field_of("t", "isobaricInhPa", {850});
      field.missing = -99;
      field.accuracy = 1e-4;
      field.shape = {6, 9};  // no whole number of octets
      field.georeference.keys.back().second = "13";
      std::vector<double> values = smooth(54);
      for (std::size_t i = 0; i < values.size(); i += each) values[i] = -99;
      const Result<ByteVector> message = encode(stream_1(packing), field, {0, 0, 0, 0}, values);
      ASSERT_TRUE(message.is_ok()) << message.status().text();
      EXPECT_EQ(message->size() % 2, 0U);
      const std::vector<double> got = decode(*message, -99);
      ASSERT_EQ(got.size(), values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(got[i], values[i], 1e-4) << i << " of " << each;
    }
  }
}

TEST(grib1, headers_say_what_the_definitions_ask) {
  const Handle handle = opened(field_of("t", "isobaricInhPa", {1000, 850}), {0, 1, 6 * hour, 0});
  for (const auto& [key, value] : Keys{{"edition", "1"},
                                       {"shortName", "t"},
                                       {"table2Version", "3"},
                                       {"typeOfLevel", "isobaricInhPa"},
                                       {"level", "850"},
                                       {"dataDate", "20260301"},
                                       {"stepRange", "6"},
                                       {"generatingProcessIdentifier", "255"},
                                       {"section1Length", "28"},
                                       {"Ni", "10"},
                                       {"Nj", "6"},
                                       {"latitudeOfFirstGridPointInDegrees", "50"},
                                       {"longitudeOfLastGridPointInDegrees", "14"},
                                       {"jScansPositively", "0"}})
    EXPECT_EQ(handle.text(key), value) << key;
  EXPECT_EQ(handle.integer("indicatorOfParameter"), 11);
  const Handle theirs = opened(field_of("skt"), {0, 0, 0, 0}, stream_1("simple", {{"centre", "98"}}));
  EXPECT_EQ(theirs.integer("table2Version"), 128);
  EXPECT_EQ(theirs.integer("indicatorOfParameter"), 235);
  FieldDefinition own = field_of("own");
  own.keys = {{"table2Version", "200"}, {"indicatorOfParameter", "17"}};
  EXPECT_EQ(opened(own, {0, 0, 0, 0}).integer("indicatorOfParameter"), 17);
}

TEST(grib1, dates_of_any_century_are_held_and_others_are_refused) {
  StreamDefinition stream = stream_1();
  for (const std::int64_t year : {1, 100, 1900, 1999, 2000, 2001, 2100, 2345, 25500}) {
    stream.base = {year, 12, 31, 23, 59, 0};
    EXPECT_EQ(opened(field_of("t"), {0, 0, 0, 0}, stream).integer("dataDate"), year * 10000 + 1231) << year;
  }
  stream.base = {25501, 1, 1, 0, 0, 0};
  expect_mentions(refusal(stream, field_of("t")), {"GRIB1", "25500"});
  stream.base = {2026, 3, 1, 0, 0, 30};
  expect_mentions(refusal(stream, field_of("t")), {"whole minutes", "format=grib2"});
}

struct Time {
  std::int64_t start, end;
  long unit, p1, p2, indicator;
};

void expect_time(const FieldDefinition& field, const Time& time) {
  const Result<ByteVector> message =
      encode(stream_1(), field, {0, 0, time.end, time.start}, wave(field.elements()));
  ASSERT_TRUE(message.is_ok()) << message.status().text();
  Handle handle = std::move(*Handle::from_message(*message));
  EXPECT_EQ(handle.integer("unitOfTimeRange"), time.unit) << time.end;
  EXPECT_EQ(handle.integer("P1"), time.p1) << time.end;
  EXPECT_EQ(handle.integer("P2"), time.p2) << time.end;
  EXPECT_EQ(handle.integer("timeRangeIndicator"), time.indicator) << time.end;
  ASSERT_EQ(handle.set("stepUnits", std::string("s")), 0);
  EXPECT_EQ(handle.integer("endStep"), time.end);
  EXPECT_EQ(handle.integer("startStep"), time.start);
  const grib2::Interval read = edition1::read_time(*message);
  EXPECT_EQ(read.start, time.start);
  EXPECT_EQ(read.end, time.end);
}

TEST(grib1, leads_have_the_first_unit_that_holds_them) {
  constexpr std::int64_t minute = 60, day = 24 * hour;
  for (const auto& [lead, unit, p1, p2, indicator] :
       {std::tuple(std::int64_t{0}, 1L, 0L, 0L, 0L), std::tuple(255 * hour, 1L, 255L, 0L, 0L),
        std::tuple(256 * hour, 1L, 1L, 0L, 10L), std::tuple(65535 * hour, 1L, 255L, 255L, 10L),
        std::tuple(45 * minute, 0L, 45L, 0L, 0L), std::tuple(271 * minute, 0L, 1L, 15L, 10L),
        std::tuple(std::int64_t{90}, 254L, 90L, 0L, 0L), std::tuple(65538 * hour, 10L, 85L, 86L, 10L)})
    expect_time(field_of("t"), {lead, lead, unit, p1, p2, indicator});
  EXPECT_TRUE(edition1::check_interval({0, 65535 * day}, Process::instant).is_ok());
  EXPECT_EQ(edition1::check_interval({0, 65536 * day}, Process::instant).code(), Code::format);
  EXPECT_EQ(edition1::check_interval({0, 65536 * minute + 1}, Process::instant).code(), Code::format);
  EXPECT_EQ(edition1::check_interval({0, -1}, Process::instant).code(), Code::argument);
}

TEST(grib1, intervals_begin_and_end_in_one_octet_each) {
  constexpr std::int64_t minute = 60;
  expect_time(statistic_of("tp", Process::accum), {0, 6 * hour, 1, 0, 6, 4});
  expect_time(statistic_of("t", Process::average), {249 * hour, 255 * hour, 1, 249, 255, 3});
  expect_time(statistic_of("t", Process::maximum), {6 * hour, 12 * hour, 1, 6, 12, 2});
  expect_time(statistic_of("t", Process::minimum), {6 * hour, 6 * hour, 1, 6, 6, 2});
  expect_time(statistic_of("tp", Process::accum), {0, 270 * minute, 14, 0, 9, 4});
  expect_time(statistic_of("tp", Process::accum), {0, 285 * minute, 13, 0, 19, 4});
  expect_time(statistic_of("tp", Process::accum), {0, 258 * hour, 10, 0, 86, 4});
  const auto codec = codec_of(stream_1());
  ASSERT_TRUE(codec->define(statistic_of("tp", Process::accum)).is_ok());
  const Status late = codec->check_lead({0, 0, 257 * hour, 0});
  EXPECT_EQ(late.code(), Code::format);
  expect_mentions(late.text(), {"'tp'", "one octet", "format=grib2"});
  EXPECT_EQ(codec->check_lead({0, 0, hour, 2 * hour}).code(), Code::argument);
}

TEST(grib1, extremes_are_told_by_the_name_of_the_parameter) {
  for (const auto& [name, process, word] :
       {std::tuple("mx2t", Process::maximum, "maximum"), std::tuple("mn2t", Process::minimum, "minimum"),
        std::tuple("tp", Process::accum, "accum"), std::tuple("skt", Process::average, "average")}) {
    const Result<ByteVector> message =
        encode(stream_1("simple", {{"centre", "98"}}), statistic_of(name, process),
               {0, 0, 12 * hour, 6 * hour}, wave(60));
    ASSERT_TRUE(message.is_ok()) << message.status().text();
    const Result<sources::Traits> traits = sources::grib_traits(*message, {}, {});
    ASSERT_TRUE(traits.is_ok()) << traits.status().text();
    EXPECT_EQ(traits->statistic, word) << name;
    EXPECT_EQ(traits->begin, 6 * hour) << name;
  }
}

TEST(grib1, levels_are_whole_numbers_of_the_unit_of_code_table_3) {
  struct Level {
    const char* name;
    const char* type;
    double value, bottom;
    long top, below;
  };
  for (const Level& level :
       {Level{"t", "isobaricInPa", 50, -1, 50, 50}, Level{"t", "isobaricInhPa", 1, -1, 1, 1},
        Level{"u", "heightAboveGround", 100, -1, 100, 100}, Level{"t", "sigma", 0.995, -1, 9950, 9950},
        Level{"t", "hybrid", 137, -1, 137, 137}, Level{"z", "potentialVorticity", 2, -1, 2000, 2000},
        Level{"t", "depthBelowLand", 0.07, -1, 7, 7}, Level{"t", "depthBelowLandLayer", 0.28, 1, 28, 100},
        Level{"t", "hybridLayer", 3, 4, 3, 4}, Level{"t", "isobaricLayer", 500, 1000, 50, 100}}) {
    FieldDefinition field = field_of(level.name, level.type, {level.value});
    if (level.bottom >= 0) field.levels.bottoms = {level.bottom};
    const Handle handle = opened(field, {0, 0, 0, 0});
    EXPECT_EQ(handle.text("typeOfLevel"), level.type);
    EXPECT_EQ(handle.integer("topLevel"), level.top) << level.type;
    EXPECT_EQ(handle.integer("bottomLevel"), level.below) << level.type;
  }
  expect_mentions(refusal(stream_1(), field_of("t", "isobaricInhPa", {850, 0.5})),
                  {"level 0.5", "whole numbers", "isobaricInPa", "format=grib2"});
  expect_mentions(refusal(stream_1(), field_of("t", "isobaricInPa", {85000})), {"85000", "65534"});
  expect_mentions(refusal(stream_1(), field_of("t", "heightAboveGround", {2.5})), {"level 2.5"});
  expect_mentions(refusal(stream_1(), field_of("t", "heightAboveGround", {-3})), {"level -3"});
  expect_mentions(refusal(stream_1(), field_of("t", "tropopause", {3})), {"level 3", "tropopause"});
  expect_mentions(refusal(stream_1(), field_of("t", "soilLayer", {1})), {"soilLayer", "format=grib2"});
  expect_mentions(refusal(stream_1(), field_of("t", "depthBelowLandLayer", {0.07})), {"bottom="});
  FieldDefinition deep = field_of("t", "depthBelowLandLayer", {1});
  deep.levels.bottoms = {2.89};
  expect_mentions(refusal(stream_1(), deep), {"2.89", "255"});
}

TEST(grib1, names_without_a_parameter_are_refused_with_the_keys_that_give_one) {
  expect_mentions(refusal(stream_1(), field_of("skt")),
                  {"shortName", "centre=98", "indicatorOfParameter", "table2Version"});
  expect_mentions(refusal(stream_1(), field_of("t", "heightAboveGround", {2})), {"2t"});
  expect_mentions(refusal(stream_1(), field_of("2t", "isobaricInhPa", {850})), {"heightAboveGround"});
}

TEST(grib1, members_stand_in_the_local_section_of_ecmwf) {
  StreamDefinition stream = stream_1("simple", {{"centre", "98"}});
  stream.member = 7;
  stream.members = 51;
  const Handle handle = opened(field_of("t"), {0, 0, 0, 0}, stream);
  for (const auto& [key, value] : Keys{{"number", "7"},
                                       {"totalNumber", "51"},
                                       {"localDefinitionNumber", "1"},
                                       {"type", "pf"},
                                       {"stream", "enfo"},
                                       {"class", "rd"}})
    EXPECT_EQ(handle.text(key), value) << key;
  stream.keys.emplace_back("class", "od");
  EXPECT_EQ(opened(field_of("t"), {0, 0, 0, 0}, stream).text("class"), "od");
  stream.keys = {{"centre", "78"}};
  expect_mentions(refusal(stream, field_of("t")), {"member 7", "centre=98", "format=grib2"});
}

TEST(grib1, grids_that_it_cannot_hold_are_refused) {
  for (const char* const type : {"unstructured_grid", "healpix", "albers"}) {
    FieldDefinition field = field_of("t");
    field.georeference.keys = {{"gridType", type}};
    expect_mentions(refusal(stream_1(), field), {type, "format=grib2"});
  }
  FieldDefinition field = field_of("t");
  field.shape = {12 * 4 * 4};
  field.georeference.keys = {{"gridName", "H4"}};
  expect_mentions(refusal(stream_1(), field), {"healpix"});
  field = field_of("t");
  field.georeference.keys.emplace_back("shapeOfTheEarth", "5");
  expect_mentions(refusal(stream_1(), field), {"shapeOfTheEarth", "sphere"});
  field.georeference.keys = {{"gridDefinitionTemplateNumber", "0"}};
  expect_mentions(refusal(stream_1(), field), {"gridType="});
  field = field_of("t");
  field.georeference.keys.emplace_back("Ni", "11");
  expect_mentions(refusal(stream_1(), field), {"66 points", "60 elements"});
}

TEST(grib1, grids_are_those_of_the_keys_of_grib2) {
  // An increment of a sixteenth of a degree is no whole number of thousandths.
  FieldDefinition fine = field_of("t");
  fine.shape = {161, 321};
  fine.georeference.keys = {{"gridType", "rotated_ll"},
                            {"latitudeOfFirstGridPointInDegrees", "-5"},
                            {"longitudeOfFirstGridPointInDegrees", "350"},
                            {"iDirectionIncrementInDegrees", "0.0625"},
                            {"jDirectionIncrementInDegrees", "0.0625"},
                            {"jScansPositively", "1"},
                            {"latitudeOfSouthernPoleInDegrees", "-40"},
                            {"longitudeOfSouthernPoleInDegrees", "10"},
                            {"shapeOfTheEarth", "6"}};
  const Handle rotated = opened(fine, {0, 0, 0, 0});
  EXPECT_EQ(rotated.integer("latitudeOfLastGridPoint"), 5000);
  EXPECT_EQ(rotated.integer("longitudeOfLastGridPoint"), 10000);
  EXPECT_EQ(rotated.integer("latitudeOfSouthernPole"), -40000);
  EXPECT_TRUE(rotated.is_missing("iDirectionIncrement"));
  EXPECT_EQ(rotated.integer("ijDirectionIncrementGiven"), 0);
  fine.georeference.keys[5] = {"scanningMode", "64"};
  EXPECT_EQ(opened(fine, {0, 0, 0, 0}).integer("latitudeOfLastGridPoint"), 5000);
  fine.georeference.keys[5] = {"jScansPositively", "1"};
  fine.georeference.keys.emplace_back("latitudeOfLastGridPointInDegrees", "7");
  expect_mentions(refusal(stream_1(), fine), {"contradict"});

  FieldDefinition reduced = field_of("t");
  reduced.shape = {5248};
  reduced.georeference.keys = {{"gridName", "O32"}};
  const Handle octahedral = opened(reduced, {0, 0, 0, 0});
  EXPECT_EQ(octahedral.text("gridType"), "reduced_gg");
  EXPECT_EQ(octahedral.integer("latitudeOfFirstGridPoint"), 87864);
  EXPECT_EQ(octahedral.numbers("pl").size(), 64U);
  reduced.shape = {64, 128};
  reduced.georeference.keys = {{"gridName", "F32"}};
  EXPECT_EQ(opened(reduced, {0, 0, 0, 0}).integer("iDirectionIncrement"), 2813);

  FieldDefinition cone = field_of("t");
  cone.georeference.keys = {{"gridType", "lambert"},
                            {"latitudeOfFirstGridPointInDegrees", "40"},
                            {"longitudeOfFirstGridPointInDegrees", "5"},
                            {"LoVInDegrees", "10"},
                            {"LaDInDegrees", "50"},
                            {"Latin1InDegrees", "50"},
                            {"Latin2InDegrees", "50"},
                            {"DxInMetres", "2500"},
                            {"DyInMetres", "2500"},
                            {"Nx", "10"},
                            {"Ny", "6"}};
  const Handle lambert = opened(cone, {0, 0, 0, 0});
  EXPECT_EQ(lambert.text("gridType"), "lambert");
  EXPECT_EQ(lambert.integer("DxInMetres"), 2500);
  cone.georeference.keys[7] = {"Dx", "2500000"};  // GRIB2 counts millimetres and millionths of a degree
  cone.georeference.keys[1] = {"latitudeOfFirstGridPoint", "40000000"};
  EXPECT_EQ(opened(cone, {0, 0, 0, 0}).integer("DxInMetres"), 2500);
  EXPECT_EQ(opened(cone, {0, 0, 0, 0}).integer("latitudeOfFirstGridPoint"), 40000);
  cone.georeference.keys[4].second = "60";
  expect_mentions(refusal(stream_1(), cone), {"LaDInDegrees"});
}

TEST(grib1, the_grid_of_a_sample_of_either_edition_is_taken_over) {
  for (const char* const name : {"reduced_gg_pl_32_grib1", "reduced_gg_pl_32_grib2", "regular_ll_pl_grib1",
                                 "regular_ll_pl_grib2", "regular_gg_pl_grib2"}) {
    const Handle sample = std::move(*Handle::from_sample(name));
    FieldDefinition field = field_of("t");
    const auto message = sample.message();
    field.georeference = {ByteVector(message.begin(), message.end()), {}};
    field.shape = {*sample.integer("numberOfDataPoints")};
    const Handle handle = opened(field, {0, 0, 0, 0});
    for (const std::string key : {"gridType", "Nj", "numberOfDataPoints", "jScansPositively"})
      EXPECT_EQ(handle.text(key), sample.text(key)) << name << " " << key;
    EXPECT_EQ(handle.numbers("pl"), sample.numbers("pl")) << name;
    EXPECT_NEAR(*handle.number("latitudeOfFirstGridPointInDegrees"),
                *sample.number("latitudeOfFirstGridPointInDegrees"), 0.5001e-3)
        << name;
  }
}

TEST(grib1, vertical_coefficients_are_at_most_255) {
  FieldDefinition field = field_of("t", "hybrid", {3});
  field.levels.coefficients = {0, 100.5, 2000, 3e4, 0, 0.1, 0.5, 1};
  const std::vector<double> pv = opened(field, {0, 0, 0, 0}).numbers("pv");
  ASSERT_EQ(pv.size(), 8U);
  for (std::size_t i = 0; i < pv.size(); ++i)
    EXPECT_NEAR(pv[i], field.levels.coefficients[i], 1e-6 * field.levels.coefficients[i]);
  field.levels.coefficients.assign(256, 1);
  expect_mentions(refusal(stream_1(), field), {"256", "255"});
}

TEST(grib1, keys_that_options_give_are_refused) {
  for (const auto& [key, instead] : Keys{{"P1", "lead"},
                                         {"timeRangeIndicator", "statistic="},
                                         {"yearOfCentury", "base="},
                                         {"edition", "format="},
                                         {"bitsPerValue", "bits="}}) {
    FieldDefinition field = field_of("t");
    field.keys = {{key, "2"}};
    expect_mentions(refusal(stream_1(), field), {key.c_str(), instead.c_str()});
  }
  EXPECT_EQ(formats::make_codec(stream_1("ccsds")).status().code(), Code::settings);
  StreamDefinition stream = stream_1();
  stream.calendar = Calendar::day_360;
  expect_mentions(formats::make_codec(stream).status().text(), {"GRIB1", "360_day"});
}

TEST(grib1, messages_beyond_8_megabytes_have_ecmwfs_length) {
  FieldDefinition field = field_of("t");
  field.shape = {2000, 2200};
  const std::vector<double> values = smooth(field.elements());
  const Result<ByteVector> message = encode(stream_1(), field, {0, 0, 0, 0}, values);
  ASSERT_TRUE(message.is_ok()) << message.status().text();
  ASSERT_GT(message->size(), 0x800000U);
  EXPECT_LE(largest_error(values, decode(*message)), 1e-3);
  std::vector<sources::GribField> found;
  const auto size = static_cast<Bytes>(message->size());
  const Result<Bytes> length = sources::read_message(sources::fetch_from(*message, 0), 0, size, found);
  ASSERT_TRUE(length.is_ok()) << length.status().text();
  EXPECT_EQ(*length, size);
}

TEST(grib1, lengths_are_told_on_both_sides_of_8_megabytes) {
  for (Bytes data = 0x800000 - 300; data < 0x800000 + 300; data += 41) {
    ByteVector message(edition1::least_head);
    const std::size_t at = message.size();
    message.resize(at + static_cast<std::size_t>(data));
    edition1::finish(0, at, (data - edition1::data_header) * 8, message);
    const edition1::Lengths lengths =
        edition1::lengths_of(grib2::get_number(&message[edition1::total_length_at], 3),
                             grib2::get_number(&message[at], 3), static_cast<Bytes>(at));
    EXPECT_EQ(lengths.message, std::ssize(message));
    EXPECT_EQ(lengths.data, std::ssize(message) - static_cast<Bytes>(at) - 4);
  }
}

TEST(grib1, listings_tell_the_place_of_messages_with_and_without_a_bitmap) {
  FieldDefinition field = field_of("tp");
  field.statistic.process = Process::accum;
  field.missing = -1;
  std::vector<double> values = smooth(60);
  values[3] = -1;
  const Result<ByteVector> message =
      encode(stream_1("simple", {{"centre", "98"}}), field, {0, 0, 6 * hour, 0}, values);
  ASSERT_TRUE(message.is_ok()) << message.status().text();
  const ReadBytes read = [&](std::span<std::byte> to, Bytes offset) -> Result<Bytes> {
    const auto there = std::clamp<Bytes>(std::ssize(*message) - offset, 0, std::ssize(to));
    std::copy_n(message->begin() + offset, there, to.begin());
    return there;
  };
  const Result<std::string> line = grib2::ecmwf_line(read, 1, 0);
  ASSERT_TRUE(line.is_ok()) << line.status().text();
  expect_mentions(*line, {"\"date\": \"20260301\"", "\"step\": \"6\"", "\"param\": \"tp\"", "\"_offset\": 0,",
                          ("\"_length\": " + std::to_string(message->size())).c_str()});
  const Result<std::string> entry = grib2::cfgrib_entry(read, 1, 0);
  ASSERT_TRUE(entry.is_ok()) << entry.status().text();
  EXPECT_EQ(grib2::cfgrib_offset(entry->substr(0, entry->size() - grib2::cfgrib_entry_end.size()), 1), 0);
  expect_mentions(*entry, {"I228\n", "Vaccum\n", "F6\n"});
  EXPECT_FALSE(grib2::wgrib2_line(read, 1, 0).is_ok());
}

}  // namespace
}  // namespace tailrace::codec::test
