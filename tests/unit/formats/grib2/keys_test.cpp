// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Golden cases: keys that ecCodes accepts or drops silently if they are set naively.
#include <gtest/gtest.h>

#include "formats/grib2/codec.hpp"
#include "grib_fixture.hpp"

namespace tailrace::codec::test {
namespace {

constexpr std::int64_t minute = 60;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_keys(const grib2::Handle& handle, const Keys& keys) {
  for (const auto& [key, value] : keys) EXPECT_EQ(handle.text(key).value_or("none"), value) << key;
}

TEST(grib2_keys, hybrid_level_seven_reads_back_as_it_was_asked) {
  const auto handle = open_record(stream_of(), field_of("t", "hybrid", {7}), {0, 0, 6 * hour, 0});
  expect_keys(handle, {{"shortName", "t"},
                       {"typeOfLevel", "hybrid"},
                       {"level", "7"},
                       {"productDefinitionTemplateNumber", "0"},
                       {"stepRange", "6"},
                       {"dataDate", "20260301"},
                       {"dataTime", "0000"},
                       {"validityTime", "600"}});
}

TEST(grib2_keys, each_level_has_its_own_number_and_nothing_else_of_its_own) {
  FieldDefinition field = field_of("t", "hybrid", {1, 7, 40});
  for (int i = 0; i < 82; ++i) field.levels.coefficients.push_back(i * 0.015625);
  for (Index level = 0; level < 3; ++level) {
    const auto handle = open_record(stream_of(), field, {0, level, hour, 0});
    EXPECT_EQ(handle.number("level"), field.levels.values[static_cast<std::size_t>(level)]);
    EXPECT_EQ(handle.numbers("pv"), field.levels.coefficients);
  }
}

TEST(grib2_keys, levels_below_zero_have_the_sign_of_grib) {
  const FieldDefinition field = field_of("t", "heightAboveSea", {10, -5, -0.25});
  const std::vector<std::pair<long, long>> expected{{0, 10}, {0, 0x80000005}, {2, 0x80000019}};
  for (Index level = 0; level < 3; ++level) {
    const auto handle = open_record(stream_of(), field, {0, level, hour, 0});
    const auto& [scale, scaled] = expected[static_cast<std::size_t>(level)];
    EXPECT_EQ(handle.integer("scaleFactorOfFirstFixedSurface"), scale);
    EXPECT_EQ(handle.integer("scaledValueOfFirstFixedSurface"), scaled);
  }
  FieldDefinition layer = field_of("t", "heightAboveGroundLayer", {10});
  layer.levels.bottoms = {-1};
  EXPECT_EQ(open_record(stream_of(), layer, {0, 0, hour, 0}).integer("scaledValueOfSecondFixedSurface"),
            0x80000001);
  const Status pressure = define(stream_of(), field_of("t", "isobaricInhPa", {-5}));
  EXPECT_EQ(pressure.code(), Code::format);
  EXPECT_TRUE(contains(pressure.text(), "only heights, depths and potential vorticity may be negative"))
      << pressure.text();
  for (const double beyond : {2147483647.0, -2147483647.0})
    EXPECT_TRUE(contains(define(stream_of(), field_of("t", "heightAboveSea", {beyond})).text(),
                         "31 bits and a sign"));
  EXPECT_TRUE(define(stream_of(), field_of("t", "heightAboveSea", {2147483646.0, -2147483646.0})).is_ok());
}

TEST(grib2_keys, a_quarter_of_an_hour_is_fifteen_minutes) {
  auto handle = open_record(stream_of(), field_of("t", "hybrid", {7}), {0, 0, 15 * minute, 0});
  expect_keys(handle, {{"indicatorOfUnitOfTimeRange", "m"}, {"forecastTime", "15"}, {"validityTime", "15"}});
  EXPECT_EQ(handle.set("stepUnits", std::string("m")), 0);
  EXPECT_EQ(handle.text("stepRange"), "15");
}

TEST(grib2_keys, the_unit_depends_on_the_lead_alone) {
  const auto codec = codec_of(stream_of());
  ASSERT_TRUE(codec->define(field_of("t", "hybrid", {7})).is_ok());
  const auto encoder = codec->encoder();
  const std::vector<std::pair<std::int64_t, std::pair<std::string, long>>> cases{
      {0, {"h", 0}},        {90, {"s", 90}},          {15 * minute, {"m", 15}},
      {6 * hour, {"h", 6}}, {90 * minute, {"m", 90}}, {6 * hour, {"h", 6}}};
  for (const auto& [lead, expected] : cases) {
    ByteVector out;
    std::vector<double> values = wave(60);
    ASSERT_TRUE(
        encoder->encode({0, 0, lead, 0}, reinterpret_cast<std::byte*>(values.data()), 60, out).is_ok());
    const auto handle = std::move(*grib2::Handle::from_message(out));
    EXPECT_EQ(handle.text("indicatorOfUnitOfTimeRange"), expected.first);
    EXPECT_EQ(handle.integer("forecastTime"), expected.second);
  }
}

TEST(grib2_keys, two_metre_temperature_at_the_surface_is_an_error_that_says_where_it_belongs) {
  const Status status = define(stream_of(), field_of("2t", "surface"));
  EXPECT_EQ(status.code(), Code::format);
  for (const char* part : {"field '2t'", "typeOfLevel", "surface", "heightAboveGround", "height:2"})
    EXPECT_TRUE(contains(status.text(), part)) << part << " in: " << status.text();
  EXPECT_TRUE(define(stream_of(), field_of("2t", "height", {2})).is_ok());
}

TEST(grib2_keys, a_name_that_a_level_changes_is_an_error_with_the_name_it_has_there) {
  const Status status = define(stream_of(), field_of("u", "height", {100, 10}));
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_TRUE(contains(status.text(), "'100u'")) << status.text();
  EXPECT_TRUE(define(stream_of(), field_of("10u", "height", {10})).is_ok());
  EXPECT_EQ(define(stream_of(), field_of("10u", "height", {11})).code(), Code::format);
}

FieldDefinition rain() {
  FieldDefinition field = field_of("tp");
  field.statistic.process = Process::accum;
  return field;
}

TEST(grib2_keys, accumulated_precipitation_has_its_interval_and_its_end) {
  const auto handle = open_record(stream_of(), rain(), {0, 0, 30 * hour, 0});
  expect_keys(handle, {{"shortName", "tp"},
                       {"productDefinitionTemplateNumber", "8"},
                       {"stepType", "accum"},
                       {"stepRange", "0-30"},
                       {"lengthOfTimeRange", "30"},
                       {"yearOfEndOfOverallTimeInterval", "2026"},
                       {"monthOfEndOfOverallTimeInterval", "3"},
                       {"dayOfEndOfOverallTimeInterval", "2"},
                       {"hourOfEndOfOverallTimeInterval", "6"},
                       {"validityDate", "20260302"}});
}

TEST(grib2_keys, an_interval_of_minutes_and_an_empty_one_are_exact) {
  FieldDefinition field = rain();
  field.statistic.since = Statistic::Since::last_output;
  auto handle = open_record(stream_of(), field, {0, 0, 45 * minute, 30 * minute});
  EXPECT_EQ(handle.set("stepUnits", std::string("m")), 0);
  expect_keys(handle, {{"stepRange", "30-45"},
                       {"lengthOfTimeRange", "15"},
                       {"indicatorOfUnitForTimeRange", "m"},
                       {"minuteOfEndOfOverallTimeInterval", "45"}});
  const auto empty = open_record(stream_of(), rain(), {0, 0, 0, 0});
  expect_keys(empty, {{"stepRange", "0"},
                      {"lengthOfTimeRange", "0"},
                      {"stepType", "accum"},
                      {"hourOfEndOfOverallTimeInterval", "0"}});
}

TEST(grib2_keys, every_statistic_reads_back) {
  const std::vector<std::pair<Process, std::string>> processes{{Process::accum, "accum"},
                                                               {Process::average, "avg"},
                                                               {Process::maximum, "max"},
                                                               {Process::minimum, "min"}};
  for (const auto& [process, name] : processes) {
    FieldDefinition field = field_of("t", "pressure", {850});
    field.statistic = {process, Statistic::Since::duration, hour, true};
    expect_keys(open_record(stream_of(), field, {0, 0, 3 * hour, 2 * hour}),
                {{"stepType", name}, {"stepRange", "2-3"}});
  }
}

TEST(grib2_keys, precipitation_at_an_instant_says_that_it_needs_a_statistic) {
  const Status status = define(stream_of(), field_of("tp"));
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_TRUE(contains(status.text(), "statistic=accum")) << status.text();
}

TEST(grib2_keys, a_statistic_that_the_name_contradicts_is_an_error) {
  FieldDefinition field = rain();
  field.statistic.process = Process::average;
  const Status status = define(stream_of(), field);
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_TRUE(contains(status.text(), "accum")) << status.text();
}

TEST(grib2_keys, an_ensemble_member_chooses_templates_one_and_eleven) {
  StreamDefinition stream = stream_of();
  stream.member = 7;
  expect_keys(open_record(stream, field_of("t", "hybrid", {7}), {0, 0, hour, 0}),
              {{"productDefinitionTemplateNumber", "1"},
               {"perturbationNumber", "7"},
               {"shortName", "t"},
               {"level", "7"}});
  stream.members = 51;
  expect_keys(open_record(stream, rain(), {0, 0, hour, 0}), {{"productDefinitionTemplateNumber", "11"},
                                                             {"perturbationNumber", "7"},
                                                             {"numberOfForecastsInEnsemble", "51"},
                                                             {"shortName", "tp"},
                                                             {"stepRange", "0-1"}});
}

TEST(grib2_keys, a_member_given_as_a_key_chooses_the_template_too) {
  StreamDefinition stream = stream_of();
  stream.keys = {{"centre", "98"}, {"perturbationNumber", "7"}};
  expect_keys(open_record(stream, field_of("t", "hybrid", {7}), {0, 0, hour, 0}),
              {{"productDefinitionTemplateNumber", "1"}, {"perturbationNumber", "7"}, {"centre", "ecmf"}});
  stream.member = 8;
  EXPECT_EQ(define(stream, field_of("t", "hybrid", {7})).code(), Code::argument);
}

TEST(grib2_keys, a_key_that_no_message_has_is_refused_before_a_field_is_defined) {
  StreamDefinition stream = stream_of();
  const auto check = [&](const codec::Keys& keys) {
    stream.keys = keys;
    std::vector<std::string> names;
    for (const auto& [name, value] : keys) names.push_back(name);
    return grib2::check_keys(stream, names);
  };
  EXPECT_TRUE(check({}).is_ok());
  const Status all = check({{"centre", "98"},
                            {"generatingProcessIdentifier", "1"},
                            {"typeOfProcessedData", "an"},
                            {"perturbationNumber", "7"},
                            {"numberOfForecastsInEnsemble", "9"},
                            {"typeOfStatisticalProcessing", "1"},
                            {"setLocalDefinition", "1"},
                            {"localDefinitionNumber", "1"},
                            {"expver", "0001"},
                            {"class", "od"},
                            {"bitsPerValue", "12"}});
  EXPECT_TRUE(all.is_ok()) << all.text();
  const Status slip = check({{"centr", "98"}});
  EXPECT_EQ(slip.code(), Code::settings);
  EXPECT_TRUE(contains(slip.text(), "unknown key \"centr\"") &&
              contains(slip.text(), "did you mean \"centre\"?"))
      << slip.text();
  const Status none = check({{"centre", "98"}, {"method", "mpiio"}});
  EXPECT_TRUE(contains(none.text(), "\"method\": it is no option, and ecCodes has no such key"))
      << none.text();
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.keys = {{"unit", "K"}};
  const Status defined = define(stream_of(), field);
  EXPECT_TRUE(contains(defined.text(), "key 'unit' = K is neither an option nor a key")) << defined.text();
}

TEST(grib2_keys, ensembles_beyond_one_octet_or_without_a_member_are_refused) {
  StreamDefinition stream = stream_of();
  stream.members = 10;
  EXPECT_EQ(define(stream, field_of("t", "hybrid", {7})).code(), Code::argument);
  stream.member = 300;
  EXPECT_EQ(define(stream, field_of("t", "hybrid", {7})).code(), Code::format);
}

TEST(grib2_keys, levels_of_any_type_read_back_with_fractions) {
  const std::vector<std::pair<std::string, double>> levels{{"pressure", 850},
                                                           {"isobaricInPa", 85000},
                                                           {"pressure", 0.5},
                                                           {"height", 1.5},
                                                           {"height", 0},
                                                           {"sigma", 0.995},
                                                           {"theta", 320},
                                                           {"potentialVorticity", 2},
                                                           {"depthBelowLand", 0.07},
                                                           {"meanSea", 0},
                                                           {"tropopause", 0},
                                                           {"surface", 0}};
  for (const auto& [type, value] : levels)
    EXPECT_TRUE(define(stream_of(), field_of("t", type, {value})).is_ok())
        << type << ":" << value << " " << define(stream_of(), field_of("t", type, {value})).text();
  const auto handle = open_record(stream_of(), field_of("t", "depthBelowLand", {0.07}), {0, 0, hour, 0});
  expect_keys(handle, {{"scaledValueOfFirstFixedSurface", "7"}, {"scaleFactorOfFirstFixedSurface", "2"}});
}

TEST(grib2_keys, levels_are_those_that_ecCodes_prints) {
  for (const auto& [type, value] : std::vector<std::pair<std::string, double>>{{"isobaricInPa", 50},
                                                                               {"pressure", 0.5},
                                                                               {"potentialVorticity", 2},
                                                                               {"potentialVorticity", 1.5},
                                                                               {"potentialVorticity", 0.7},
                                                                               {"depthBelowLand", 0.07},
                                                                               {"sigma", 0.995},
                                                                               {"theta", 320}}) {
    const auto handle = open_record(stream_of(), field_of("t", type, {value}), {0, 0, hour, 0});
    const bool in_hpa = type == "pressure" && handle.text("typeOfLevel") == "isobaricInPa";
    EXPECT_NEAR(handle.number("level").value_or(-1), in_hpa ? value * 100 : value, 1e-9)
        << type << ":" << value;
  }
}

/// ecCodes calls 0 m below the sea `oceanSurface`.
TEST(grib2_keys, depths_may_begin_at_the_surface) {
  const FieldDefinition field = field_of("t", "depthBelowSea", {0, 10, 50});
  EXPECT_TRUE(define(stream_of(), field).is_ok()) << define(stream_of(), field).text();
  const auto top = open_record(stream_of(), field, {0, 0, hour, 0});
  expect_keys(top, {{"typeOfFirstFixedSurface", "160"},
                    {"scaledValueOfFirstFixedSurface", "0"},
                    {"typeOfLevel", "oceanSurface"}});
  EXPECT_TRUE(define(stream_of(), field_of("t", "oceanSurface", {0})).is_ok())
      << define(stream_of(), field_of("t", "oceanSurface", {0})).text();
}

TEST(grib2_keys, layers_that_ecCodes_numbers_have_these_numbers) {
  for (const char* const type : {"soilLayer", "seaIceLayer", "snowLayer", "oceanModelLayer"}) {
    FieldDefinition field = field_of("t", type, {1, 4});
    const auto handle = open_record(stream_of(), field, {0, 1, hour, 0});
    expect_keys(handle, {{"scaledValueOfFirstFixedSurface", "3"},
                         {"scaledValueOfSecondFixedSurface", "4"},
                         {"level", "4"},
                         {"typeOfLevel", type}});
    field.levels.bottoms = {2, 5};
    EXPECT_EQ(define(stream_of(), field).code(), Code::argument);
    EXPECT_EQ(define(stream_of(), field_of("t", type, {0})).code(), Code::argument);
  }
}

TEST(grib2_keys, an_unknown_type_of_level_is_an_error_that_has_a_reason) {
  const Status status = define(stream_of(), field_of("t", "depth", {0, 10, 50}));
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_EQ(status.text().find("No error"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("depthBelowSea"), std::string::npos) << status.text();
}

TEST(grib2_keys, layers_take_a_top_and_a_bottom_for_each_level) {
  FieldDefinition field = field_of("t", "depthBelowLandLayer", {0, 0.07});
  EXPECT_EQ(define(stream_of(), field).code(), Code::argument);  // no bottoms
  field.levels.bottoms = {0.07, 0.28};
  const auto handle = open_record(stream_of(), field, {0, 1, hour, 0});
  expect_keys(handle, {{"scaledValueOfFirstFixedSurface", "7"},
                       {"scaledValueOfSecondFixedSurface", "28"},
                       {"scaleFactorOfSecondFixedSurface", "2"},
                       {"typeOfLevel", "depthBelowLandLayer"}});
  field = field_of("t", "pressure", {850});
  field.levels.bottoms = {900};
  EXPECT_EQ(define(stream_of(), field).code(), Code::argument);
}

TEST(grib2_keys, levels_that_cannot_be_held_are_refused) {
  EXPECT_EQ(define(stream_of(), field_of("t", "hybrid", {-5})).code(), Code::format);
  EXPECT_EQ(define(stream_of(), field_of("t", "height", {1.0 / 3})).code(), Code::format);
  EXPECT_EQ(define(stream_of(), field_of("t", "height", {1e12})).code(), Code::format);
  const Status status = define(stream_of(), field_of("t", "no_such_level"));
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_TRUE(contains(status.text(), "no_such_level")) << status.text();
  EXPECT_FALSE(contains(status.text(), "No error")) << status.text();
}

TEST(grib2_keys, vertical_coefficients_must_suit_the_levels) {
  FieldDefinition field = field_of("t", "pressure", {850});
  field.levels.coefficients = {0, 1, 0, 1};
  EXPECT_EQ(define(stream_of(), field).code(), Code::argument);
  field.levels.type = "hybrid";
  field.levels.values = {3};
  EXPECT_EQ(define(stream_of(), field).code(), Code::argument);
  field.levels.values = {1};
  field.levels.coefficients = {0, 1, 0};
  EXPECT_EQ(define(stream_of(), field).code(), Code::argument);
}

// ecCodes' sample says something of its origin that is true of the sample alone.
TEST(grib2_keys, nothing_is_said_about_the_origin_but_that_it_is_a_forecast) {
  const Keys nobodys{{"centre", "65535"},
                     {"centreDescription", "Missing value"},
                     {"subCentre", "0"},
                     {"productionStatusOfProcessedData", "255"},
                     {"typeOfProcessedData", "fc"},
                     {"dataType", "fc"},
                     {"generatingProcessIdentifier", "255"},
                     {"backgroundProcess", "255"}};
  for (const FieldDefinition& field : {field_of("t", "hybrid", {7}), rain()}) {
    StreamDefinition stream = stream_of();
    const auto forecast = open_record(stream, field, {0, 0, hour, 0});
    expect_keys(forecast, nobodys);
    EXPECT_EQ(forecast.integer("typeOfGeneratingProcess"), 2);
    stream.member = 7;
    const auto member = open_record(stream, field, {0, 0, hour, 0});
    expect_keys(member, nobodys);
    EXPECT_EQ(member.integer("typeOfGeneratingProcess"), 4) << "ensemble forecast";
  }
}

TEST(grib2_keys, an_origin_that_is_given_is_kept) {
  const Keys origin{{"centre", "edzw"},
                    {"subCentre", "255"},
                    {"productionStatusOfProcessedData", "2"},
                    {"typeOfProcessedData", "an"},
                    {"typeOfGeneratingProcess", "0"},
                    {"generatingProcessIdentifier", "128"}};
  StreamDefinition stream = stream_of();
  stream.keys = origin;
  for (const FieldDefinition& field : {field_of("t", "hybrid", {7}), rain()})
    expect_keys(open_record(stream, field, {0, 0, hour, 0}), origin);
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.keys = {{"typeOfGeneratingProcess", "0"}, {"generatingProcessIdentifier", "9"}};
  expect_keys(open_record(stream_of(), field, {0, 0, hour, 0}), field.keys);
}

TEST(grib2_keys, extra_keys_are_set_and_read_back) {
  StreamDefinition stream = stream_of();
  stream.keys = {{"centre", "edzw"}, {"tablesVersion", "19"}, {"generatingProcessIdentifier", "33"}};
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.keys = {{"backgroundProcess", "5"}, {"hoursAfterDataCutoff", "missing"}};
  expect_keys(open_record(stream, field, {0, 0, hour, 0}), {{"centre", "edzw"},
                                                            {"tablesVersion", "19"},
                                                            {"generatingProcessIdentifier", "33"},
                                                            {"backgroundProcess", "5"},
                                                            {"shortName", "t"}});
}

TEST(grib2_keys, a_local_section_travels_with_every_record) {
  StreamDefinition stream = stream_of();
  stream.keys = {{"centre", "98"},
                 {"setLocalDefinition", "1"},
                 {"localDefinitionNumber", "1"},
                 {"stream", "oper"},
                 {"type", "fc"},
                 {"experimentVersionNumber", "0007"}};
  expect_keys(open_record(stream, field_of("t", "hybrid", {1, 2}), {0, 1, hour, 0}),
              {{"experimentVersionNumber", "0007"}, {"type", "fc"}, {"level", "2"}, {"stepRange", "1"}});
}

TEST(grib2_keys, unknown_keys_and_values_out_of_range_are_errors_that_name_them) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.keys = {{"noSuchKey", "1"}};
  Status status = define(stream_of(), field);
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_TRUE(contains(status.text(), "noSuchKey")) << status.text();
  field.keys = {{"backgroundProcess", "300"}};
  EXPECT_EQ(define(stream_of(), field).code(), Code::format);
  field.keys.clear();
  field.name = "no_such_name";
  status = define(stream_of(), field);
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_TRUE(contains(status.text(), "no_such_name")) << status.text();
}

TEST(grib2_keys, keys_with_a_typed_place_are_refused_with_that_place) {
  for (const auto& [key, place] : Keys{{"bitsPerValue", "bits="},
                                       {"packingType", "packing="},
                                       {"step", "lead"},
                                       {"dataDate", "base="},
                                       {"missingValue", "missing="},
                                       {"decimalScaleFactor", "accuracy="}}) {
    FieldDefinition field = field_of("t", "hybrid", {7});
    field.keys = {{key, "1"}};
    const Status status = define(stream_of(), field);
    EXPECT_EQ(status.code(), Code::argument) << key;
    EXPECT_TRUE(contains(status.text(), place)) << status.text();
  }
}

TEST(grib2_keys, an_extra_key_that_contradicts_the_definition_is_found_by_reading_back) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.keys = {{"parameterCategory", "2"}};
  Status status = define(stream_of(), field);
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_TRUE(contains(status.text(), "shortName")) << status.text();
  field.keys = {{"typeOfFirstFixedSurface", "100"}};
  EXPECT_EQ(define(stream_of(), field).code(), Code::format);
  field.keys = {{"gridType", "reduced_gg"}};
  EXPECT_EQ(define(stream_of(), field).code(), Code::format);
}

TEST(grib2_keys, a_key_of_a_field_that_contradicts_the_stream_names_both) {
  StreamDefinition stream = stream_of();
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.keys = {{"perturbationNumber", "4"}};
  stream.keys = {{"number", "3"}};
  EXPECT_TRUE(contains(define(stream, field).text(),
                       "key 'perturbationNumber' = 4 contradicts the stream's key 'number' = 3"))
      << define(stream, field).text();
  stream.keys = {};
  stream.member = 3;
  EXPECT_TRUE(contains(define(stream, field).text(), "= 4 contradicts the stream's option member = 3"))
      << define(stream, field).text();
}

TEST(grib2_keys, a_parameter_may_be_given_by_its_numbers_under_any_name) {
  FieldDefinition field = field_of("my_tracer", "hybrid", {7});
  field.keys = {{"discipline", "0"}, {"parameterCategory", "20"}, {"parameterNumber", "200"}};
  expect_keys(open_record(stream_of(), field, {0, 0, hour, 0}),
              {{"parameterCategory", "20"}, {"parameterNumber", "200"}, {"level", "7"}});
}

TEST(grib2_keys, a_calendar_that_grib_cannot_hold_is_refused) {
  for (const Calendar calendar : {Calendar::day_360, Calendar::no_leap}) {
    StreamDefinition stream = stream_of();
    stream.calendar = calendar;
    const Status status = formats::make_codec(stream).status();
    EXPECT_EQ(status.code(), Code::format);
    EXPECT_TRUE(contains(status.text(), "raw")) << status.text();
  }
}

TEST(grib2_keys, base_times_to_the_second_and_over_leap_days_read_back) {
  StreamDefinition stream = stream_of();
  stream.base = {2024, 2, 28, 23, 45, 30};
  const auto handle = open_record(stream, field_of("t", "hybrid", {7}), {0, 0, 24 * hour + 30, 0});
  expect_keys(handle, {{"second", "30"}, {"validityDate", "20240229"}, {"forecastTime", "86430"}});
  stream.base.year = 70000;
  EXPECT_EQ(define(stream, field_of("t", "hybrid", {7})).code(), Code::format);
}

TEST(grib2_keys, leads_and_intervals_are_checked) {
  const auto codec = codec_of(stream_of());
  ASSERT_TRUE(codec->define(field_of("t", "hybrid", {7})).is_ok());
  ASSERT_TRUE(codec->define(rain()).is_ok());
  EXPECT_TRUE(codec->check_lead({0, 0, 2147483647, 0}).is_ok());
  EXPECT_EQ(codec->check_lead({0, 0, -1, 0}).code(), Code::argument);
  const Status late = codec->check_lead({0, 0, 2147483649, 0});  // odd, so that only seconds fit
  EXPECT_EQ(late.code(), Code::format);
  EXPECT_TRUE(contains(late.text(), "field 't'")) << late.text();
  EXPECT_TRUE(codec->check_lead({0, 0, hour * 2147484, 0}).is_ok());
  EXPECT_EQ(codec->check_lead({0, 0, hour * 2147483647, 0}).code(), Code::format);  // the year 246,000
  EXPECT_EQ(codec->check_lead({1, 0, hour, 2 * hour}).code(), Code::argument);
  EXPECT_EQ(codec->check_lead({1, 0, hour, -hour}).code(), Code::argument);
  EXPECT_EQ(codec->check_lead({1, 0, 2 * hour, hour}).code(), Code::argument);  // since=start
}

TEST(grib2_keys, both_packings_read_back_and_others_are_unknown) {
  for (const char* packing : {"simple", "ccsds"})
    expect_keys(open_record(stream_of(packing), field_of("t", "hybrid", {7}), {0, 0, hour, 0}),
                {{"packingType", std::string("grid_") + packing}, {"bitsPerValue", "16"}});
  const Status status = formats::make_codec(stream_of("simpel")).status();
  EXPECT_EQ(status.code(), Code::settings);
  EXPECT_TRUE(contains(status.text(), "did you mean \"simple\"?")) << status.text();
}

TEST(grib2_keys, an_unstructured_grid_has_its_number_and_its_uuid) {
  FieldDefinition field = field_of("2t", "heightAboveGround", {2});
  field.shape = {60};
  for (const std::string uuid :
       {"A60BD5BE-1234-5678-9abc-def012345678", "a60bd5be123456789abcdef012345678"}) {
    field.georeference.keys = {{"gridType", "unstructured_grid"},
                               {"numberOfGridUsed", "42"},
                               {"numberOfGridInReference", "1"},
                               {"uuidOfHGrid", uuid}};
    const grib2::Handle record = open_record(stream_of(), field, {0, 0, 3600, 0});
    EXPECT_EQ(record.text("uuidOfHGrid"), "a60bd5be123456789abcdef012345678");
    EXPECT_EQ(record.integer("numberOfGridUsed"), 42);
    EXPECT_EQ(record.integer("numberOfGridInReference"), 1);
    EXPECT_EQ(record.text("gridType"), "unstructured_grid");
  }
  field.georeference.keys.back().second = "a60bd5be";
  const Status status = define(stream_of(), field);
  EXPECT_NE(status.text().find("'uuidOfHGrid': \"a60bd5be\" is no UUID"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace tailrace::codec::test
