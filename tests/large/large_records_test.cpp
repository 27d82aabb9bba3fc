// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Records beyond 2 GiB and files beyond 4 GiB: every count and offset on the way must have 64 bits.
#include <tailrace.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#if TAILRACE_HAVE_GRIB
#include <eccodes.h>
#endif

#include "support/mpi_test.hpp"

using tailrace::mpi_test::state;

namespace {

std::string path_of(const char* name) {
  const char* directory = std::getenv("TMPDIR");
  return std::string(directory ? directory : "/tmp") + "/tailrace_large_" + std::to_string(state().size) +
         "_" + name;
}

signed char value_of(tr_index global) { return static_cast<signed char>((global * 2654435761LL) >> 16); }

/// Returns true for success. Prints the text of an error of the C interface.
bool passed(int code) {
  if (code != TR_OK) std::fprintf(stderr, "rank %d: %s\n", state().rank, tr_error());
  return code == TR_OK;
}

struct Session {
  MPI_Comm model = MPI_COMM_NULL;
  Session() { CHECK(passed(tr_init(MPI_COMM_WORLD, &model, nullptr))); }
  ~Session() { CHECK(passed(tr_finalize())); }
};

/// What one test writes: a field of whole rows on each rank.
struct Large {
  tr_index rows;
  tr_index columns;
  const char* georeference;  // null: none
  const char* stream_options;
  const char* field;
  const char* field_options;
  int steps;
};

/// Collective. Checks that the field's elements have the values of value_of(), as elements of type T.
template <typename T>
void write(const std::string& path, const Large& large, int type) {
  const Session session;
  tr_layout* layout = nullptr;
  tr_stream* stream = nullptr;
  const tr_index shape[] = {large.rows, large.columns};
  const int grid[] = {0, 1};
  CHECK(passed(tr_layout_block_grid(2, shape, nullptr, grid, &layout)));
  if (large.georeference != nullptr) CHECK(passed(tr_layout_georeference(layout, large.georeference)));
  tr_index lower[2];
  tr_index upper[2];
  CHECK(passed(tr_layout_bounds(layout, 0, lower, upper)));
  std::vector<T> values(static_cast<std::size_t>((upper[0] - lower[0]) * large.columns));
  const tr_index first = lower[0] * large.columns;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(first + static_cast<tr_index>(i));
  CHECK(passed(tr_stream_create(path.c_str(), large.stream_options, &stream)));
  CHECK(passed(tr_stream_define(stream, large.field, layout, type, large.field_options)));
  for (int step = 0; step < large.steps; ++step) {
    tr_stream_begin(stream, step);
    tr_stream_put(stream, large.field, values.data());
    CHECK(passed(tr_stream_end(stream)));
  }
  CHECK(passed(tr_stream_close(&stream)));
  tr_layout_free(&layout);
}

/// Hands the file to `look` on rank 0, and removes it.
template <typename Look>
void look_at(const std::string& path, const Look& look) {
  if (state().rank != 0) return;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  CHECK(file != nullptr);
  if (file == nullptr) return;
  look(file);
  std::fclose(file);
  std::remove(path.c_str());
  std::remove((path + ".trx").c_str());
}

}  // namespace

MPI_TEST(large, raw_records_beyond_2_gib_make_a_right_file_beyond_4_gib) {
  const std::string path = path_of("raw");
  constexpr tr_index columns = 1 << 20;
  constexpr tr_index rows = 2200;
  const Large large{rows,    columns,          nullptr, "base=2026-03-01T00:00Z format=raw",
                    "bytes", "levels=surface", 2};
  write<signed char>(path, large, TR_I8);
  look_at(path, [](std::FILE* file) {
    std::fseek(file, 0, SEEK_END);
    CHECK_EQ(std::ftell(file), 2 * rows * columns);
    std::vector<signed char> row(columns);
    for (const tr_index step : {0, 1}) {
      for (tr_index r = 0; r < rows; r += 137) {
        std::fseek(file, (step * rows + r) * columns, SEEK_SET);
        CHECK_EQ(std::fread(row.data(), 1, row.size(), file), row.size());
        tr_index wrong = 0;
        for (tr_index i = 0; i < columns; ++i)
          wrong += row[static_cast<std::size_t>(i)] != value_of(r * columns + i);
        CHECK_EQ(wrong, tr_index{0});
      }
    }
  });
}

#if TAILRACE_HAVE_GRIB
MPI_TEST(large, grib_fields_beyond_2_gib_decoded_are_right) {
  const std::string path = path_of("grib2");
  constexpr tr_index columns = 18000;
  constexpr tr_index rows = 15000;  // 270 million points: 2.16 GB as float64
  const Large large{rows,
                    columns,
                    "keys=\"gridType=regular_ll,Ni=18000,Nj=15000,latitudeOfFirstGridPointInDegrees=75,"
                    "longitudeOfFirstGridPointInDegrees=0,latitudeOfLastGridPointInDegrees=-74.99,"
                    "longitudeOfLastGridPointInDegrees=179.99,iDirectionIncrementInDegrees=0.01,"
                    "jDirectionIncrementInDegrees=0.01,jScansPositively=0\"",
                    "base=2026-03-01T00:00Z",
                    "2t",
                    "levels=height:2 accuracy=0.5",
                    1};
  write<float>(path, large, TR_F32);
  look_at(path, [](std::FILE* file) {
    int error = 0;
    codes_handle* handle = codes_handle_new_from_file(nullptr, file, PRODUCT_GRIB, &error);
    CHECK(handle != nullptr);
    std::size_t count = static_cast<std::size_t>(rows * columns);
    std::vector<double> decoded(count);
    CHECK_EQ(codes_get_double_array(handle, "values", decoded.data(), &count), 0);
    CHECK_EQ(count, decoded.size());
    tr_index wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double off = decoded[i] - value_of(static_cast<tr_index>(i));
      wrong += off > 0.5 || off < -0.5;
    }
    CHECK_EQ(wrong, tr_index{0});
    codes_handle_delete(handle);
  });
}
#endif

MPI_TEST_MAIN
