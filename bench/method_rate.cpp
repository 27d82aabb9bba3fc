// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Several files of GRIB2 that are written at the same time, as fast as it goes, by the method that
// TAILRACE_METHOD says. Prints the seconds from the first put until everything is durable, and the bytes of
// the files.
//   --files N  --steps N (of each file)  --columns --rows --levels  --packing simple|ccsds  --directory PATH
#include <mpi.h>
#include <tailrace.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "clocks.hpp"
#include "eccodes_loop.hpp"
#include "synthetic_model.hpp"

namespace {

void check(int code) {
  if (code == TR_OK) return;
  std::fprintf(stderr, "bench: %s\n", tr_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// The files of one run, and what each rank puts into all of them.
class Files {
 public:
  explicit Files(const bench::Arguments& given)
      : directory_(given.text("--directory", ".")), steps_(given.number("--steps", 4)) {
    const long columns = given.number("--columns", 500), rows = given.number("--rows", 500);
    const long levels = given.number("--levels", 30);
    const tr_index extents[] = {rows, columns};
    check(tr_layout_block(2, extents, nullptr, &layout_));
    check(tr_layout_georeference(layout_, ("keys=\"" + bench::grid_keys(columns, rows) + "\"").c_str()));
    tr_index lower[2] = {}, upper[2] = {};
    check(tr_layout_bounds(layout_, 0, lower, upper));
    for (long level = 0; level < levels; ++level)
      for (tr_index y = lower[0]; y < upper[0]; ++y)
        for (tr_index x = lower[1]; x < upper[1]; ++x) values_.push_back(bench::weather_like(0, level, y, x));
    const std::string options = "base=2026-03-01T00:00Z packing=" + given.text("--packing", "simple");
    streams_.resize(static_cast<std::size_t>(given.number("--files", 10)));
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      check(tr_stream_create(path(i).c_str(), options.c_str(), &streams_[i]));
      check(tr_stream_define(streams_[i], "t", layout_, TR_F32,
                             ("bits=16 levels=hybrid:1-" + std::to_string(levels)).c_str()));
    }
  }
  ~Files() { tr_layout_free(&layout_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  /// Writes all steps, and returns when they are durable.
  void write() {
    for (long step = 0; step < steps_; ++step) {
      for (tr_stream* const stream : streams_) {
        check(tr_stream_begin(stream, step * 3600));
        check(tr_stream_put(stream, "t", values_.data()));
        check(tr_stream_end(stream));
      }
    }
    for (tr_stream*& stream : streams_) check(tr_stream_close(&stream));
  }
  [[nodiscard]] double bytes() const {
    double all = 0;
    for (std::size_t i = 0; i < streams_.size(); ++i)
      all += static_cast<double>(std::filesystem::file_size(path(i)));
    return all;
  }

 private:
  [[nodiscard]] std::string path(std::size_t number) const {
    return directory_ + "/method-" + std::to_string(number) + ".grib2";
  }

  std::string directory_;
  long steps_;
  tr_layout* layout_ = nullptr;
  std::vector<float> values_;
  std::vector<tr_stream*> streams_;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);  // which method=mpiio needs
  MPI_Comm compute = MPI_COMM_NULL;
  check(tr_init(MPI_COMM_WORLD, &compute, nullptr));
  if (compute != MPI_COMM_NULL) {
    Files files{bench::Arguments(argc, argv)};
    MPI_Barrier(compute);
    const double begin = bench::wall();
    files.write();
    const double seconds = bench::wall() - begin;
    int rank = 0;
    MPI_Comm_rank(compute, &rank);
    if (rank == 0) std::printf("{\"seconds\": %.6f, \"bytes\": %.0f}\n", seconds, files.bytes());
  }
  check(tr_finalize());
  MPI_Finalize();
  return 0;
}
