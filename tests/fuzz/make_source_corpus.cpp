// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Writes the small files, stores, indexes and texts with which fuzzing begins, into netcdf_corpus,
// hdf5_corpus and index_corpus of a folder: make_source_corpus tests/fuzz. Their file hdf5_corpus/h5py was
// written by h5py 3.16, with a user block, scaleoffset and LZF.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "../unit/formats/variables/nc_file.hpp"
#include "../unit/formats/variables/own_file.hpp"
#include "../unit/ground/storage/scratch.hpp"
#include "formats/stores/stores.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::variables::test;
using nc_file::sequence;
using nc_file::Writer;

ByteVector content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write(const std::string& path, const ByteVector& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void add_piece(ByteVector& to, const std::string& name, const ByteVector& bytes) {
  const std::string line = cat(to.empty() ? "" : "\n", "=== ", name, "\n");
  for (const char each : line) to.push_back(static_cast<std::byte>(each));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Returns a file with times, levels, packed values, and another field with a single time.
ByteVector classic(int mode) {
  Writer file(mode);
  const int time = file.dimension("time", NC_UNLIMITED), times = file.variable("time", NC_DOUBLE, {time});
  file.text(times, "units", "hours since 2026-03-01 06:00");
  file.text(times, "calendar", "standard");
  const int lev = file.axis("lev", {1000, 500}, {{"units", "hPa"}, {"positive", "down"}});
  const int lat = file.axis("lat", {60, 50}, {{"units", "degrees_north"}}, NC_FLOAT);
  const int lon = file.axis("lon", {0, 10, 20}, {{"units", "degrees_east"}}, NC_FLOAT);
  const int t = file.variable("t", NC_SHORT, {time, lev, lat, lon});
  file.number(t, "scale_factor", NC_DOUBLE, {0.5});
  file.number(t, "add_offset", NC_DOUBLE, {250});
  file.number(t, "_FillValue", NC_SHORT, {-3});
  file.text(t, "cell_methods", "time: mean");
  const int z = file.variable("z", NC_FLOAT, {lat, lon});
  file.put(times, {0}, {2}, {0, 1.5});
  file.put(t, {0, 0, 0, 0}, {2, 2, 2, 3}, sequence(24, -3));
  file.put(z, sequence(6));
  return file.bytes();
}

/// Returns a file with statistics, members, a rotated grid, and a time without a dimension.
ByteVector forecasts(int mode) {
  Writer file(mode);
  const int bnds = file.dimension("bnds", 2);
  const int time = file.axis(
      "time", {1, 2}, {{"units", "days since 2000-1-1"}, {"bounds", "time_bnds"}, {"calendar", "360_day"}});
  const int bounds = file.variable("time_bnds", NC_DOUBLE, {time, bnds});
  const int base = file.variable("base", NC_INT, {});
  file.text(base, "units", "seconds since 1999-12-31 18:00");
  file.text(base, "calendar", "360_day");
  file.text(base, "standard_name", "forecast_reference_time");
  const int member = file.axis("number", {0, 1}, {{"standard_name", "realization"}}, NC_INT);
  const int rlat = file.axis("rlat", {1, 2}, {{"units", "degrees"}, {"standard_name", "grid_latitude"}});
  const int rlon = file.axis("rlon", {3, 4}, {{"units", "degrees"}, {"standard_name", "grid_longitude"}});
  const int pole = file.variable("pole", NC_CHAR, {});
  file.text(pole, "grid_mapping_name", "rotated_latitude_longitude");
  file.number(pole, "grid_north_pole_latitude", NC_DOUBLE, {39.25});
  file.number(pole, "grid_north_pole_longitude", NC_DOUBLE, {-162});
  const int tp = file.variable("tp", NC_FLOAT, {time, member, rlat, rlon});
  file.text(tp, "cell_methods", "time: sum");
  file.text(tp, "coordinates", "base");
  file.text(tp, "grid_mapping", "pole");
  file.number(tp, "valid_range", NC_FLOAT, {0, 1e9});
  file.put(bounds, sequence(4));
  file.put(base, {3600});
  file.put(tp, sequence(16));
  return file.bytes();
}

/// Returns a file with chunks that have filters, a group, and a part that was never written.
ByteVector chunked(bool is_packed) {
  Writer file(NC_NETCDF4);
  const int time = file.dimension("time", NC_UNLIMITED), times = file.variable("time", NC_DOUBLE, {time});
  file.text(times, "units", "days since 2000-01-01");
  const int y = file.dimension("y", 3), x = file.dimension("x", 4),
            t = file.variable("t", NC_FLOAT, {time, y, x});
  const std::size_t chunk[] = {1, 2, 4};
  nc_file::check(nc_def_var_chunking(file.id(), t, NC_CHUNKED, chunk), "chunks");
  if (is_packed) nc_file::check(nc_def_var_deflate(file.id(), t, 1, 1, 1), "deflate");
  if (is_packed) nc_file::check(nc_def_var_fletcher32(file.id(), t, NC_FLETCHER32), "sum");
  file.put(times, {0}, {2}, {1, 2});
  file.put(t, {0, 0, 0}, {1, 3, 4}, sequence(12));
  return file.bytes();
}

/// Returns a file of one of the library's streams as an input, with or without its index.
ByteVector own(const std::string& format, const std::string& ending, bool with_index) {
  const storage::ScratchDirectory scratch;
  const std::string path = scratch / ("a" + ending);
  OwnStream stream = own_stream(format);
  stream.leads = {0, 3600};
  stream.committed = 2;
  if (format == "zarr") {
    for (codec::FieldDefinition& each : stream.fields) each.keys = {{"compress", "gzip:1"}};
  }
  write_own(*stores::with_stores(storage::posix_target()), path, stream);
  ByteVector input;
  if (with_index) add_piece(input, "index", content(path + ".trx"));
  if (!std::filesystem::is_directory(path)) {
    if (!with_index) return content(path);
    add_piece(input, "", content(path));
    return input;
  }
  std::vector<std::string> objects;
  for (const auto& each : std::filesystem::recursive_directory_iterator(path)) {
    if (each.is_regular_file()) objects.push_back(each.path().string());
  }
  std::sort(objects.begin(), objects.end());
  for (const std::string& each : objects) add_piece(input, each.substr(path.size() + 1), content(each));
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "make_source_corpus tests/fuzz\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  for (const char* each : {"netcdf", "hdf5", "zarr", "index"})
    std::filesystem::create_directories(folder + each + "_corpus");
  write(folder + "netcdf_corpus/classic", classic(0));
  write(folder + "netcdf_corpus/offsets", classic(NC_64BIT_OFFSET));
  write(folder + "netcdf_corpus/data", classic(NC_64BIT_DATA));
  write(folder + "netcdf_corpus/forecasts", forecasts(0));
  write(folder + "netcdf_corpus/own", own("cdf5", ".nc", false));
  write(folder + "hdf5_corpus/plain", forecasts(NC_NETCDF4));
  write(folder + "hdf5_corpus/chunked", chunked(false));
  write(folder + "hdf5_corpus/packed", chunked(true));
  write(folder + "hdf5_corpus/own", own("netcdf4", ".nc4", false));
  write(folder + "zarr_corpus/own", own("zarr", ".zarr", false));
  write(folder + "index_corpus/raw", own("raw", ".bin", true));
  write(folder + "index_corpus/classic", own("cdf5", ".nc", true));
  write(folder + "index_corpus/netcdf4", own("netcdf4", ".nc4", true));
  write(folder + "index_corpus/zarr", own("zarr", ".zarr", true));
  return testing::Test::HasFailure() ? 1 : 0;
}
