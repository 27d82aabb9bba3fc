// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Classic NetCDF files of the NetCDF library, and of our own streams; raw files.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>
#include <thread>

#include "../../ground/storage/scratch.hpp"
#include "../variables/nc_file.hpp"
#include "../variables/own_file.hpp"
#include "../variables/own_numbers.hpp"
#include "formats/cdf/front_end.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"

namespace tailrace::variables {
namespace {

using namespace test;
using nc_file::sequence;
using nc_file::Writer;
using sources::check_grid;
using sources::open;
using Values = std::vector<double>;

/// Times every 6 hours, levels in Pa, a grid of 3 x 4 points, and fields in all usual orders of dimensions.
ByteVector sample(int mode) {
  Writer file(mode);
  const int time = file.dimension("time", NC_UNLIMITED);
  const int times = file.variable("time", NC_INT, {time});
  file.text(times, "units", "hours since 1900-01-01 00:00:00.0");
  file.text(times, "calendar", "gregorian");
  const int lev = file.axis("plev", {100000, 85000}, {{"units", "Pa"}, {"standard_name", "air_pressure"}});
  const int lat = file.axis("lat", {60, 50, 40}, {{"units", "degrees_north"}}, NC_FLOAT);
  const int lon = file.axis("lon", {0, 0.1, 0.2, 0.3}, {{"units", "degrees_east"}}, NC_FLOAT);
  const int cell = file.dimension("ncells", 5);
  const int t = file.variable("t", NC_FLOAT, {time, lev, lat, lon}),
            sp = file.variable("sp", NC_SHORT, {time, lat, lon});
  const int lsm = file.variable("lsm", NC_BYTE, {lat, lon}),
            sst = file.variable("sst", NC_DOUBLE, {time, cell});
  file.number(sp, "scale_factor", NC_DOUBLE, {0.5});
  file.number(sp, "add_offset", NC_DOUBLE, {1000});
  file.number(sp, "_FillValue", NC_SHORT, {-1});
  file.put(times, {0}, {3}, {1034376, 1034382, 1034388});
  file.put(t, {0, 0, 0, 0}, {3, 2, 3, 4}, sequence(72, 100));
  file.put(sp, {0, 0, 0}, {3, 3, 4}, sequence(36, -1));
  file.put(lsm, sequence(12));
  file.put(sst, {0, 0}, {3, 5}, sequence(15, 270.25));
  return file.bytes();
}

TEST(ClassicFiles, OfTheNetcdfLibraryAreReadInEveryVersion) {
  for (const int mode : {0, NC_64BIT_OFFSET, NC_64BIT_DATA}) {
    const auto source = opened(sample(mode));
    ASSERT_NE(source, nullptr);
    const std::vector<Record> t = records_of(*source, "t");
    ASSERT_EQ(t.size(), 6U);
    EXPECT_EQ(time_text(*source, t[0].valid), "2018-01-01T00:00:00Z");
    EXPECT_EQ(time_text(*source, t[5].valid), "2018-01-01T12:00:00Z");
    EXPECT_EQ(t[5].reference, t[5].valid);
    EXPECT_EQ(t[0].level_type, "isobaricInhPa");
    EXPECT_EQ(t[0].level, 1000);
    EXPECT_EQ(t[1].level, 850);
    EXPECT_EQ(t[0].member, -1);
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_EQ(all_of<float>(*source, t[i]).values, sequence(12, 100.0 + 12.0 * static_cast<double>(i)));
    EXPECT_EQ(part_of<double>(*source, t[3], {{1, 1}, {3, 3}}).values, (Values{141, 142, 145, 146}));
    const std::vector<Record> sp = records_of(*source, "sp");
    ASSERT_EQ(sp.size(), 3U);
    EXPECT_EQ(sp[0].level_type, "");
    const PartRead packed = all_of(*source, sp[0]);
    EXPECT_EQ(packed.missing, 1);
    EXPECT_EQ(packed.values,
              (Values{absent, 1000, 1000.5, 1001, 1001.5, 1002, 1002.5, 1003, 1003.5, 1004, 1004.5, 1005}));
    const std::vector<Record> sst = records_of(*source, "sst");
    ASSERT_EQ(sst.size(), 3U);
    EXPECT_EQ(part_of<double>(*source, sst[2], {{1}, {4}}).values, (Values{281.25, 282.25, 283.25}));
    // A field without time fits each time.
    const std::vector<Record> lsm = records_of(*source, "lsm");
    ASSERT_EQ(lsm.size(), 1U);
    EXPECT_EQ(lsm[0].valid, any_time);
    EXPECT_EQ(all_of<float>(*source, lsm[0]).values, sequence(12));
    EXPECT_EQ(source->inventory().records.size(), 13U) << "coordinates are no fields";
  }
}

TEST(ClassicFiles, TellTheirGridInTheWordsOfGrib) {
  const auto source = opened(sample(0));
  ASSERT_NE(source, nullptr);
  const Record t = records_of(*source, "t").at(0);
  const codec::Keys expected{{"gridType", "regular_ll"},
                             {"Ni", "4"},
                             {"Nj", "3"},
                             {"latitudeOfFirstGridPointInDegrees", "60"},
                             {"latitudeOfLastGridPointInDegrees", "40"},
                             {"longitudeOfFirstGridPointInDegrees", "0"},
                             {"longitudeOfLastGridPointInDegrees", "0.3"},
                             {"iDirectionIncrementInDegrees", "0.1"},
                             {"jDirectionIncrementInDegrees", "10"}};
  EXPECT_EQ(source->inventory().grids.at(static_cast<std::size_t>(t.grid)).keys, expected);
  EXPECT_EQ(records_of(*source, "lsm").at(0).grid, t.grid);
  EXPECT_EQ(key_of(*source, records_of(*source, "sst").at(0), "gridType"), "(none)");
  const Grid& grid = source->inventory().grids.at(static_cast<std::size_t>(t.grid));
  EXPECT_TRUE(check_grid(grid, {3, 4}, {}).is_ok());
  EXPECT_EQ(check_grid(grid, {4, 3}, {}).code(), Code::layout);
}

TEST(ClassicFiles, HaveTheirDimensionsInAnyOrder) {
  for (const std::vector<int>& order :
       {std::vector<int>{0, 1, 2, 3}, {1, 0, 2, 3}, {2, 3, 0, 1}, {2, 0, 3, 1}, {3, 2, 1, 0}}) {
    Writer file(0);
    const int time = file.axis("time", {0, 1}, {{"units", "days since 2026-03-01"}});
    const int lev = file.axis("lev", {1000, 850, 500}, {{"units", "hPa"}});
    const int y = file.axis("y", sequence(5), {{"axis", "Y"}}),
              x = file.axis("x", sequence(7), {{"axis", "X"}});
    const int of[] = {time, lev, y, x};
    const std::size_t lengths[] = {2, 3, 5, 7};
    std::vector<int> dimensions;
    for (const int each : order) dimensions.push_back(of[each]);
    const int t = file.variable("t", NC_INT, dimensions);
    // The value tells where an element is.
    Values values;
    std::size_t at[4];
    for (std::size_t i = 0; i < 210; ++i) {
      std::size_t rest = i;
      for (std::size_t d = 4; d-- > 0;) {
        const auto dimension = static_cast<std::size_t>(order[d]);
        at[dimension] = rest % lengths[dimension];
        rest /= lengths[dimension];
      }
      values.push_back(static_cast<double>(at[0] * 1000 + at[1] * 100 + at[2] * 10 + at[3]));
    }
    file.put(t, values);
    const auto source = opened(file.bytes());
    ASSERT_NE(source, nullptr);
    const std::vector<Record> records = records_of(*source, "t");
    ASSERT_EQ(records.size(), 6U);
    const bool is_turned = order == std::vector<int>{3, 2, 1, 0};
    for (std::size_t r = 0; r < 6; ++r) {
      Values expected, part;
      for (int a = 0; a < (is_turned ? 7 : 5); ++a) {
        for (int b = 0; b < (is_turned ? 5 : 7); ++b) {
          const double value =
              static_cast<double>(r / 3 * 1000 + r % 3 * 100) + (is_turned ? b * 10 + a : a * 10 + b);
          expected.push_back(value);
          if (a >= 1 && a < 4 && b >= 2 && b < 5) part.push_back(value);
        }
      }
      EXPECT_EQ(all_of(*source, records[r]).values, expected);
      EXPECT_EQ(part_of<float>(*source, records[r], {{1, 2}, {4, 5}}).values, part);
    }
  }
}

TEST(ClassicFiles, TakeRoomForOneRecordAlone) {
  Writer file(NC_64BIT_OFFSET);
  const int time = file.axis("time", {6, 12, 18}, {{"units", "hours since 2026-03-01"}});
  const int cell = file.dimension("cell", 1000);
  const int large = file.variable("large", NC_DOUBLE, {file.dimension("other", 100'000)});
  const int t = file.variable("t", NC_FLOAT, {time, cell});
  file.put(t, {0, 0}, {3, 1000}, sequence(3000));
  file.put(large, sequence(100'000));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  for (const Record& record : records_of(*source, "t")) EXPECT_EQ(bound_of(*source, record), 4000);
  EXPECT_FALSE(records_of(*source, "t").empty());
}

// A record of more than the reader takes at once, as a list of cells and as rows.
TEST(ClassicFiles, LargeRecordsAreReadInParts) {
  const std::size_t cells = (std::size_t{18} << 20) / 8;
  for (const bool is_list : {true, false}) {
    Writer file(NC_64BIT_OFFSET);
    const std::vector<int> dimensions =
        is_list ? std::vector{file.dimension("cell", cells)}
                : std::vector{file.dimension("y", cells / 1024), file.dimension("x", 1024)};
    const int v = file.variable("v", NC_DOUBLE, dimensions);
    file.put(v, sequence(cells));
    const auto source = opened(file.bytes());
    ASSERT_NE(source, nullptr);
    const Record record = records_of(*source, "v").at(0);
    EXPECT_EQ(record.valid, any_time) << "the file tells no time";
    EXPECT_EQ(all_of(*source, record).values, sequence(cells));
    EXPECT_LE(bound_of(*source, record), Bytes{16} << 20);
    if (!is_list)
      EXPECT_EQ(part_of<double>(*source, record, {{2000, 3}, {2002, 5}}).values,
                (Values{2048003, 2048004, 2049027, 2049028}));
  }
}

TEST(ClassicFiles, TellStatisticsByTheEndOfTheirInterval) {
  Writer file(0);
  const int two = file.dimension("bnds", 2), x = file.axis("x", {1, 2, 3}, {{"axis", "X"}});
  const int time =
      file.axis("time", {15, 45},
                {{"units", "days since 2001-01-01"}, {"calendar", "360_day"}, {"bounds", "time_bnds"}});
  const int bounds = file.variable("time_bnds", NC_DOUBLE, {time, two});
  const int mean = file.variable("mean", NC_FLOAT, {time, x}),
            point = file.variable("point", NC_FLOAT, {time, x});
  file.text(mean, "cell_methods", "time: mean area: mean");
  file.text(point, "cell_methods", "time: point");
  file.put(bounds, {0, 30, 30, 60});
  file.put(mean, sequence(6));
  file.put(point, sequence(6));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->inventory().calendar, Calendar::day_360);
  EXPECT_EQ(time_text(*source, records_of(*source, "mean").at(1).valid), "2001-03-01T00:00:00Z");
  EXPECT_EQ(time_text(*source, records_of(*source, "point").at(1).valid), "2001-02-16T00:00:00Z");
  EXPECT_EQ(source->inventory().records.size(), 4U) << "bounds are no field";
}

TEST(ClassicFiles, SingleTimesLevelsAndMembersNeedNoDimension) {
  Writer file(0);
  const int x = file.axis("x", {1, 2}, {{"axis", "X"}});
  const int time = file.variable("time", NC_DOUBLE, {}),
            reference = file.variable("forecast_reference_time", NC_DOUBLE, {});
  const int height = file.variable("height", NC_DOUBLE, {}),
            member = file.variable("realization", NC_INT, {});
  const int t = file.variable("t2m", NC_FLOAT, {x});
  for (const int each : {time, reference}) file.text(each, "units", "hours since 2026-03-01");
  file.text(reference, "standard_name", "forecast_reference_time");
  file.text(height, "standard_name", "height");
  file.text(height, "units", "m");
  file.text(t, "coordinates", "time height realization forecast_reference_time");
  file.put(time, {9});
  file.put(reference, {6});
  file.put(height, {2});
  file.put(member, {3});
  file.put(t, {280, 281});
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->inventory().records.size(), 1U);
  const Record& record = source->inventory().records.front();
  EXPECT_EQ(time_text(*source, record.valid), "2026-03-01T09:00:00Z");
  EXPECT_EQ(time_text(*source, record.reference), "2026-03-01T06:00:00Z");
  EXPECT_EQ(record.level_type, "heightAboveGround");
  EXPECT_EQ(record.level, 2);
  EXPECT_EQ(record.member, 3);
}

TEST(ClassicFiles, DimensionsWithoutCoordinatesCountLevelsFromOne) {
  Writer file(0);
  const int time = file.axis("time", {0}, {{"units", "hours since 2026-03-01"}});
  const int k = file.dimension("k", 2), j = file.dimension("j", 2), i = file.dimension("i", 2);
  const int t = file.variable("t", NC_FLOAT, {time, k, j, i});
  file.put(t, sequence(8));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  const std::vector<Record> records = records_of(*source, "t");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].level, 2);
  EXPECT_EQ(records[1].level_type, "");
  EXPECT_EQ(all_of(*source, records[1]).values, sequence(4, 4));
}

TEST(ClassicFiles, WhatTheyDoNotTellInAWayThatIsReadIsRefusedWithTheFilesName) {
  Writer months(0);
  const int time = months.axis("time", {0}, {{"units", "months since 2026-03-01"}}),
            x = months.dimension("x", 2);
  months.put(months.variable("t", NC_FLOAT, {time, x}), {1, 2});
  const Status status = open(target_with("a.nc", months.bytes()), "a.nc", "").status();
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_NE(status.text().find("a.nc: variable 'time': the units \"months since"), std::string::npos)
      << status.text();
}

TEST(OwnFiles, AreReadWithAllThatTheirIndexTells) {
  for (const std::string format : {"cdf1", "cdf2", "cdf5", "raw"}) {
    const OwnStream own = own_stream(format);
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    write_own(*target, "own", own);
    const auto source = opened(target, "own");
    ASSERT_NE(source, nullptr) << format;
    EXPECT_EQ(source->inventory().calendar, Calendar::no_leap);
    ASSERT_EQ(source->inventory().records.size(), 12U);
    const std::vector<Record> t = records_of(*source, "t"), m = records_of(*source, "m"),
                              n = records_of(*source, "n");
    ASSERT_EQ(t.size(), 6U);
    EXPECT_EQ(t[3].level_type, "isobaricInhPa");
    EXPECT_EQ(t[3].level, 850);
    EXPECT_EQ(t[3].member, 4);
    EXPECT_EQ(time_text(*source, t[3].valid), "2026-03-01T07:00:00Z");
    EXPECT_EQ(time_text(*source, t[3].reference), "2026-03-01T06:00:00Z");
    for (std::size_t i = 0; i < 6; ++i) {
      Values expected;
      for (Index e = 0; e < 12; ++e) expected.push_back(own_value(i / 2, 0, static_cast<Index>(i % 2), e));
      EXPECT_EQ(all_of<float>(*source, t[i]).values, expected);
    }
    EXPECT_EQ(all_of(*source, m.at(1)).missing, format == "raw" ? 0 : 1);
    EXPECT_EQ(all_of(*source, m.at(1)).values[2], format == "raw" ? own_value(1, 1, 0, 2) : absent);
    EXPECT_EQ(n.at(0).level_type, "heightAboveGround");
    EXPECT_EQ(part_of<double>(*source, n.at(2), {{1}, {3}}).values,
              (Values{own_value(2, 2, 0, 1), own_value(2, 2, 0, 2)}));
    EXPECT_EQ(key_of(*source, t[0], "gridType"), format == "raw" ? "(none)" : "regular_ll");
  }
}

TEST(OwnFiles, HaveCommittedStepsOnly) {
  for (const std::string format : {"cdf5", "raw"}) {
    OwnStream own = own_stream(format);
    own.committed = 2;
    own.is_put = [](std::size_t, int field, Index level) { return field != 0 || level == 1; };
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    write_own(*target, "own", own);
    const auto source = opened(target, "own");
    ASSERT_NE(source, nullptr);
    EXPECT_EQ(source->inventory().records.size(), 6U);
    EXPECT_EQ(records_of(*source, "t").at(0).level, 850) << "levels that were not put are no records";
    EXPECT_EQ(time_text(*source, source->inventory().records.back().valid), "2026-03-01T07:00:00Z");
  }
}

TEST(OwnFiles, HaveFieldsWithoutTime) {
  for (const std::string format : {"cdf1", "cdf2", "cdf5"}) {
    OwnStream own = own_stream_with_fixed(format);
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    write_own(*target, "own", own);
    const auto source = opened(target, "own");
    ASSERT_NE(source, nullptr) << format;
    expect_own(*source, 3);
    expect_fixed(*source);
    // The record of a damaged index or of another file.
    Record wrong = records_of(*source, "area").at(0);
    wrong.place[1] = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(all_of(*source, wrong).status.code(), Code::corrupt);
    // A field with time that was never put is not taken for one without.
    own.is_put = [](std::size_t, int field, Index) { return field != 1; };
    write_own(*target, "own", own);
    const auto without = opened(target, "own");
    ASSERT_NE(without, nullptr);
    EXPECT_EQ(records_of(*without, "m").size(), 0U);
    expect_fixed(*without);
    // Until a step is committed, there is nothing to read.
    own.committed = 0;
    write_own(*target, "own", own);
    const auto empty = opened(target, "own");
    ASSERT_NE(empty, nullptr);
    EXPECT_TRUE(empty->inventory().records.empty());
  }
}

TEST(OwnFiles, HaveNumbersThatLookLikeCoordinates) {
  for (const bool has_model_times : {false, true}) {
    const OwnStream own = own_stream_with_number("cdf5", has_model_times);
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    write_own(*target, "own.nc", own);
    const auto source = opened(target, "own.nc");
    ASSERT_NE(source, nullptr) << has_model_times;
    expect_number(*source, own);
  }
}

TEST(OwnFiles, OfClassicNetcdfAreReadWithoutTheirIndexToo) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  write_own(*target, "own.nc", own_stream("cdf5"));
  ASSERT_TRUE(target->remove("own.nc.trx").is_ok());
  const auto source = opened(target, "own.nc");
  ASSERT_NE(source, nullptr);
  const std::vector<Record> t = records_of(*source, "t");
  ASSERT_EQ(t.size(), 6U);
  EXPECT_EQ(t[1].level_type, "isobaricInhPa");
  EXPECT_EQ(t[1].level, 850);
  EXPECT_EQ(t[1].member, 4);
  EXPECT_EQ(records_of(*source, "n").at(0).level_type, "heightAboveGround");
  EXPECT_EQ(all_of(*source, t[5]).values[3], own_value(2, 0, 1, 3));
  EXPECT_EQ(all_of(*source, records_of(*source, "m").at(1)).missing, 1);
}

// The n-th call of storage fails, for n = 1, 2, ... until none does.
TEST(OtherFiles, FaultsOfStorageAreErrorsOfTheCall) {
  const std::shared_ptr<storage::Target> memory = target_with("a.nc", sample(0));
  write_own(*memory, "own.nc", own_stream("cdf5"));
  write_own(*memory, "own.raw", own_stream("raw"));
  for (const std::string path : {"a.nc", "own.nc", "own.raw"}) {
    std::int64_t n = 1;
    for (bool fired = true; fired && n < 1000; ++n) {
      const auto faulty = storage::faulty_target(memory, {.nth = n, .calls = storage::all_calls});
      const Result<std::shared_ptr<const Source>> source = open(faulty, path, "");
      Status status = source.status();
      if (status.is_ok()) status = all_of(**source, records_of(**source, "t").at(1)).status;
      fired = faulty->fired();
      EXPECT_EQ(status.is_ok(), !fired) << path << " " << n << ": " << status.text();
      if (fired) EXPECT_EQ(status.code(), Code::io) << status.text();
      if (fired) EXPECT_NE(status.text().find(path), std::string::npos) << status.text();
    }
    EXPECT_GT(n, 4);
  }
}

// One header tells all records: an inventory beside it would be read for nothing.
TEST(OtherFiles, AreLookedThroughOnceAndKeepNoInventory) {
  const storage::ScratchDirectory scratch;
  const std::string path = scratch / "GRIB.nc", cache = scratch / "cache";
  const std::shared_ptr<storage::Target> target = storage::posix_target();
  write_bytes(*target, path, sample(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const auto faulty = storage::faulty_target(target, {.nth = 0, .calls = set_of(storage::Call::read)});
  const auto opening = sources::look_at(faulty, path);
  ASSERT_TRUE(opening.is_ok()) << opening.status().text();
  ASSERT_TRUE(cdf::front_end.scan(*opening).is_ok());
  const std::int64_t once = faulty->calls();
  faulty->restart({.nth = 0, .calls = set_of(storage::Call::read)});
  const auto source = open(faulty, path, cache);
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  EXPECT_EQ(faulty->calls(), once);
  EXPECT_FALSE(*target->exists(cache));
  EXPECT_EQ((*source)->inventory().records.size(), opened(sample(0))->inventory().records.size());
}

TEST(OtherFiles, WhoseFirstNameContainsGribAreNetcdf) {
  Writer file(0);
  const int x = file.dimension("GRIB_x", 3);
  file.put(file.variable("t", NC_FLOAT, {x}), sequence(3));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->inventory().format, "NetCDF (classic)");
}

TEST(OtherFiles, ThatBecomeShorterAreCorrupt) {
  const std::shared_ptr<storage::Target> target = target_with("a.nc", sample(0));
  const auto source = opened(target, "a.nc");
  ASSERT_NE(source, nullptr);
  const auto file = *target->open("a.nc", storage::OpenMode::existing);
  ASSERT_TRUE(file->truncate(700).is_ok());
  const PartRead part = all_of(*source, records_of(*source, "t").at(5));
  EXPECT_EQ(part.status.code(), Code::corrupt);
  EXPECT_NE(part.status.text().find("a.nc: variable 't': expected 48 bytes"), std::string::npos)
      << part.status.text();
}

TEST(OtherFiles, PlacesOfOtherFilesAreRefused) {
  const auto source = opened(sample(0));
  ASSERT_NE(source, nullptr);
  const Record good = records_of(*source, "t").at(0);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::int64_t value :
         {std::int64_t{-1}, std::int64_t{1000}, std::numeric_limits<std::int64_t>::max()}) {
      Record bad = good;
      bad.place[i] = value;
      EXPECT_EQ(all_of(*source, bad).status.code(), Code::corrupt);
    }
  }
  EXPECT_EQ(part_of<float>(*source, good, {{0, 0}, {4, 4}}).status.code(), Code::argument);
  EXPECT_EQ(part_of<float>(*source, good, {{0}, {2}}).status.code(), Code::argument);
}

// Changed bytes of headers and metadata end in an error or in values, never in a crash or a large allocation.
TEST(OtherFiles, ChangedBytesAreReadOrRefused) {
  const ByteVector good = sample(NC_64BIT_DATA);
  std::mt19937_64 random(20260301);
  int whole = 0;
  for (int i = 0; i < 3000; ++i) {
    ByteVector bytes = good;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % 1500;
      constexpr std::uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff, 11, 12};
      bytes[std::min(at, bytes.size() - 1)] = std::byte{values[random() % 8]};
    }
    const std::shared_ptr<storage::Target> target = target_with("a.nc", bytes);
    const Result<std::shared_ptr<const Source>> source = open(target, "a.nc", "");
    if (!source.is_ok()) {
      const Code code = source.status().code();
      EXPECT_TRUE(code == Code::corrupt || code == Code::format) << source.status().text();
      EXPECT_TRUE(source.status().text().starts_with("a.nc")) << source.status().text();
      continue;
    }
    ++whole;
    for (const Record& record : (*source)->inventory().records) {
      const Grid& grid = (*source)->inventory().grids.at(static_cast<std::size_t>(record.grid));
      Index points = 1;
      for (const Index length : grid.shape) points *= length;
      ASSERT_LE(points, std::ssize(bytes)) << "each element has a byte";
      EXPECT_TRUE(all_of(**source, record).status.is_ok());
    }
  }
  EXPECT_GT(whole, 300);
  EXPECT_LT(whole, 2900);
}

}  // namespace
}  // namespace tailrace::variables
