// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Files of other writers whose coordinates are told in other ways than ours, and files that are written on.
#include <gtest/gtest.h>

#include "formats/cdf/front_end.hpp"
#include "formats/sources/front_end.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "nc_file.hpp"
#include "own_file.hpp"

namespace tailrace::variables {
namespace {

using namespace test;
using nc_file::sequence;
using nc_file::Writer;
using sources::open;
using Values = std::vector<double>;

std::shared_ptr<const Source> source_of(Writer& file) {
  Result<std::shared_ptr<const Source>> source = open(target_with("a.nc", file.bytes()), "a.nc", "");
  EXPECT_TRUE(source.is_ok()) << source.status().text();
  return source.is_ok() ? *source : nullptr;
}
Status error_of(Writer& file) { return open(target_with("a.nc", file.bytes()), "a.nc", "").status(); }

// The times of an open file are those that stood there when it was looked at.
TEST(OwnFiles, ThatAreWrittenOnAreRead) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  OwnStream own = own_stream("cdf5");
  own.leads = {0, 3600};
  own.committed = 2;
  write_own(*target, "own.nc", own);
  const Result<Opening> opening = sources::look_at(target, "own.nc");
  ASSERT_TRUE(opening.is_ok()) << opening.status().text();
  const OwnStream longer = own_stream("cdf5");
  write_own(*target, "own.nc", longer);
  const Result<Inventory> inventory = cdf::front_end.scan(*opening);
  ASSERT_TRUE(inventory.is_ok()) << inventory.status().text();
  EXPECT_EQ(inventory->records.size(), 8U);
}

TEST(Conventions, FieldsOnAListOfPointsAreNoLevels) {
  Writer file(0);
  const int cell = file.dimension("ncells", 4);
  for (const std::string name : {"t2m", "sp"}) {
    const int field = file.variable(name, NC_FLOAT, {cell});
    file.text(field, "units", name == "sp" ? "Pa" : "K");
    file.put(field, sequence(4, 5));
  }
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  for (const std::string name : {"t2m", "sp"}) {
    ASSERT_EQ(records_of(*source, name).size(), 1U);
    EXPECT_EQ(all_of(*source, records_of(*source, name).front()).values, sequence(4, 5));
  }
}

TEST(Conventions, HeightsOfStationsAreNoLevels) {
  Writer file(0);
  const int time = file.axis("time", {0, 1}, {{"units", "hours since 2026-03-01"}});
  const int station = file.dimension("station", 3);
  const int height = file.variable("alt", NC_FLOAT, {station}),
            lat = file.variable("lat", NC_FLOAT, {station});
  file.text(height, "axis", "Z");
  file.text(height, "standard_name", "altitude");
  file.text(height, "units", "m");
  file.text(lat, "units", "degrees_north");
  const int t = file.variable("t", NC_FLOAT, {time, station});
  file.put(t, sequence(6));
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(records_of(*source, "t").size(), 2U);
  EXPECT_EQ(all_of(*source, records_of(*source, "t")[1]).values, sequence(3, 3));
}

// The coordinate of the levels need not have the name of their dimension.
TEST(Conventions, LevelsMayHaveAnotherNameThanTheirDimension) {
  Writer file(0);
  const int k = file.dimension("k", 2), x = file.axis("x", {1, 2}, {{"axis", "X"}});
  const int pressure = file.variable("pressure", NC_FLOAT, {k});
  file.text(pressure, "units", "hPa");
  file.text(pressure, "standard_name", "air_pressure");
  file.put(pressure, {850, 500});
  file.put(file.variable("t", NC_FLOAT, {k, x}), sequence(4));
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->inventory().records.size(), 2U);
  EXPECT_EQ(source->inventory().records[1].level, 500);
  EXPECT_EQ(source->inventory().records[1].level_type, "isobaricInhPa");
}

TEST(Conventions, ValidTimesCountMoreThanTheHoursSinceABaseTime) {
  Writer file(0);
  const int time = file.variable("time", NC_INT, {});
  file.text(time, "units", "hours since 2026-03-01");
  file.text(time, "standard_name", "forecast_reference_time");
  const int step = file.axis("step", {0, 6, 12}, {{"units", "hours"}, {"standard_name", "forecast_period"}});
  const int valid = file.variable("valid_time", NC_INT, {step});
  file.text(valid, "units", "hours since 2026-03-01");
  file.text(valid, "standard_name", "time");
  const int y = file.axis("y", {1, 2}, {{"axis", "Y"}}), x = file.axis("x", {1, 2}, {{"axis", "X"}});
  const int t = file.variable("t", NC_FLOAT, {step, y, x});
  file.text(t, "coordinates", "time step valid_time");
  file.put(time, {6});
  file.put(valid, {6, 12, 18});
  file.put(t, sequence(12));
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->inventory().records.size(), 3U);
  const Record& last = source->inventory().records.back();
  EXPECT_EQ(time_text(*source, last.valid), "2026-03-01T18:00:00Z");
  EXPECT_EQ(time_text(*source, last.reference), "2026-03-01T06:00:00Z");
  EXPECT_EQ(all_of(*source, last).values, sequence(4, 8));
}

TEST(Conventions, OneTimeThatNamesNoDateIsNone) {
  Writer file(0);
  const int time = file.variable("time", NC_DOUBLE, {}), x = file.dimension("x", 2);
  file.text(time, "standard_name", "time");
  file.text(time, "units", "1");
  file.put(file.variable("mask", NC_FLOAT, {x}), sequence(2));
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->inventory().records.size(), 1U);
  EXPECT_EQ(source->inventory().records.front().valid, any_time);
}

TEST(Conventions, WhatDescribesTheTimesIsNoSeries) {
  Writer file(0);
  const int time = file.axis("time", {0, 1}, {{"units", "hours since 2026-03-01"}});
  const int run = file.variable("forecast_reference_time", NC_INT, {time});
  file.text(run, "standard_name", "forecast_reference_time");
  const int lead = file.variable("forecast_period", NC_INT, {time});
  file.text(lead, "standard_name", "forecast_period");
  const int day = file.variable("day", NC_INT, {time});
  for (const int each : {run, day}) file.text(each, "units", "days since 2026-03-01");
  file.text(lead, "units", "hours");
  file.put(file.variable("energy", NC_FLOAT, {time}), {5, 6});
  file.put(file.variable("t", NC_FLOAT, {time, file.dimension("x", 2)}), sequence(4));
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->inventory().records.size(), 4U);
  EXPECT_EQ(records_of(*source, "t").size(), 2U);
  EXPECT_EQ(records_of(*source, "energy").size(), 2U);
}

TEST(Conventions, BaseTimesMayLieBetweenSeconds) {
  Writer file(0);
  const std::string units = "seconds since 2026-03-01";
  const int run = file.variable("reftime", NC_DOUBLE, {});
  file.text(run, "standard_name", "forecast_reference_time");
  file.text(run, "units", units);
  const int time = file.axis("time", {0.5, 2}, {{"units", units}}), x = file.dimension("x", 2);
  file.put(run, {0.5});
  file.put(file.variable("t", NC_FLOAT, {time, x}), sequence(4));
  file.put(file.variable("mask", NC_FLOAT, {x}), sequence(2));
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  const std::vector<Record> t = records_of(*source, "t"), mask = records_of(*source, "mask");
  ASSERT_EQ(t.size(), 2U);
  EXPECT_EQ(t[1].valid - t[0].valid, 1500);
  for (const Record& each : {t[1], mask.at(0)}) EXPECT_EQ(each.reference, t[0].valid);
  EXPECT_EQ(mask[0].valid, any_time);
}

TEST(Conventions, TimesThatAreToldInNoWayThatIsReadAreRefused) {
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  const std::vector<Attributes> axes{
      {{"units", "day as %Y%m%d.%f"}, {"standard_name", "time"}},
      {{"units", "day as %Y%m%d.%f"}, {"axis", "T"}},
      {{"units", "hours since 2026-03-01"}, {"standard_name", "forecast_reference_time"}},
      {{"units", "hours"}, {"standard_name", "forecast_period"}}};
  for (const Attributes& attributes : axes) {
    Writer file(0);
    const int when = file.axis("when", {20260301, 20260302}, attributes);
    const int y = file.axis("y", {1, 2}, {{"axis", "Y"}}), x = file.axis("x", {1, 2}, {{"axis", "X"}});
    file.put(file.variable("t", NC_FLOAT, {when, y, x}), sequence(8));
    const Status status = error_of(file);
    EXPECT_EQ(status.code(), Code::format) << attributes.back().second;
    EXPECT_TRUE(status.text().starts_with("a.nc: variable 't': variable 'when' ")) << status.text();
  }
}

TEST(Conventions, StatisticsNameTheirTimeDimension) {
  const std::vector<std::pair<std::string, bool>> all{{"time1: mean", true},
                                                      {"area: mean time1: maximum", true},
                                                      {"area: time: mean (interval: 1 hour)", true},
                                                      {"time1: point", false},
                                                      {"area: mean (time: of no interest)", false},
                                                      {"lat: lon: mean time1: point", false}};
  for (const auto& [methods, is_statistic] : all) {
    Writer file(0);
    const int two = file.dimension("bnds", 2), x = file.axis("x", {1, 2, 3}, {{"axis", "X"}});
    const int time =
        file.axis("time1", {12}, {{"units", "hours since 2026-03-01"}, {"bounds", "time1_bnds"}});
    file.put(file.variable("time1_bnds", NC_DOUBLE, {time, two}), {0, 24});
    const int t = file.variable("t", NC_FLOAT, {time, x});
    file.text(t, "cell_methods", methods);
    file.put(t, sequence(3));
    const auto source = source_of(file);
    ASSERT_NE(source, nullptr);
    EXPECT_EQ(time_text(*source, records_of(*source, "t").at(0).valid),
              is_statistic ? "2026-03-02T00:00:00Z" : "2026-03-01T12:00:00Z")
        << methods;
  }
}

TEST(Conventions, PackedCoordinatesTellTheGrid) {
  Writer file(0);
  const int lat = file.dimension("lat", 3), lon = file.dimension("lon", 2);
  for (const bool is_lat : {true, false}) {
    const int axis = file.variable(is_lat ? "lat" : "lon", NC_SHORT, {is_lat ? lat : lon});
    file.text(axis, "units", is_lat ? "degrees_north" : "degrees_east");
    file.number(axis, "scale_factor", NC_DOUBLE, {0.5});
    file.number(axis, "add_offset", NC_DOUBLE, {10});
    file.put(axis, sequence(is_lat ? 3 : 2));
  }
  file.put(file.variable("t", NC_FLOAT, {lat, lon}), sequence(6));
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  const Record record = source->inventory().records.at(0);
  EXPECT_EQ(key_of(*source, record, "latitudeOfLastGridPointInDegrees"), "11");
  EXPECT_EQ(key_of(*source, record, "iDirectionIncrementInDegrees"), "0.5");
}

TEST(Conventions, ASingleTimeIsThatOfAllFieldsOnlyIfItIsAlone) {
  for (const bool has_times : {true, false}) {
    Writer file(0);
    const int x = file.axis("x", {1, 2}, {{"axis", "X"}});
    const int start = file.variable("start", NC_INT, {});
    file.text(start, "units", "hours since 2026-03-01");
    file.put(start, {0});
    if (has_times) {
      const int time = file.axis("time", {6, 12}, {{"units", "hours since 2026-03-01"}});
      file.put(file.variable("t", NC_FLOAT, {time, x}), sequence(4));
    } else {
      const int end = file.variable("end", NC_INT, {});
      file.text(end, "units", "hours since 2026-03-01");
      file.put(end, {6});
    }
    file.put(file.variable("lsm", NC_FLOAT, {x}), sequence(2));
    const auto source = source_of(file);
    ASSERT_NE(source, nullptr);
    const std::vector<Record> lsm = records_of(*source, "lsm");
    ASSERT_EQ(lsm.size(), 1U);
    EXPECT_EQ(time_text(*source, lsm.back().valid), "any");
  }
}

TEST(Values, AreComparedWithLimitsOfTheirOwnType) {
  Writer file(0);
  const int x = file.axis("x", {1, 2, 3}, {{"axis", "X"}});
  const int fraction = file.variable("fraction", NC_FLOAT, {x});
  file.number(fraction, "valid_min", NC_DOUBLE, {-0.7});
  file.number(fraction, "valid_max", NC_DOUBLE, {0.1});
  file.put(fraction, {-0.7, 0.1, 0.2});
  const auto source = source_of(file);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(all_of(*source, source->inventory().records.at(0)).values,
            (Values{static_cast<double>(-0.7F), static_cast<double>(0.1F), absent}));
}

// A record with many times behind its points is read in large parts.
TEST(ClassicFiles, WithTimesBehindTheirPointsAreReadInFewCalls) {
  Writer file(0);
  const int lat = file.axis("lat", sequence(16), {{"units", "degrees_north"}}),
            lon = file.axis("lon", sequence(16), {{"units", "degrees_east"}}),
            time = file.axis("time", sequence(1000), {{"units", "hours since 2026-03-01"}});
  file.put(file.variable("t", NC_FLOAT, {lat, lon, time}), sequence(256000));
  const auto memory = target_with("a.nc", file.bytes());
  const auto counting = storage::faulty_target(memory, {.nth = 100, .calls = storage::all_calls});
  const Result<std::shared_ptr<const Source>> source = open(counting, "a.nc", "");
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  const PartRead read = all_of(**source, records_of(**source, "t").at(3));
  ASSERT_TRUE(read.status.is_ok()) << read.status.text();
  EXPECT_EQ(read.values.at(255), 255003);
  EXPECT_FALSE(counting->fired());
}

}  // namespace
}  // namespace tailrace::variables
