// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Streams that read each format: random layouts, halos, orders of levels, types and leads, on any number of
// ranks, of files that our streams have written, with their index and without, and of such as others write.
#include <eccodes.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>

#include "input/ranks.hpp"
#include "mpi/scene.hpp"

namespace tailrace::input_test::formats {

using namespace mpi_test;
using namespace scene;

namespace {

const std::vector<std::string> fields = {"t", "u", "r"};
const std::vector<std::int64_t> hours = {0, 2, 5, 6};
const char* const steps_levels = "levels=pressure:1000,850,500 accuracy=0.001 missing=-5000";

/// Collective over the world at its first call. Returns the same number on every rank, which is printed:
/// TEST_SEED, or another one each time.
unsigned seed() {
  static const unsigned number = [] {
    const char* const given = std::getenv("TEST_SEED");
    unsigned one = given != nullptr ? static_cast<unsigned>(std::atol(given)) : std::random_device()();
    MPI_Bcast(&one, 1, MPI_UNSIGNED, 0, state().comm);
    if (rank() == 0) std::printf("TEST_SEED=%u\n", one);
    return one;
  }();
  return number;
}

/// In the field r some elements have no value, others at each step and level.
bool is_missing(int field, std::int64_t at, tr_index level, tr_index element) {
  if (field != 2) return false;
  std::mt19937 dice(seed() + static_cast<unsigned>((at * levels + level) * 10'007 + element));
  return dice() % 5 == 0;
}

double stored(int field, std::int64_t at, tr_index level, tr_index element) {
  return is_missing(field, at, level, element) ? hole : value(field, at * hour, level, element);
}

/// Puts the fields at all hours into one file.
void put_file(MPI_Comm compute, const std::string& path) {
  tr_stream* out = nullptr;
  const bool is_raw = path.ends_with(".raw");
  expect(tr_stream_create(path.c_str(), (base + std::string(is_raw ? "format=raw" : "")).c_str(), &out));
  const std::string levels_text = is_raw ? "levels=pressure:1000,850,500 missing=-5000" : steps_levels;
  std::vector<std::unique_ptr<Array>> arrays;
  for (const std::string& field : fields) {
    arrays.push_back(std::make_unique<Array>("block", compute, TR_F64));
    expect(tr_layout_georeference(arrays.back()->layout(), grid_keys));
    expect(tr_stream_define(out, field.c_str(), arrays.back()->layout(), TR_F64, levels_text.c_str()));
  }
  for (const std::int64_t at : hours) {
    tr_stream_begin(out, at * hour);
    for (int field = 0; field < 3; ++field) {
      Array& array = *arrays[static_cast<std::size_t>(field)];
      array.fill(field, at * hour);
      for (tr_index own = 0; own < array.owned(); ++own)
        for (tr_index level = 0; level < levels; ++level)
          array.set(own, level, stored(field, at, level, array.element(own)));
      tr_stream_put(out, fields[static_cast<std::size_t>(field)].c_str(), array.data());
    }
    expect(tr_stream_end(out));
  }
  expect(tr_stream_close(&out));
}

/// Writes all messages of a file in edition 1.
void write_grib1(const std::string& from, const std::string& to) {
  FILE* const in = std::fopen(from.c_str(), "rb");
  std::ofstream out(to, std::ios::binary);
  int error = 0;
  long messages = 0;
  while (codes_handle* const handle = codes_handle_new_from_file(nullptr, in, PRODUCT_GRIB, &error)) {
    std::size_t length = std::strlen("grid_simple");
    CHECK_EQ(codes_set_string(handle, "packingType", "grid_simple", &length), 0);
    // Its tables of parameters belong to a centre.
    CHECK_EQ(codes_set_long(handle, "centre", 98), 0);
    CHECK_EQ(codes_set_long(handle, "edition", 1), 0);
    const void* bytes = nullptr;
    std::size_t size = 0;
    CHECK_EQ(codes_get_message(handle, &bytes, &size), 0);
    out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    codes_handle_delete(handle);
    ++messages;
  }
  std::fclose(in);
  CHECK_EQ(messages, static_cast<long>(fields.size() * hours.size()) * levels);
}

/// Writes an array of a Zarr store of version 2. `at` tells each element by its indices.
void write_array(const std::string& directory, const std::vector<tr_index>& shape,
                 const std::vector<tr_index>& chunk, const std::string& attributes,
                 const std::function<double(const std::vector<tr_index>&)>& at) {
  std::filesystem::create_directories(directory);
  const auto text = [](const std::vector<tr_index>& numbers) {
    std::string all;
    for (const tr_index number : numbers) all += (all.empty() ? "[" : ",") + std::to_string(number);
    return all + "]";
  };
  std::ofstream(directory + "/.zattrs") << "{" << attributes << "}";
  std::ofstream(directory + "/.zarray")
      << R"({"zarr_format":2,"shape":)" << text(shape) << R"(,"chunks":)" << text(chunk)
      << R"(,"dtype":"<f8","compressor":null,"filters":null,"order":"C","fill_value":-7777.0})";
  const std::size_t rank = shape.size();
  std::vector<tr_index> first(rank);  // of the chunk
  const auto advance = [&](std::vector<tr_index>& place, const auto& step, const auto& end) {
    for (std::size_t d = rank; d-- > 0;) {
      if ((place[d] += step(d)) < end(d)) return true;
      place[d] = 0;
    }
    return false;
  };
  do {
    std::string name;
    for (std::size_t d = 0; d < rank; ++d) name += (d == 0 ? "" : ".") + std::to_string(first[d] / chunk[d]);
    std::ofstream file(directory + "/" + name, std::ios::binary);
    std::vector<tr_index> inside(rank), place(rank);
    do {
      bool is_there = true;
      for (std::size_t d = 0; d < rank; ++d) is_there &= (place[d] = first[d] + inside[d]) < shape[d];
      const double number = is_there ? at(place) : 0;
      file.write(reinterpret_cast<const char*>(&number), sizeof number);
    } while (advance(
        inside, [](std::size_t) { return 1; }, [&](std::size_t d) { return chunk[d]; }));
  } while (advance(
      first, [&](std::size_t d) { return chunk[d]; }, [&](std::size_t d) { return shape[d]; }));
}

std::string dimensions(const std::string& names, const std::string& more = "") {
  return R"("_ARRAY_DIMENSIONS":[)" + names + "]" + more;
}

/// Writes a store of version 2, with chunks that hold two levels and end inside of rows.
void write_zarr2(const std::string& store) {
  std::filesystem::create_directories(store);
  std::ofstream(store + "/.zgroup") << R"({"zarr_format":2})";
  const auto along = [&](const std::string& name, const std::vector<double>& numbers,
                         const std::string& attributes) {
    const auto count = static_cast<tr_index>(numbers.size());
    write_array(store + "/" + name, {count}, {count}, dimensions("\"" + name + "\"", attributes),
                [&](const auto& at) { return numbers[static_cast<std::size_t>(at[0])]; });
  };
  along("time", {hours.begin(), hours.end()},
        R"(,"standard_name":"time","units":"hours since 2026-03-01","calendar":"proleptic_gregorian")");
  along("plev", {100'000, 85'000, 50'000}, R"(,"standard_name":"air_pressure","units":"Pa")");
  std::vector<double> latitudes, longitudes;
  for (tr_index y = 0; y < ny; ++y) latitudes.push_back(50.0 - static_cast<double>(y));
  for (tr_index x = 0; x < nx; ++x) longitudes.push_back(5.0 + static_cast<double>(x));
  along("lat", latitudes, R"(,"standard_name":"latitude","units":"degrees_north")");
  along("lon", longitudes, R"(,"standard_name":"longitude","units":"degrees_east")");
  for (int field = 0; field < 3; ++field)
    write_array(store + "/" + fields[static_cast<std::size_t>(field)],
                {static_cast<tr_index>(hours.size()), levels, ny, nx}, {1, 2, ny, 7},
                dimensions(R"("time","plev","lat","lon")"), [&](const auto& at) {
                  const tr_index element = at[2] * nx + at[3];
                  const std::int64_t when = hours[static_cast<std::size_t>(at[0])];
                  return is_missing(field, when, at[1], element) ? -7777.0
                                                                 : stored(field, when, at[1], element);
                });
}

/// A file, and how far its values may be off.
struct File {
  std::string path;
  double accuracy = 0.001;
};

/// Collective over the world. Returns the files of all formats of this build.
const std::vector<File>& files() {
  static const std::vector<File> all = [] {
    const std::string directory = fresh_directory("formats");
    std::vector<std::string> own{"/own.grib2", "/own.grib1", "/own.nc", "/own.raw"};
    std::vector<File> made{{directory + "/1.grib", 0.004}};
#ifdef TAILRACE_HAVE_HDF5
    own.emplace_back("/own.nc4");
#endif
#ifdef TAILRACE_HAVE_ZARR
    own.emplace_back("/own.zarr");
    made.push_back({directory + "/2.zarr"});
#endif
    on_ranks(1, 0, "", [&](MPI_Comm compute) {
      for (const std::string& name : own) put_file(compute, directory + name);
      write_grib1(directory + "/own.grib2", directory + "/1.grib");
      write_zarr2(directory + "/2.zarr");
    });
    for (const std::string& name : own) {
      const std::string bare = directory + "/bare" + name.substr(4);
      made.push_back({directory + name});
      if (name == "/own.raw") continue;  // nothing but its index says what is in it
      made.push_back({bare});
      if (rank() == 0)
        std::filesystem::copy(directory + name, bare, std::filesystem::copy_options::recursive);
    }
    quiet_barrier();
    return made;
  }();
  return all;
}

/// Returns the value between two hours of the files.
double between(int field, double at, tr_index level, tr_index element) {
  const auto behind = std::ranges::lower_bound(hours, at);
  const auto last = static_cast<double>(*behind);
  if (last == at) return stored(field, *behind, level, element);
  for (const auto step : {behind, std::prev(behind)})
    if (is_missing(field, *step, level, element)) return hole;
  const auto before = static_cast<double>(*std::prev(behind));
  const double weight = (at - before) / (last - before);
  return (1 - weight) * stored(field, *std::prev(behind), level, element) +
         weight * stored(field, *behind, level, element);
}

const std::string& any_of(std::mt19937& dice, const std::vector<std::string>& all) {
  return all[dice() % all.size()];
}

/// Reads some steps of a file in some way, the same on every rank.
void read_some(MPI_Comm compute, const File& file, std::mt19937& dice) {
  const std::string& kind = any_of(dice, kinds);
  const int type = dice() % 2 == 0 ? TR_F32 : TR_F64;
  Array array(kind, compute, type);
  expect(tr_layout_georeference(array.layout(), grid_keys));
  std::vector<tr_index> order{0, 1, 2};
  std::shuffle(order.begin(), order.end(), dice);
  const char* const pressures[] = {"1000", "850", "500"};
  const std::string options = std::string("levels=pressure:") + pressures[order[0]] + "," +
                              pressures[order[1]] + "," + pressures[order[2]] + " missing=-5000 " +
                              array.options();
  tr_stream* in = nullptr;
  const std::string how = base + std::string("between=linear prefetch=") + std::to_string(dice() % 4);
  if (!expect(tr_stream_open(file.path.c_str(), how.c_str(), &in))) return;
  for (const std::string& field : fields)
    expect(tr_stream_define(in, field.c_str(), array.layout(), type, options.c_str()));
  for (int step = 0; step < 3; ++step) {
    const bool is_step = dice() % 2 == 0;
    const double at =
        is_step ? static_cast<double>(hours[dice() % 4]) : static_cast<double>(dice() % 601) / 100;
    const int field = static_cast<int>(dice() % 3);
    array.fill(7, 99);
    tr_stream_begin(in, std::llround(at * hour));
    tr_stream_get(in, fields[static_cast<std::size_t>(field)].c_str(), array.data());
    expect(tr_stream_end(in));
    double worst = 0;
    for (tr_index own = 0; own < array.owned(); ++own)
      for (tr_index level = 0; level < levels; ++level) {
        const double wanted = between(field, at, order[static_cast<std::size_t>(level)], array.element(own));
        const double off = std::fabs(array.get(own, level) - wanted);
        worst = std::isnan(off) ? INFINITY : std::max(worst, off);
      }
    if (!CHECK(worst <= file.accuracy))
      std::fprintf(stderr, "  %s, %s, hour %g: off by %g\n", file.path.c_str(), kind.c_str(), at, worst);
  }
  expect(tr_stream_close(&in));
}

/// Reads the last step into arrays with a halo, which gets its values where it lies on the grid.
void read_with_halo(const File& file, std::mt19937& dice) {
  const tr_index shape[] = {ny, nx};
  const tr_index halo[] = {static_cast<tr_index>(dice() % 3), static_cast<tr_index>(dice() % 3)};
  tr_layout* layout = nullptr;
  tr_stream* in = nullptr;
  tr_index from[2], to[2];
  expect(tr_layout_block(2, shape, halo, &layout));
  expect(tr_layout_bounds(layout, 1, from, to));
  const tr_index columns = to[1] - from[1], points = (to[0] - from[0]) * columns;
  std::vector<double> t(static_cast<std::size_t>(2 * points), -1);
  expect(tr_stream_open(file.path.c_str(), base, &in));
  expect(tr_stream_define(in, "t", layout, TR_F64, "levels=pressure:500,1000"));
  tr_stream_begin(in, hours.back() * hour);
  tr_stream_get(in, "t", t.data());
  expect(tr_stream_end(in));
  expect(tr_stream_close(&in));
  tr_index own[2], behind[2];
  expect(tr_layout_bounds(layout, 0, own, behind));
  const bool has_some = own[0] < behind[0] && own[1] < behind[1];
  for (tr_index y = from[0]; y < to[0] && has_some; ++y)
    for (tr_index x = from[1]; x < to[1]; ++x) {
      const auto place = static_cast<std::size_t>((y - from[0]) * columns + x - from[1]);
      const bool is_inside = y >= 0 && y < ny && x >= 0 && x < nx;
      for (std::size_t level = 0; level < 2; ++level) {
        const double got = t[level * static_cast<std::size_t>(points) + place];
        const double wanted = is_inside ? stored(0, hours.back(), level == 0 ? 2 : 0, y * nx + x) : -1;
        if (!CHECK(std::fabs(got - wanted) <= file.accuracy))
          std::fprintf(stderr, "  %s: %g, not %g\n", file.path.c_str(), got, wanted);
      }
    }
  expect(tr_layout_free(&layout));
}

MPI_TEST(input, every_format_gives_what_was_put_on_any_number_of_ranks) {
  files();
  for (int ranks = 1; ranks <= size(); ++ranks) {
    std::mt19937 dice(seed() + static_cast<unsigned>(ranks));  // the same on every rank
    const int servers = std::min(static_cast<int>(dice() % 3), size() - ranks);
    const std::string threads = dice() % 3 == 0 ? "io_threads=2" : "io_threads=0";
    on_ranks(ranks, servers, servers > 0 ? "" : threads, [&](MPI_Comm compute) {
      // Each number of ranks reads every other file.
      for (std::size_t i = static_cast<std::size_t>(ranks % 2); i < files().size(); i += 2) {
        read_some(compute, files()[i], dice);
        read_with_halo(files()[i], dice);
      }
    });
  }
}

/// Puts two steps of a field of this type, whose first three elements are `missing` in the first one, as the
/// type holds it. Without `option` the file does not tell that it means "no value".
void put_holes(MPI_Comm compute, const std::string& path, int type, double missing, const char* option) {
  tr_stream* out = nullptr;
  const std::string format = path.ends_with(".raw") ? "format=raw" : "";
  expect(tr_stream_create(path.c_str(), (base + format).c_str(), &out));
  Array array("block", compute, type);
  expect(tr_layout_georeference(array.layout(), grid_keys));
  expect(tr_stream_define(out, "t", array.layout(), type,
                          ("levels=pressure:1000,850,500" + std::string(option)).c_str()));
  for (const std::int64_t at : {0, 1}) {
    array.fill(0, at * hour);
    for (tr_index own = 0; own < array.owned(); ++own)
      if (at == 0 && array.element(own) < 3) array.set(own, 0, missing);
    tr_stream_begin(out, at * hour);
    tr_stream_put(out, "t", array.data());
    expect(tr_stream_end(out));
  }
  expect(tr_stream_close(&out));
}

/// Reads a step between both, and the first one, as this type.
void find_holes(MPI_Comm compute, const std::string& path, int type, const char* between) {
  Array array("block", compute, type);
  expect(tr_layout_georeference(array.layout(), grid_keys));
  tr_stream* in = nullptr;
  expect(tr_stream_open(path.c_str(), (base + std::string(between)).c_str(), &in));
  expect(tr_stream_define(in, "t", array.layout(), type, "levels=pressure:1000,850,500 missing=1e20"));
  const double hole_there = type == TR_F32 ? static_cast<double>(1e20F) : 1e20;
  for (const std::int64_t lead : {std::int64_t{0}, hour / 2}) {
    if (lead > 0 && between[0] == 0) continue;
    tr_stream_begin(in, lead);
    tr_stream_get(in, "t", array.data());
    expect(tr_stream_end(in));
    for (tr_index own = 0; own < array.owned(); ++own) {
      const double got = array.get(own, 0);
      const bool is_hole = array.element(own) < 3;
      if (!CHECK(is_hole ? got == hole_there : std::fabs(got) < 1001))
        std::fprintf(stderr, "  %s, lead %d, element %d: %.17g\n", path.c_str(), static_cast<int>(lead),
                     static_cast<int>(array.element(own)), got);
    }
  }
  expect(tr_stream_close(&in));
}

MPI_TEST(input, a_missing_value_is_found_whichever_real_type_the_file_has_and_which_is_read) {
  const std::string directory = fresh_directory("holes");
  on_ranks(2, 0, "", [&](MPI_Comm compute) {
    for (const int type : {TR_F32, TR_F64}) {
      for (const std::string name : {"untold.raw", "untold.nc", "told.nc", "told.grib2"}) {
        const std::string path = directory + "/" + std::to_string(type) + name;
        put_holes(compute, path, type, 1e20, name.starts_with("told") ? " missing=1e20" : "");
        for (const int wanted : {TR_F32, TR_F64})
          for (const char* const between : {"", "between=linear"}) find_holes(compute, path, wanted, between);
      }
    }
  });
}

}  // namespace

}  // namespace tailrace::input_test::formats
