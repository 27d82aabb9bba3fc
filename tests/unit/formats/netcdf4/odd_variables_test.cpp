// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Files with one thing that nobody understands: all else of them is read.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "../variables/nc_file.hpp"
#include "../variables/reading.hpp"
#include "ground/base/text.hpp"

namespace tailrace::variables {
namespace {

using namespace test;
using nc_file::sequence;
using nc_file::Writer;
using Values = std::vector<double>;

constexpr double never_written = 9.9692099683868690e+36;  // NC_FILL_DOUBLE

/// Returns why a field, or a part of it, is not read; "" if all of it is.
std::string why_not(const Source& source, const std::string& field) {
  const auto& unread = source.inventory().unread;
  const auto found = std::ranges::find(unread, field, &sources::Unread::field);
  return found == unread.end() ? "" : found->why.text();
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

/// What is odd about the variable b, and the words that tell it.
struct Odd {
  std::function<void(Writer& file, int x)> add;
  std::string words;
};

/// Adds b with a time axis of its own.
std::function<void(Writer&, int)> with_times(const Values& times, const std::string& units,
                                             const std::string& calendar = "standard") {
  return [=](Writer& file, int x) {
    const int t2 = file.axis("t2", times, {{"units", units}, {"calendar", calendar}});
    file.put(file.variable("b", NC_FLOAT, {t2, x}), sequence(2 * times.size()));
  };
}

TEST(OddVariables, LeaveTheOthersReadableAndSayWhatIsOdd) {
  const std::string days = "days since 2024-01-01";
  const std::vector<Odd> all{
      {[](Writer& file, int x) {
         const int b = file.variable("b", NC_FLOAT, {x});
         file.text(b, "valid_min", "0");
         file.put(b, {1, 2});
       },
       "attribute valid_min must hold 1 number, and holds the text \"0\""},
      {with_times({0}, "months since 2024-01-01"), "variable 't2': the units \"months since 2024-01-01\""},
      {with_times({0}, days, "noleap"), "variable 't2': the calendar is noleap"},
      {with_times({0}, days, "lunar"), "the calendar \"lunar\""},
      {with_times({never_written}, days), "variable 't2': element 1 of 1 is a fill value or NaN"},
      {with_times({1e300}, days), "variable 't2': element 1 of 1 is 1e+300"},
      {[](Writer& file, int x) {
         const int run =
             file.axis("run", {0, 1},
                       {{"units", "hours since 2024-01-01"}, {"standard_name", "forecast_reference_time"}});
         file.put(file.variable("b", NC_FLOAT, {run, x}), sequence(4));
       },
       "does not tell alone when a field is valid"},
      {[](Writer& file, int x) {
         const int number = file.axis("number", {0.5, 1}, {});
         file.put(file.variable("b", NC_FLOAT, {number, x}), sequence(4));
       },
       "expected whole numbers of members"}};
  for (const int mode : {0, NC_NETCDF4}) {
    for (const Odd& odd : all) {
      for (const bool is_first : {true, false}) {
        Writer file(mode);
        const int x = file.dimension("x", 2);
        const auto add_a = [&] {
          const int time = file.axis("time", {0, 6}, {{"units", "hours since 2024-01-01"}});
          file.put(file.variable("a", NC_FLOAT, {time, x}), sequence(4));
        };
        // The calendar of a file is that of its first times.
        const bool is_calendar = odd.words.find("noleap") != std::string::npos;
        if (!is_first || is_calendar) add_a();
        odd.add(file, x);
        if (is_first && !is_calendar) add_a();
        const auto source = opened(file.bytes());
        ASSERT_NE(source, nullptr) << odd.words;
        ASSERT_EQ(records_of(*source, "a").size(), 2U) << odd.words;
        EXPECT_EQ(time_text(*source, records_of(*source, "a")[1].valid), "2024-01-01T06:00:00Z");
        EXPECT_EQ(all_of(*source, records_of(*source, "a")[1]).values, (Values{2, 3}));
        EXPECT_EQ(records_of(*source, "b").size(), 0U) << odd.words;
        EXPECT_EQ(why_not(*source, "a"), "");
        expect_part(why_not(*source, "b"), odd.words);
      }
    }
  }
}

TEST(OddVariables, ThatAreAllThatAFileHasAreItsError) {
  Writer file(0);
  with_times({0}, "months since 2024-01-01")(file, file.dimension("x", 2));
  const Status status = sources::open(target_with("a.nc", file.bytes()), "a.nc", "").status();
  EXPECT_EQ(status.code(), Code::format);
  expect_part(status.text(), "a.nc: variable 't2': the units \"months since");
}

TEST(OddVariables, FieldsWithoutTimesFitEachTimeIfThoseOfTheFileAreNotUnderstood) {
  Writer file(0);
  const int x = file.dimension("x", 2);
  with_times({0, 1}, "months since 2024-01-01")(file, x);
  file.put(file.variable("mask", NC_FLOAT, {x}), {5, 6});
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(records_of(*source, "mask").size(), 1U);
  EXPECT_EQ(records_of(*source, "mask")[0].valid, any_time);
}

// Once such a field had a record for each time, which were more than a file may have.
TEST(OddVariables, FieldsWithoutTimesHaveNoMoreRecordsThanLevels) {
  constexpr std::size_t times = std::size_t{1} << 20, levels = 17;
  Writer file(0);
  const int time = file.variable("time", NC_INT, {file.dimension("time", times)});
  file.text(time, "units", "seconds since 2024-01-01");
  const int level = file.axis("lev", sequence(levels, 1), {{"units", "m"}, {"positive", "down"}});
  file.put(time, sequence(times));
  file.put(file.variable("fixed", NC_FLOAT, {level, file.dimension("y", 1), file.dimension("x", 2)}),
           sequence(2 * levels));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  const std::vector<Record> fixed = records_of(*source, "fixed");
  ASSERT_EQ(fixed.size(), levels);
  EXPECT_EQ(fixed[16].valid, any_time);
  EXPECT_EQ(fixed[16].level, 17);
  EXPECT_EQ(all_of(*source, fixed[16]).values, (Values{32, 33}));
}

// One number of each second of many days is no reason to read no map.
TEST(OddVariables, SeriesOfManyNumbersLeaveTheMapsReadable) {
  constexpr std::size_t times = std::size_t{1} << 20, levels = 2;
  Writer file(0);
  const int second = file.variable("second", NC_INT, {file.dimension("second", times)});
  file.text(second, "units", "seconds since 2024-01-01");
  const int level = file.axis("lev", sequence(levels, 1), {{"units", "m"}, {"positive", "down"}});
  file.variable("z", NC_BYTE, {0, level});
  const int time = file.axis("time", {0, 1}, {{"units", "hours since 2024-01-01"}});
  file.put(second, sequence(times));
  file.put(file.variable("a", NC_FLOAT, {time, file.dimension("x", 2)}), sequence(4));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(records_of(*source, "a").size(), 2U);
  expect_part(why_not(*source, "z"), "'z': with it the file has more than 1048576 numbers of series");
}

TEST(OddVariables, OfTimesFromNoDateInAnotherUnitAreNotMixed) {
  Writer file(0);
  const int s = file.axis("time", {0, 1}, {{"units", "s"}, {"axis", "T"}}), x = file.dimension("x", 2);
  const int hours = file.axis("t2", {0, 1}, {{"units", "hours"}, {"axis", "T"}});
  const int seconds = file.axis("t3", {0, 2}, {{"units", "seconds"}, {"axis", "T"}});
  file.put(file.variable("a", NC_FLOAT, {s, x}), sequence(4));
  file.put(file.variable("b", NC_FLOAT, {hours, x}), sequence(4));
  file.put(file.variable("c", NC_FLOAT, {seconds, x}), sequence(4));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(records_of(*source, "a").size(), 2U);
  EXPECT_EQ(records_of(*source, "c").size(), 2U);
  EXPECT_TRUE(records_of(*source, "b").empty());
  expect_part(why_not(*source, "b"), "variable 't2': the unit is hours, and that of another time axis");
}

/// Makes a field a(time, x) whose integer times end with the fill value 100, in hours.
void add_missing_time(Writer& file, bool has_bounds) {
  const int time = file.dimension("time", 3), x = file.dimension("x", 2);
  const int coordinate = file.variable("time", NC_INT, {time});
  file.text(coordinate, "units", "hours since 2024-01-01");
  file.number(coordinate, "_FillValue", NC_INT, {100});
  const int a = file.variable("a", NC_FLOAT, {time, x});
  if (has_bounds) {
    file.text(coordinate, "bounds", "time_bnds");
    file.text(a, "cell_methods", "time: mean");
    const int bounds = file.variable("time_bnds", NC_INT, {time, file.dimension("two", 2)});
    file.put(bounds, {0, 1, 1, 2, 100, 100});
  }
  file.put(file.variable("mask", NC_FLOAT, {x}), {5, 6});
  file.put(coordinate, {0, 1, 100});
  file.put(a, sequence(6));
}

TEST(OddVariables, ATimeThatIsAFillValueIsNone) {
  for (const int mode : {0, NC_NETCDF4}) {
    for (const bool has_bounds : {false, true}) {
      Writer file(mode);
      add_missing_time(file, has_bounds);
      const auto source = opened(file.bytes());
      ASSERT_NE(source, nullptr);
      const std::vector<Record> a = records_of(*source, "a");
      ASSERT_EQ(a.size(), 2U);
      EXPECT_EQ(time_text(*source, a[1].valid), has_bounds ? "2024-01-01T02:00:00Z" : "2024-01-01T01:00:00Z");
      EXPECT_EQ(all_of(*source, a[1]).values, (Values{2, 3}));
      expect_part(why_not(*source, "a"), "variable 'time': element 3 of 3 is a fill value or NaN");
      EXPECT_EQ(records_of(*source, "mask").size(), 1U) << "a field without times fits each of them";
      EXPECT_EQ(why_not(*source, "mask"), "");
    }
  }
}

TEST(OddVariables, LevelsAndMembersThatAreFillValuesAreNone) {
  Writer file(0);
  const int lev = file.dimension("lev", 3), number = file.dimension("number", 2), x = file.dimension("x", 2);
  const int levels = file.variable("lev", NC_FLOAT, {lev}),
            members = file.variable("number", NC_INT, {number});
  file.text(levels, "units", "Pa");
  file.number(levels, "missing_value", NC_DOUBLE, {1e20});
  file.put(levels, {85000, 1e20, 50000});
  file.put(members, {4, NC_FILL_INT});
  file.put(file.variable("t", NC_FLOAT, {number, lev, x}), sequence(12));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  const std::vector<Record> t = records_of(*source, "t");
  ASSERT_EQ(t.size(), 2U);
  EXPECT_EQ(t[1].level, 500);
  EXPECT_EQ(t[1].member, 4);
  EXPECT_EQ(all_of(*source, t[1]).values, (Values{4, 5}));
  expect_part(why_not(*source, "t"), "an element is a fill value or NaN");
}

TEST(OddVariables, PlacesThatAreFillValuesTellNoGrid) {
  Writer file(0);
  const int lat = file.axis("lat", {10, never_written, 12}, {{"units", "degrees_north"}});
  const int lon = file.axis("lon", {0, 1}, {{"units", "degrees_east"}});
  file.put(file.variable("t", NC_FLOAT, {lat, lon}), sequence(6));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  EXPECT_TRUE(source->inventory().grids.at(0).keys.empty());
  EXPECT_EQ(all_of(*source, records_of(*source, "t").at(0)).values, sequence(6));
}

TEST(OddVariables, LimitsOfCoordinatesAreForPeople) {
  Writer file(0);
  const int x = file.dimension("x", 2), time = file.dimension("time", 2);
  const int coordinate = file.variable("time", NC_INT, {time});
  file.text(coordinate, "units", "hours since 2024-01-01");
  file.text(coordinate, "valid_min", "1");
  file.put(coordinate, {0, 1});
  file.put(file.variable("a", NC_FLOAT, {time, x}), sequence(4));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(records_of(*source, "a").size(), 2U);
}

/// The depth of each cell of an unstructured ocean looks like a coordinate of levels.
TEST(OddVariables, TheDepthOfEachPointMakesNoLevelsOfThePoints) {
  Writer file(0);
  const int time = file.axis("time", {0, 6}, {{"units", "hours since 2024-01-01"}});
  const int cell = file.dimension("cell", 3);
  const int depth = file.variable("bathymetry", NC_FLOAT, {cell});
  file.text(depth, "units", "m");
  file.text(depth, "positive", "down");
  file.put(depth, {10, 200, 3000});
  file.put(file.variable("t", NC_FLOAT, {time, cell}), sequence(6));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  const std::vector<Record> t = records_of(*source, "t");
  ASSERT_EQ(t.size(), 2U);
  EXPECT_EQ(all_of(*source, t[1]).values, (Values{3, 4, 5}));
  const std::vector<Record> depths = records_of(*source, "bathymetry");
  ASSERT_FALSE(depths.empty());
  EXPECT_EQ(all_of(*source, depths[0]).values, (Values{10, 200, 3000}));
}

}  // namespace
}  // namespace tailrace::variables
