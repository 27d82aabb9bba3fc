// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Files of other writers are understood: their times, levels and values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "formats/cf/times.hpp"
#include "formats/cf/unpacking.hpp"
#include "formats/cf/vertical.hpp"

namespace tailrace::cf {
namespace {

std::string time_at(std::string_view units, std::string_view calendar, double number) {
  const Result<TimeUnits> parsed = parse_time_units(units, calendar);
  if (!parsed.is_ok()) return parsed.status().text();
  const Result<std::int64_t> seconds = seconds_at(*parsed, number);
  return seconds.is_ok() ? format_time(from_seconds(*seconds, parsed->calendar)) : seconds.status().text();
}

TEST(cf_times, the_spellings_that_files_have_are_read) {
  EXPECT_EQ(time_at("hours since 1900-01-01 00:00:00.0", "gregorian", 1034376), "2018-01-01T00:00:00Z");
  EXPECT_EQ(time_at("seconds since 2026-03-01 06:00:00", "proleptic_gregorian", 3600),
            "2026-03-01T07:00:00Z");
  EXPECT_EQ(time_at("days since 2000-1-1", "", 0.25), "2000-01-01T06:00:00Z");
  EXPECT_EQ(time_at("days since 2000-01-01T12:00:00Z", "standard", 1.0 / 3), "2000-01-01T20:00:00Z");
  EXPECT_EQ(time_at("minutes since 2005-08-28_00:00:00", "", 90), "2005-08-28T01:30:00Z");
  EXPECT_EQ(time_at("Hours Since 1970-01-01 00:00 UTC", "", -1), "1969-12-31T23:00:00Z");
  EXPECT_EQ(time_at("hours since 1992-10-8 15:15:42.5 -6:00", "", 0), "1992-10-08T21:15:42Z");
  EXPECT_EQ(time_at("h since 2026-03-01 00:00 +0530", "", 0), "2026-02-28T18:30:00Z");
  EXPECT_EQ(time_at("days since 0001-01-01", "noleap", 365), "0002-01-01T00:00:00Z");
  EXPECT_EQ(time_at("days since 1850-02-30", "360_day", 1), "1850-03-01T00:00:00Z");
  EXPECT_EQ(time_at("milliseconds since 1970-01-01", "", 1500), "1970-01-01T00:00:02Z");
  EXPECT_EQ(time_at("microseconds since 2000-01-01", "", 90e6), "2000-01-01T00:01:30Z");
  EXPECT_EQ(time_at("nanoseconds since 1970-01-01", "", 1772323200e9), "2026-03-01T00:00:00Z");
  EXPECT_EQ(time_at("us since 1970-01-01", "", 2e6), "1970-01-01T00:00:02Z");
}

TEST(cf_times, calendars_have_the_names_that_files_give_them) {
  EXPECT_EQ(time_at("days since 2000-02-30", "360", 1), "2000-03-01T00:00:00Z");
  EXPECT_EQ(time_at("days since 2000-02-28", "none", 1.5), "2000-02-29T12:00:00Z");
  EXPECT_EQ(time_at("days since 2000-02-28", "365_day", 1), "2000-03-01T00:00:00Z");
  EXPECT_EQ(time_at("days since 1900-02-28", "julian", 1), "1900-02-29T00:00:00Z");
  EXPECT_EQ(time_at("days since 0001-01-01", "julian", 735000), "2013-04-28T00:00:00Z");
  EXPECT_EQ(time_at("days since 2001-02-28", "366_day", 1), "2001-02-29T00:00:00Z");
  EXPECT_EQ(time_at("days since 2001-01-01", "all_leap", 366), "2002-01-01T00:00:00Z");
  EXPECT_EQ(time_at("months since 1850-01-01", "360_day", 13.5), "1851-02-16T00:00:00Z");
  EXPECT_EQ(time_at("month since 1850-01-01", "360", -1), "1849-12-01T00:00:00Z");
}

// cftime 1.6.2: num2date(735000, "days since 0001-01-01", "standard") is 2013-05-11; proleptic 2013-05-13.
TEST(cf_times, a_base_before_the_reform_is_a_julian_day_in_the_standard_calendar) {
  EXPECT_EQ(time_at("days since 0001-01-01", "standard", 735000), "2013-05-11T00:00:00Z");
  EXPECT_EQ(time_at("days since 0001-01-01", "proleptic_gregorian", 735000), "2013-05-13T00:00:00Z");
  EXPECT_EQ(time_at("days since 1582-10-04", "gregorian", 1), "1582-10-15T00:00:00Z");
  EXPECT_EQ(time_at("days since 1582-10-15", "gregorian", 1), "1582-10-16T00:00:00Z");
}

TEST(cf_times, units_without_a_fixed_length_are_refused_in_words) {
  const std::string text = time_at("months since 1900-01-01", "", 1);
  EXPECT_NE(text.find("months, which have no fixed length"), std::string::npos) << text;
  EXPECT_EQ(parse_time_units("months since 1900-01-01", "").status().code(), Code::format);
  for (const char* const units :
       {"hours", "hours since", "hours since yesterday", "fortnights since 1900-01-01",
        "hours since 1900-13-01", "hours since 1900-02-29 25:00", "hours since 1900-01-01 x",
        "hours since 1900-01-01 +99:00", " since 1900-01-01"})
    EXPECT_EQ(parse_time_units(units, "").status().code(), Code::format) << units;
  EXPECT_EQ(parse_time_units("days since 1900-01-01", "mayan").status().code(), Code::format);
  EXPECT_FALSE(are_time_units("hours"));
}

TEST(cf_times, numbers_that_are_no_times_are_refused) {
  const TimeUnits days = *parse_time_units("days since 1900-01-01", "");
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity(), 1e300, -1e300})
    EXPECT_EQ(seconds_at(days, number).status().code(), Code::corrupt) << number;
  const TimeUnits far = *parse_time_units("seconds since 900000000-01-01", "360_day");
  EXPECT_EQ(seconds_at(far, 2.9e16).status().code(), Code::corrupt) << "no such year is in a calendar";
  EXPECT_EQ(seconds_at(far, -2.9e16).is_ok(), true);
}

FoundVariable coordinate(const std::string& name,
                         std::vector<std::pair<std::string, std::string>> attributes) {
  FoundVariable variable{name, {0}, Number::float64, {}};
  for (auto& [key, text] : attributes) variable.attributes.push_back({key, Number::none, text, {}});
  return variable;
}

TEST(cf_vertical, axes_get_the_names_that_grib_has) {
  using Values = std::vector<double>;
  const auto check = [](const FoundVariable& of, Values values, const std::string& type,
                        const Values& levels) {
    EXPECT_TRUE(is_vertical(of)) << of.name;
    const FoundLevels found = levels_of(of, std::move(values));
    EXPECT_EQ(found.type, type) << of.name;
    EXPECT_EQ(found.values, levels) << of.name;
  };
  check(coordinate("plev", {{"units", "Pa"}, {"standard_name", "air_pressure"}}), {85000, 50000, 10},
        "isobaricInhPa", {850, 500, 0.1});
  check(coordinate("level", {{"units", "millibars"}, {"long_name", "pressure_level"}}), {1000},
        "isobaricInhPa", {1000});
  check(coordinate("plev", {{"units", "Pa"}, {"long_name", "isobaricInPa"}, {"axis", "Z"}}), {50},
        "isobaricInPa", {50});
  check(coordinate("height", {{"units", "m"}, {"standard_name", "height"}, {"positive", "up"}}), {2},
        "heightAboveGround", {2});
  check(coordinate("h", {{"units", "km"}, {"standard_name", "height"}}), {1.5}, "heightAboveGround", {1500});
  check(coordinate("alt", {{"units", "m"}, {"standard_name", "altitude"}}), {12}, "heightAboveSea", {12});
  check(coordinate("depth", {{"units", "m"}, {"standard_name", "depth"}}), {5}, "depthBelowSea", {5});
  check(coordinate("soil", {{"units", "cm"}, {"standard_name", "depth"}}), {7}, "depthBelowLand", {0.07});
  check(coordinate("lev", {{"standard_name", "atmosphere_hybrid_sigma_pressure_coordinate"}}), {0.1, 0.9},
        "hybrid", {1, 2});
  check(coordinate("lev", {{"standard_name", "atmosphere_hybrid_sigma_pressure_coordinate"}}), {60, 59},
        "hybrid", {60, 59});
  check(coordinate("level", {{"long_name", "model_level_number"}}), {137}, "hybrid", {137});
  check(coordinate("theta", {{"units", "K"}, {"standard_name", "air_potential_temperature"}}), {315}, "theta",
        {315});
  check(coordinate("olevel", {{"units", "1"}, {"long_name", "oceanModel"}, {"axis", "Z"}}), {3}, "oceanModel",
        {3});
  check(coordinate("snowLayer", {{"units", "1"}, {"long_name", "snowLayer"}, {"axis", "Z"}}), {3},
        "snowLayer", {3});
  check(coordinate("lev", {{"axis", "Z"}}), {17}, "", {17});
  EXPECT_FALSE(is_vertical(coordinate("lat", {{"units", "degrees_north"}})));
  EXPECT_TRUE(is_horizontal(coordinate("lat", {{"units", "degrees_north"}})));
  EXPECT_TRUE(is_horizontal(coordinate("x", {{"standard_name", "projection_x_coordinate"}})));
  EXPECT_FALSE(is_horizontal(coordinate("plev", {{"units", "Pa"}})));
}

template <typename T>
FoundAttribute number(const std::string& name, Number type, std::initializer_list<T> values) {
  FoundAttribute attribute{name, type, {}, {}};
  for (const T value : values) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    attribute.values.insert(attribute.values.end(), bytes.begin(), bytes.end());
  }
  return attribute;
}

template <typename T>
struct Unpacked {
  std::vector<double> values;
  Index missing = 0;
};

template <typename Value, typename Raw>
Unpacked<Value> unpacked(const FoundVariable& variable, const std::vector<Raw>& raw,
                         bool default_fill = true) {
  const Result<Unpacking> how = unpacking_of(variable, default_fill);
  EXPECT_TRUE(how.is_ok()) << how.status().text();
  std::vector<Value> values(raw.size());
  Unpacked<Value> all;
  all.missing = unpack(*how, reinterpret_cast<const std::byte*>(raw.data()), 1, std::ssize(raw),
                       sizeof(Value) == 4 ? ElementType::f32 : ElementType::f64,
                       reinterpret_cast<std::byte*>(values.data()));
  all.values.assign(values.begin(), values.end());
  // So that they compare as equal.
  for (double& each : all.values) each = each != each ? -1e99 : each;
  return all;
}
constexpr double none = -1e99;

TEST(cf_unpacking, scaled_integers_become_what_the_netcdf_library_makes_of_them) {
  const FoundVariable t{
      "t",
      {},
      Number::int16,
      {number("scale_factor", Number::float64, {0.01}), number("add_offset", Number::float64, {273.15}),
       number("_FillValue", Number::int16, {std::int16_t{-999}})}};
  const auto as_double = unpacked<double>(t, std::vector<std::int16_t>{0, 100, -999, -32767});
  EXPECT_EQ(as_double.values,
            (std::vector<double>{273.15, 100 * 0.01 + 273.15, none, -32767 * 0.01 + 273.15}));
  EXPECT_EQ(as_double.missing, 1);
  const auto as_float = unpacked<float>(t, std::vector<std::int16_t>{100});
  EXPECT_EQ(as_float.values.front(), static_cast<float>(100 * 0.01 + 273.15));
}

TEST(cf_unpacking, integers_become_integers_that_have_all_their_values) {
  const FoundVariable flags{
      "v", {}, Number::uint16, {number("_FillValue", Number::uint16, {std::uint16_t{9}})}};
  const Result<Unpacking> how = unpacking_of(flags, true);
  ASSERT_TRUE(how.is_ok());
  EXPECT_EQ(how->exact_type(), ElementType::u16);
  const std::vector<std::uint16_t> raw{0, 9, 65535};
  std::vector<std::int32_t> values{-1, -1, -1};
  const auto* const elements = reinterpret_cast<const std::byte*>(raw.data());
  EXPECT_EQ(unpack(*how, elements, 1, 3, ElementType::i32, reinterpret_cast<std::byte*>(values.data())), 1);
  EXPECT_EQ(values, (std::vector<std::int32_t>{0, -1, 65535})) << "what stood at the missing one stays";
  // Classic files have no unsigned types: an attribute tells them.
  FoundVariable classic{"v", {}, Number::int16, {{"_Unsigned", Number::none, "true", {}}}};
  EXPECT_EQ(unpacking_of(classic, true)->exact_type(), ElementType::u16);
  classic.attributes.push_back(number("scale_factor", Number::float64, {0.5}));
  EXPECT_EQ(unpacking_of(classic, true)->exact_type(), std::nullopt);
  EXPECT_TRUE(has_all_of(ElementType::i32, ElementType::u16) &&
              has_all_of(ElementType::u64, ElementType::byte));
  EXPECT_FALSE(has_all_of(ElementType::i16, ElementType::u16) ||
               has_all_of(ElementType::u64, ElementType::i8));
}

TEST(cf_unpacking, every_way_to_say_missing_is_known) {
  const FoundVariable several{
      "v",
      {},
      Number::int32,
      {number("missing_value", Number::int32, {-1, -2}), number("valid_range", Number::int32, {-5, 100})}};
  const auto got =
      unpacked<double>(several, std::vector<std::int32_t>{-1, -2, -3, -6, 101, 100, -2147483647});
  EXPECT_EQ(got.values, (std::vector<double>{none, none, -3, none, none, 100, none}));
  EXPECT_EQ(got.missing, 5);
  // A fill value of another type than the elements is the nearest element.
  const FoundVariable real{"v", {}, Number::float32, {number("missing_value", Number::float64, {1e20})}};
  EXPECT_EQ(unpacked<float>(real, std::vector<float>{1e20f, 3, std::nanf("")}).values,
            (std::vector<double>{none, 3, none}));
  EXPECT_EQ(unpacked<float>(real, std::vector<float>{1e20f, 3, std::nanf("")}).missing, 2);
  // 64-bit integers that no double is.
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  const FoundVariable wide{"v", {}, Number::int64, {number("_FillValue", Number::int64, {large})}};
  EXPECT_EQ(unpacked<double>(wide, std::vector<std::int64_t>{large, large - 1}).missing, 1);
  // Without fill value the library's own counts, but not in bytes.
  const FoundVariable plain{"v", {}, Number::float64, {}}, byte{"v", {}, Number::int8, {}};
  EXPECT_EQ(unpacked<double>(plain, std::vector<double>{9.9692099683868690e+36}).missing, 1);
  EXPECT_EQ(unpacked<double>(plain, std::vector<double>{9.9692099683868690e+36}, false).missing, 0);
  EXPECT_EQ(unpacked<double>(byte, std::vector<std::int8_t>{-127}).missing, 0);
}

TEST(cf_unpacking, limits_count_before_unpacking_unless_they_have_the_unpacked_type) {
  const auto scale = number("scale_factor", Number::float32, {0.5F});
  const FoundVariable packed{
      "v", {}, Number::int16, {scale, number("valid_max", Number::int16, {std::int16_t{10}})}};
  EXPECT_EQ(unpacked<double>(packed, std::vector<std::int16_t>{10, 11}).values,
            (std::vector<double>{5, none}));
  const FoundVariable physical{"v", {}, Number::int16, {scale, number("valid_max", Number::float32, {10.F})}};
  EXPECT_EQ(unpacked<double>(physical, std::vector<std::int16_t>{20, 21}).values,
            (std::vector<double>{10, none}));
}

TEST(cf_unpacking, bytes_may_be_unsigned_by_an_attribute) {
  const FoundVariable v{"v",
                        {},
                        Number::int8,
                        {{"_Unsigned", Number::none, "true", {}},
                         number("_FillValue", Number::int8, {std::int8_t{-1}}),
                         number("valid_range", Number::int8, {std::int8_t{0}, std::int8_t{-6}})}};
  EXPECT_EQ(unpacked<float>(v, std::vector<std::uint8_t>{255, 250, 251, 7}).values,
            (std::vector<double>{none, 250, none, 7}));
}

TEST(cf_unpacking, attributes_that_are_no_numbers_are_refused) {
  const FoundVariable text{"v", {}, Number::int16, {{"scale_factor", Number::none, "0.1", {}}}};
  EXPECT_EQ(unpacking_of(text, true).status().code(), Code::format);
  EXPECT_NE(unpacking_of(text, true).status().text().find("variable 'v': attribute scale_factor"),
            std::string::npos);
  const FoundVariable three{"v", {}, Number::int16, {number("valid_range", Number::float64, {1., 2., 3.})}};
  EXPECT_EQ(unpacking_of(three, true).status().code(), Code::format);
}

}  // namespace
}  // namespace tailrace::cf
