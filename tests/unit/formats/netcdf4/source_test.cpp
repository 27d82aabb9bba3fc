// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// NetCDF-4 files of the NetCDF library, other HDF5 files, and those of our own streams.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <limits>
#include <thread>

#include "../variables/nc_file.hpp"
#include "../variables/own_file.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "hdf5_file.hpp"

// HDF5 loses memory where a read of metadata fails.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace tailrace::variables {
namespace {

using namespace test;
using hdf5_file::plain_hdf5;
using nc_file::sequence;
using nc_file::Writer;
using sources::open;
using Values = std::vector<double>;

Values sequence_by(double step, std::size_t count) {
  Values values = sequence(count);
  for (double& each : values) each *= step;
  return values;
}

struct Storing {
  std::vector<std::size_t> chunk;  // empty: contiguous
  bool shuffle = false, sum = false, big_endian = false;
  int deflate = 0;
};

/// Two times, three levels and 4 x 5 points; the second time lacks the last level.
ByteVector sample_nc4(const Storing& how) {
  Writer file(NC_NETCDF4);
  const int time = how.chunk.empty() ? file.dimension("time", 2) : file.dimension("time", NC_UNLIMITED);
  const int times = file.variable("time", NC_DOUBLE, {time});
  file.text(times, "units", "days since 2000-01-01");
  const int lev = file.axis("lev", {1000, 850, 500}, {{"units", "hPa"}, {"positive", "down"}});
  const int lat = file.axis("lat", {10, 20, 30, 40}, {{"units", "degrees_north"}});
  const int lon = file.axis("lon", {0, 1, 2, 3, 4}, {{"units", "degrees_east"}});
  const int t = file.variable("t", NC_FLOAT, {time, lev, lat, lon});
  if (!how.chunk.empty())
    nc_file::check(nc_def_var_chunking(file.id(), t, NC_CHUNKED, how.chunk.data()), "chunks");
  if (how.shuffle || how.deflate > 0)
    nc_file::check(
        nc_def_var_deflate(file.id(), t, how.shuffle ? 1 : 0, how.deflate > 0 ? 1 : 0, how.deflate),
        "deflate");
  if (how.sum) nc_file::check(nc_def_var_fletcher32(file.id(), t, NC_FLETCHER32), "sum");
  if (how.big_endian) nc_file::check(nc_def_var_endian(file.id(), t, NC_ENDIAN_BIG), "endian");
  file.put(times, {0}, {2}, {9557, 9557.25});
  file.put(t, {0, 0, 0, 0}, {1, 3, 4, 5}, sequence(60));
  file.put(t, {1, 0, 0, 0}, {1, 2, 4, 5}, sequence(40, 60));
  return file.bytes();
}

void expect_sample(const Source& source) {
  const std::vector<Record> t = records_of(source, "t");
  ASSERT_EQ(t.size(), 6U);
  EXPECT_EQ(time_text(source, t[0].valid), "2026-03-02T00:00:00Z");
  EXPECT_EQ(time_text(source, t[5].valid), "2026-03-02T06:00:00Z");
  EXPECT_EQ(t[1].level_type, "isobaricInhPa");
  EXPECT_EQ(t[1].level, 850);
  EXPECT_EQ(key_of(source, t[0], "gridType"), "regular_ll");
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all_of<float>(source, t[i]).values, sequence(20, 20.0 * static_cast<double>(i)));
    const double first = 20.0 * static_cast<double>(i) + 7;
    EXPECT_EQ(part_of<double>(source, t[i], {{1, 2}, {3, 4}}).values,
              (Values{first, first + 1, first + 5, first + 6}));
  }
  const PartRead unwritten = part_of<float>(source, t[5], {{0, 0}, {2, 5}});
  EXPECT_EQ(unwritten.missing, 10);
  EXPECT_EQ(unwritten.values, Values(10, absent));
  EXPECT_EQ(all_of(source, t[5]).missing, 20);
}

TEST(Netcdf4Files, OfTheNetcdfLibraryAreReadHoweverTheyAreStored) {
  const std::vector<Storing> all{
      {},
      {.big_endian = true},
      {.chunk = {1, 1, 4, 5}},
      {.chunk = {1, 1, 3, 2}, .shuffle = true, .deflate = 1},
      {.chunk = {2, 3, 4, 5}, .shuffle = true, .sum = true, .deflate = 9},
      {.chunk = {1, 2, 2, 5}, .sum = true, .big_endian = true},
      {.chunk = {3, 2, 3, 4}, .deflate = 4},
      {.chunk = {1, 3, 1, 1}, .shuffle = true, .sum = true},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const auto source = opened(sample_nc4(all[i]));
    ASSERT_NE(source, nullptr);
    expect_sample(*source);
  }
}

TEST(Netcdf4Files, TakeNoRoomForTheChunksOfOtherVariables) {
  Writer file(NC_NETCDF4);
  const std::size_t chunk = std::size_t{1} << 20;
  const int large = file.variable("large", NC_DOUBLE, {file.dimension("cell", chunk)});
  nc_file::check(nc_def_var_chunking(file.id(), large, NC_CHUNKED, &chunk), "chunks");
  const int t = file.variable("t", NC_FLOAT, {file.dimension("y", 4), file.dimension("x", 5)});
  file.put(t, sequence(20));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  const Record record = records_of(*source, "t").at(0);
  EXPECT_EQ(all_of(*source, record).values, sequence(20));
  EXPECT_LE(bound_of(*source, record), 80);
  EXPECT_GE(bound_of(*source, records_of(*source, "large").at(0)), Bytes{8} << 20);
}

TEST(Netcdf4Files, HaveTypesGroupsAndTextsOfTheirOwn) {
  Writer file(NC_NETCDF4);
  const int x = file.axis("x", {1, 2, 3}, {{"axis", "X"}});
  const int time = file.axis("time", {6}, {{"units", "hours since 2026-03-01"}});
  int group = 0, inner = 0;
  nc_file::check(nc_def_grp(file.id(), "forecast", &group), "group");
  const int dimensions[] = {time, x};
  nc_file::check(nc_def_var(group, "u", NC_UINT64, 2, dimensions, &inner), "u");
  const char* const text = "m s-1";
  nc_file::check(nc_put_att_string(group, inner, "units", 1, const_cast<const char**>(&text)), "string");
  const unsigned long long values[] = {1, 18446744073709551614ULL, 3};
  nc_enddef(file.id());
  nc_file::check(nc_put_var_ulonglong(group, inner, values), "put");
  const int b = file.variable("b", NC_UBYTE, {time, x}), s = file.variable("s", NC_USHORT, {x}),
            name = file.variable("name", NC_STRING, {x});
  file.number(s, "_FillValue", NC_USHORT, {2});
  file.put(b, {0, 128, 255});
  file.put(s, {1, 2, 65535});
  const char* names[] = {"Graz", "", "longest"};
  nc_file::check(nc_put_var_string(file.id(), name, names), "put texts of any length");
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->inventory().records.size(), 4U);
  EXPECT_EQ(records_of(*source, "name").size(), 1U);
  const Record u = records_of(*source, "forecast/u").at(0);
  EXPECT_EQ(time_text(*source, u.valid), "2026-03-01T06:00:00Z");
  EXPECT_EQ(all_of(*source, u).values, (Values{1, absent, 3}));
  EXPECT_EQ(all_of(*source, records_of(*source, "b").at(0)).values, (Values{0, 128, 255}));
  EXPECT_EQ(all_of(*source, records_of(*source, "s").at(0)).values, (Values{1, absent, 65535}));
}

// Names in attributes are looked for in the group of the variable first, and then in those around it.
TEST(Netcdf4Files, HaveNamesInAttributesOfTheirGroup) {
  Writer file(NC_NETCDF4);
  const int two = file.dimension("bnds", 2);
  int group = 0, inner = 0, time = 0, times = 0, bounds = 0, height = 0, mean = 0;
  const int x = file.axis("x", {1, 2, 3}, {{"axis", "X"}});
  const int outer = file.variable("height", NC_DOUBLE, {});
  file.text(outer, "units", "m");
  file.text(outer, "standard_name", "height");
  file.put(outer, {10});
  nc_file::check(nc_def_grp(file.id(), "forecast", &group), "group");
  nc_file::check(nc_def_grp(group, "surface", &inner), "group");
  nc_file::check(nc_def_dim(group, "time", 1, &time), "time");
  const int interval[] = {time, two}, shape[] = {time, x};
  nc_file::check(nc_def_var(group, "time", NC_DOUBLE, 1, &time, &times), "time");
  nc_file::check(nc_def_var(group, "time_bnds", NC_DOUBLE, 2, interval, &bounds), "bounds");
  nc_file::check(nc_def_var(group, "height", NC_DOUBLE, 0, nullptr, &height), "height");
  nc_file::check(nc_def_var(inner, "mean", NC_FLOAT, 2, shape, &mean), "mean");
  const auto text = [](int of, int variable, const char* name, const std::string& value) {
    nc_file::check(nc_put_att_text(of, variable, name, value.size(), value.c_str()), name);
  };
  text(group, times, "units", "hours since 2026-03-01");
  text(group, times, "bounds", "time_bnds");
  text(group, height, "units", "m");
  text(group, height, "standard_name", "height");
  text(inner, mean, "cell_methods", "time: mean");
  text(inner, mean, "coordinates", "height");
  nc_enddef(file.id());
  const double middle = 12, ends[] = {0, 24}, two_metres = 2;
  const float values[] = {5, 6, 7};
  nc_file::check(nc_put_var_double(group, times, &middle), "put");
  nc_file::check(nc_put_var_double(group, bounds, ends), "put");
  nc_file::check(nc_put_var_double(group, height, &two_metres), "put");
  nc_file::check(nc_put_var_float(inner, mean, values), "put");
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->inventory().records.size(), 1U) << "bounds and heights are no fields";
  const Record& record = source->inventory().records.front();
  EXPECT_EQ(record.field, "forecast/surface/mean");
  EXPECT_EQ(time_text(*source, record.valid), "2026-03-02T00:00:00Z");
  EXPECT_EQ(record.level_type, "heightAboveGround");
  EXPECT_EQ(record.level, 2) << "that of the nearest group";
  EXPECT_EQ(all_of(*source, record).values, (Values{5, 6, 7}));
}

// A variable with the name of its first dimension and another one is no coordinate, but has the dimensions.
TEST(Netcdf4Files, HaveCoordinatesOfSeveralDimensions) {
  Writer file(NC_NETCDF4);
  const int y = file.dimension("y", 2), x = file.dimension("x", 3),
            time = file.axis("time", {0}, {{"units", "hours since 2026-03-01"}});
  const int lat = file.variable("lat", NC_DOUBLE, {y, x}), named = file.variable("y", NC_FLOAT, {y, x});
  file.text(lat, "units", "degrees_north");
  const int t = file.variable("t", NC_FLOAT, {time, y, x});
  file.text(t, "coordinates", "lat");
  file.put(named, sequence(6));
  file.put(t, sequence(6, 5));
  const auto source = opened(file.bytes());
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(all_of(*source, records_of(*source, "t").at(0)).values, sequence(6, 5));
  EXPECT_EQ(all_of(*source, records_of(*source, "y").at(0)).values, sequence(6));
  EXPECT_TRUE(records_of(*source, "lat").empty());
}

TEST(Hdf5Files, WithoutDimensionsAreReadByTheirNames) {
  const hsize_t chunk[] = {2, 3};
  const std::vector<std::function<void(hid_t)>> ways{[](hid_t) {},
                                                     [](hid_t list) { H5Pset_layout(list, H5D_COMPACT); },
                                                     [&](hid_t list) { H5Pset_chunk(list, 2, chunk); },
                                                     [&](hid_t list) {
                                                       H5Pset_chunk(list, 2, chunk);
                                                       H5Pset_fletcher32(list);
                                                       H5Pset_deflate(list, 3);
                                                     }};
  for (const auto& set : ways) {
    const auto source = opened(plain_hdf5(set));
    ASSERT_NE(source, nullptr);
    ASSERT_EQ(source->inventory().records.size(), 1U) << "links to other names and files are not followed";
    const Record& record = source->inventory().records.front();
    EXPECT_EQ(record.field, "data");
    EXPECT_EQ(record.valid, any_time);
    EXPECT_EQ(part_of<double>(*source, record, {{1, 1}, {3, 4}}).values, (Values{15, 18, 21, 27, 30, 33}));
  }
}

// Addresses count from the superblock on.
TEST(Hdf5Files, BehindAUserBlockAreRead) {
  const hsize_t chunk[] = {2, 3};
  const std::vector<std::function<void(hid_t)>> ways{[](hid_t) {},
                                                     [](hid_t list) { H5Pset_layout(list, H5D_COMPACT); },
                                                     [&](hid_t list) {
                                                       H5Pset_chunk(list, 2, chunk);
                                                       H5Pset_deflate(list, 3);
                                                     }};
  for (const auto& set : ways) {
    for (const hsize_t block : {512, 2048, 1 << 20}) {
      ByteVector bytes = plain_hdf5(set, false, {}, block);
      const std::string_view text = "GRIB, or any other text";
      std::memcpy(&bytes[2], text.data(), text.size());
      const auto source = opened(bytes);
      ASSERT_NE(source, nullptr);
      EXPECT_EQ(all_of(*source, source->inventory().records.at(0)).values, sequence_by(3, 12));
    }
  }
}

/// Puts bytes before a file, as h5jam does: the superblock says that there are none.
ByteVector moved(const ByteVector& bytes, std::size_t by) {
  ByteVector all(by, std::byte{'x'});
  all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

TEST(Netcdf4Files, BehindAnyTextAreRead) {
  for (const Storing& how :
       std::vector<Storing>{{}, {.chunk = {1, 1, 4, 5}, .shuffle = true, .deflate = 1}}) {
    const auto source = opened(moved(sample_nc4(how), 1024));
    ASSERT_NE(source, nullptr);
    expect_sample(*source);
  }
}

TEST(Netcdf4Files, BehindAUserBlockThatAreCutOrChangedAreCorrupt) {
  const ByteVector good = moved(sample_nc4({}), 512);
  for (std::size_t size = 520; size < good.size(); size += 2003) {
    const ByteVector bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    const Status status = open(target_with("a.nc", bytes), "a.nc", "").status();
    EXPECT_EQ(status.code(), Code::corrupt) << size << status.text();
  }
  for (const std::size_t at : {500, 513, 600}) {
    const Status status = open(target_with("a.nc", moved(sample_nc4({}), at)), "a.nc", "").status();
    EXPECT_EQ(status.code(), Code::format) << "no user block is that long: " << at << status.text();
  }
}

void add_attribute(hid_t data, const char* name, hid_t type, hsize_t count, const void* values) {
  const hid_t space = H5Screate_simple(1, &count, nullptr),
              attribute = H5Acreate2(data, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_GE(H5Awrite(attribute, type, values), 0) << name;
  H5Aclose(attribute);
  H5Sclose(space);
}

void make_dimension(hid_t data) {
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 16);
  add_attribute(data, "CLASS", text, 1, "DIMENSION_SCALE\0");
  H5Tclose(text);
}

TEST(Hdf5Files, WithManyNumbersOfOneDimensionAreRead) {
  const auto change = [](hid_t data) {
    make_dimension(data);
    // A number of a dimension is one; more of them once went over what lay behind it.
    const std::vector<int> numbers(8000, 0x41414141);
    add_attribute(data, "_Netcdf4Dimid", H5T_NATIVE_INT, numbers.size(), numbers.data());
  };
  const auto source = opened(plain_hdf5([](hid_t) {}, false, change));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(records_of(*source, "data").size(), 1U);
}

// All that are out of range once were the number of one dimension.
TEST(Hdf5Files, WithNumbersOfDimensionsThatAreOutOfRangeHaveDimensionsOfTheirOwn) {
  const auto change = [](hid_t data) {
    make_dimension(data);
    const int number = -5, numbers[] = {-7, -9};
    add_attribute(data, "_Netcdf4Dimid", H5T_NATIVE_INT, 1, &number);
    add_attribute(data, "_Netcdf4Coordinates", H5T_NATIVE_INT, 2, numbers);
  };
  const auto source = opened(plain_hdf5([](hid_t) {}, false, change));
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(records_of(*source, "data").size(), 1U);
  const Record record = records_of(*source, "data").front();
  EXPECT_EQ(part_of<double>(*source, record, {{1, 1}, {3, 4}}).values, (Values{15, 18, 21, 27, 30, 33}));
}

// The HDF5 library never comes back from a global heap with an object of no length, and reads out of one with
// an object that is longer.
TEST(Netcdf4Files, WhoseTextsLieInADamagedHeapAreCorrupt) {
  Writer file(NC_NETCDF4);
  const int x = file.dimension("x", 3), t = file.variable("t", NC_FLOAT, {x});
  const char* units = "K";
  nc_file::check(nc_put_att_string(file.id(), t, "units", 1, &units), "units");
  file.put(t, sequence(3));
  const ByteVector bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t heap = text.find("GCOL"), objects = heap + 16;
  ASSERT_NE(heap, text.npos);
  EXPECT_NE(opened(bytes), nullptr);
  for (const auto& [number, length] : {std::pair(0, 0), std::pair(1, 0x7fffffff), std::pair(0, 0x7fffffff)}) {
    ByteVector damaged = bytes;
    std::memset(&damaged[objects], 0, 16);
    std::memcpy(&damaged[objects], &number, 2);
    std::memcpy(&damaged[objects + 8], &length, 4);
    const auto target = target_with("a.nc", damaged);
    const Status status = open(target, "a.nc", "").status();
    EXPECT_EQ(status.code(), Code::corrupt) << number;
    EXPECT_NE(status.text().find("the global heap at byte"), std::string::npos) << status.text();
  }
}

// Each head of a heap inside another is checked as one. They took a time that grew with the square of the
// size.
TEST(Netcdf4Files, WhoseHeapsLieInsideEachOtherAreCorrupt) {
  Writer file(NC_NETCDF4);
  const int x = file.dimension("x", 3), t = file.variable("t", NC_FLOAT, {x});
  const std::string long_units(200'000, 'K');
  const char* units = long_units.c_str();
  nc_file::check(nc_put_att_string(file.id(), t, "units", 1, &units), "units");
  file.put(t, sequence(3));
  ByteVector bytes = file.bytes();
  EXPECT_NE(opened(bytes), nullptr);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t heap = text.find("GCOL"), begin = heap + 64, end = text.rfind("KKKKKKKK") - 64;
  ASSERT_NE(heap, text.npos);
  ASSERT_GT(end, begin + 100'000);
  for (std::size_t at = begin; at + 32 <= end; at += 32) {
    // A head that reaches up to the end of the heads, and the head of an object with 16 bytes.
    const std::uint64_t length = begin + (end - begin) / 32 * 32 - at;
    std::memcpy(&bytes[at], "GCOL\1\0\0\0", 8);
    std::memcpy(&bytes[at + 8], &length, 8);
    std::memcpy(&bytes[at + 16], "\1\0\0\0\0\0\0\0\20\0\0\0\0\0\0\0", 16);
    if (length == 32) bytes[at + 24] = std::byte{0};  // nothing follows the last one
  }
  const auto target = target_with("a.nc", bytes);
  const Status status = open(target, "a.nc", "").status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("many inside each other"), std::string::npos) << status.text();
}

TEST(Hdf5Files, WithElementsElsewhereAreRefused) {
  const std::string other = cat(testing::TempDir(), "elsewhere.", ::getpid());
  const ByteVector bytes =
      plain_hdf5([&](hid_t list) { H5Pset_external(list, other.c_str(), 0, H5F_UNLIMITED); });
  ::unlink(other.c_str());
  const auto source = opened(bytes);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(all_of(*source, source->inventory().records.front()).status.code(), Code::unsupported);
}

TEST(Hdf5Files, WithChunksOfFarMoreBytesThanTheirElementsAreRefused) {
  const std::string path = cat(testing::TempDir(), "fat.", ::getpid(), ".h5");
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t lengths[] = {2, 3}, begin[] = {0, 0};
  const hid_t space = H5Screate_simple(2, lengths, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, lengths);
  H5Pset_deflate(list, 1);
  const hid_t data = H5Dcreate2(file, "data", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  const std::vector<char> bytes(60'000);
  EXPECT_GE(H5Dwrite_chunk(data, H5P_DEFAULT, 0, begin, bytes.size(), bytes.data()), 0);
  H5Dclose(data);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  const auto source = opened(storage::posix_target(), path);
  ::unlink(path.c_str());
  ASSERT_NE(source, nullptr);
  const Status status = all_of(*source, source->inventory().records.front()).status;
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("expected a chunk of at most 4"), std::string::npos) << status.text();
}

// A chunk at the edge may hold anything beyond its array.
TEST(Netcdf4Files, WhoseDimensionGrewHaveFillValuesInArraysThatDidNot) {
  Writer file(NC_NETCDF4);
  const int cell = file.dimension("cell", NC_UNLIMITED);
  const int longer = file.variable("longer", NC_INT, {cell}),
            shorter = file.variable("shorter", NC_INT, {cell});
  const std::size_t four = 4;
  for (const int each : {longer, shorter})
    nc_file::check(nc_def_var_chunking(file.id(), each, NC_CHUNKED, &four), "chunks");
  file.put(longer, {0}, {6}, sequence(6));
  file.put(shorter, {0}, {4}, sequence(4));
  const std::string path = cat(testing::TempDir(), "short.", ::getpid(), ".nc");
  const ByteVector bytes = file.bytes();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  const hid_t changed = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t data = H5Dopen2(changed, "shorter", H5P_DEFAULT);
  const hsize_t two = 2, begin = 0;
  EXPECT_GE(H5Dset_extent(data, &two), 0);
  const std::int32_t whole[] = {0, 1, 2, 3};
  EXPECT_GE(H5Dwrite_chunk(data, H5P_DEFAULT, 0, &begin, sizeof whole, whole), 0);
  H5Dclose(data);
  H5Fclose(changed);
  const auto source = opened(storage::posix_target(), path);
  ::unlink(path.c_str());
  ASSERT_NE(source, nullptr);
  const PartRead read = all_of(*source, records_of(*source, "shorter").at(0));
  EXPECT_EQ(read.values, (Values{0, 1, absent, absent, absent, absent}));
  EXPECT_EQ(read.missing, 4);
  EXPECT_EQ(all_of(*source, records_of(*source, "longer").at(0)).values, sequence(6));
}

TEST(Netcdf4Files, ThatAreCutOrChangedAreCorrupt) {
  const ByteVector good = sample_nc4({.chunk = {1, 1, 4, 5}, .shuffle = true, .sum = true, .deflate = 1});
  for (std::size_t size = 0; size < good.size(); size += 2003) {
    const Status status =
        open(target_with("a.nc", {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), "a.nc",
             "")
            .status();
    EXPECT_FALSE(status.is_ok()) << size;
    EXPECT_TRUE(status.text().starts_with("a.nc: ")) << status.text();
  }
  // A chunk whose sum is wrong.
  int broken = 0;
  for (std::size_t at = good.size() / 2; at < good.size(); at += 37) {
    ByteVector bytes = good;
    bytes[at] ^= std::byte{0x10};
    const Result<std::shared_ptr<const Source>> source = open(target_with("a.nc", bytes), "a.nc", "");
    if (!source.is_ok() || records_of(**source, "t").empty()) continue;
    for (const Record& record : records_of(**source, "t")) {
      const Status status = all_of(**source, record).status;
      if (status.is_ok()) continue;
      ++broken;
      EXPECT_EQ(status.code(), Code::corrupt) << status.text();
      EXPECT_TRUE(status.text().starts_with("a.nc: variable 't': ")) << status.text();
    }
  }
  EXPECT_GT(broken, 3);
}

TEST(Netcdf4Files, OfANewerLibraryAreUnsupported) {
  constexpr std::size_t superblock_version = 8;
  ByteVector bytes = sample_nc4({});
  bytes[superblock_version] = std::byte{9};
  const Status status = open(target_with("a.nc", bytes), "a.nc", "").status();
  EXPECT_EQ(status.code(), Code::unsupported) << status.text();
  EXPECT_NE(status.text().find("newer HDF5"), std::string::npos) << status.text();
}

TEST(Netcdf4Files, AreReadByManyThreadsAtOnce) {
  const auto source = opened(sample_nc4({.chunk = {1, 1, 2, 2}, .shuffle = true, .deflate = 1}));
  ASSERT_NE(source, nullptr);
  const std::vector<Record> t = records_of(*source, "t");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t n = 0; n < 50; ++n) {
        const std::size_t record = (n + static_cast<std::size_t>(i)) % 5;
        if (all_of(*source, t[record]).values != sequence(20, 20.0 * static_cast<double>(record))) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

TEST(OwnNetcdf4Files, AreReadByTheirIndexFinishedOrNot) {
  for (const bool is_finished : {true, false}) {
    for (const std::string chunks : {"", "2x3", "1x4"}) {
      for (const std::string compress : {"deflate:1", "none"}) {
        OwnStream own = own_stream("netcdf4");
        own.is_finished = is_finished;
        own.fields[0].keys = {{"compress", compress}};
        if (!chunks.empty()) own.fields[0].keys.emplace_back("chunks", chunks);
        own.committed = is_finished ? 3 : 2;
        const std::shared_ptr<storage::Target> target = storage::memory_target();
        write_own(*target, "own.nc", own);
        const auto source = opened(target, "own.nc");
        ASSERT_NE(source, nullptr);
        EXPECT_EQ(time_text(*source, records_of(*source, "t").at(2).valid), "2026-03-01T07:00:00Z");
        EXPECT_EQ(time_text(*source, records_of(*source, "t").at(2).reference), "2026-03-01T06:00:00Z");
        expect_own(*source, own.committed);
        if (!is_finished) continue;
        ASSERT_TRUE(target->remove("own.nc.trx").is_ok());
        const auto without = opened(target, "own.nc");
        ASSERT_NE(without, nullptr);
        expect_own(*without, 3);
      }
    }
  }
}

TEST(OwnNetcdf4Files, HaveFieldsWithoutTimeFinishedOrNot) {
  for (const bool is_finished : {true, false}) {
    OwnStream own = own_stream_with_fixed("netcdf4");
    own.is_finished = is_finished;
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    write_own(*target, "own.nc", own);
    const auto source = opened(target, "own.nc");
    ASSERT_NE(source, nullptr);
    expect_own(*source, 3);
    expect_fixed(*source);
    Record wrong = records_of(*source, "area").at(0);
    wrong.place[1] = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(all_of(*source, wrong).status.code(), Code::corrupt);
    if (!is_finished) continue;
    ASSERT_TRUE(target->remove("own.nc.trx").is_ok());
    const auto without = opened(target, "own.nc");
    ASSERT_NE(without, nullptr);
    EXPECT_EQ(records_of(*without, "area").at(1).valid, any_time);
    EXPECT_EQ(all_of(*without, records_of(*without, "area").at(1)).missing, 1);
  }
}

TEST(OwnNetcdf4Files, HaveBytesThatAreAllData) {
  for (const bool has_index : {true, false}) {
    OwnStream own = own_stream("netcdf4");
    own.fields = {own_field("mask", ElementType::byte, {}, {40})};
    const std::shared_ptr<storage::Target> target = storage::memory_target();
    write_own(*target, "own.nc", own);
    if (!has_index) ASSERT_TRUE(target->remove("own.nc.trx").is_ok());
    const auto source = opened(target, "own.nc");
    ASSERT_NE(source, nullptr);
    const PartRead mask = all_of(*source, records_of(*source, "mask").at(0));
    EXPECT_EQ(mask.missing, 0);
    EXPECT_EQ(mask.values[29], 255) << "no byte stands for \"no value\" without missing=";
  }
}

TEST(OwnNetcdf4Files, WhoseHeadFitsNoIndexAreCorrupt) {
  const std::shared_ptr<storage::Target> target = storage::memory_target();
  write_own(*target, "own.nc", own_stream("netcdf4"));
  const auto file = *target->open("own.nc", storage::OpenMode::existing);
  for (Bytes at = 64; at < 600; at += 7) {
    ByteVector byte(1);
    ASSERT_TRUE(file->read(byte, at).is_ok());
    byte[0] ^= std::byte{1};
    ASSERT_TRUE(file->write(byte, at).is_ok());
    const Status status = open(target, "own.nc", "").status();
    EXPECT_TRUE(status.code() == Code::corrupt || status.code() == Code::unsupported) << at << status.text();
    EXPECT_TRUE(status.text().starts_with("own.nc: ")) << status.text();
    byte[0] ^= std::byte{1};
    ASSERT_TRUE(file->write(byte, at).is_ok());
  }
}

TEST(Netcdf4Files, FaultsOfStorageAreErrorsOfTheCall) {
  const std::shared_ptr<storage::Target> memory =
      target_with("a.nc", sample_nc4({.chunk = {1, 1, 4, 5}, .shuffle = true, .deflate = 1}));
  write_own(*memory, "own.nc", own_stream("netcdf4"));
  write_bytes(*memory, "moved.nc", moved(sample_nc4({}), 2048));
  for (const std::string path : {"a.nc", "own.nc", "moved.nc"}) {
    std::int64_t n = 1;
    for (bool fired = true; fired && n < 2000; ++n) {
      // The reader looks for a user block once more than those who find out the format.
      const bool for_good = path == "moved.nc";
      const auto faulty =
          storage::faulty_target(memory, {.nth = n, .calls = storage::all_calls, .for_good = for_good});
      const Result<std::shared_ptr<const Source>> source = open(faulty, path, "");
      Status status = source.status();
      if (status.is_ok()) status = all_of(**source, records_of(**source, "t").at(1)).status;
      fired = faulty->fired();
      EXPECT_EQ(status.is_ok(), !fired) << path << " " << n << ": " << status.text();
      if (fired) EXPECT_EQ(status.code(), Code::io) << status.text();
      if (fired) EXPECT_NE(status.text().find(path), std::string::npos) << status.text();
    }
    EXPECT_GT(n, 6);
    EXPECT_LT(n, 2000);
  }
}

}  // namespace
}  // namespace tailrace::variables
