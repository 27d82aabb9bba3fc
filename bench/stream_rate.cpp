// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Output at full rate, with one compute rank and one server, each on a core of its own, or on one rank alone
// without a server. In turn with it run loops over ecCodes that encode and write the same fields, with
// handles cloned and kept, on the core that encodes, while the library has nothing to do. All end when fsync
// has returned.
//   --columns --rows --levels (records a step)  --steps N  --packing simple|ccsds  --type f32|f64
//   --file PATH
#include <mpi.h>
#include <tailrace.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "arguments.hpp"
#include "clocks.hpp"
#include "eccodes_loop.hpp"
#include "synthetic_model.hpp"

namespace {

constexpr int caller_core = 0;
constexpr int encoding_core = 1;

void check(int code) {
  if (code == TR_OK) return;
  std::fprintf(stderr, "bench: %s\n", tr_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// All records of a step, one after another, as the model holds them.
template <typename T>
std::vector<T> make_fields(long levels, long rows, long columns) {
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(levels * rows * columns));
  for (long level = 0; level < levels; ++level) {
    for (long y = 0; y < rows; ++y) {
      for (long x = 0; x < columns; ++x)
        values.push_back(static_cast<T>(bench::weather_like(0, level, y, x)));
    }
  }
  return values;
}

class Rates {
 public:
  /// `core` is the core of this rank.
  Rates(const bench::Arguments& given, int core)
      : core_(core),
        columns_(given.number("--columns", 1000)),
        rows_(given.number("--rows", 1000)),
        levels_(given.number("--levels", 40)),
        file_(given.text("--file", "rate.grib2")),
        packing_(given.text("--packing", "simple")),
        is_float_(given.text("--type", "f64") == "f32"),
        cloning_(columns_, rows_, packing_, file_ + ".cloned"),
        keeping_(columns_, rows_, packing_, file_ + ".kept", bench::EccodesLoop::Handles::kept) {
    if (is_float_) floats_ = make_fields<float>(levels_, rows_, columns_);
    const std::vector<double> doubles = make_fields<double>(levels_, rows_, columns_);
    const auto points = static_cast<std::size_t>(rows_ * columns_);
    for (long level = 0; level < levels_; ++level) {
      const auto from = doubles.begin() + static_cast<std::ptrdiff_t>(points) * level;
      records_.emplace_back(from, from + static_cast<std::ptrdiff_t>(points));
    }
    if (!is_float_) doubles_ = doubles;
  }

  void open() {
    const tr_index extents[] = {rows_, columns_};
    check(tr_layout_block(2, extents, nullptr, &layout_));
    check(tr_layout_georeference(layout_, ("keys=\"" + bench::grid_keys(columns_, rows_) + "\"").c_str()));
    const bool is_grib1 = bench::is_grib1(packing_);
    const std::string options = std::string("base=2026-03-01T00:00Z ") + (is_grib1 ? "format=grib1 " : "") +
                                "packing=" + packing_.substr(is_grib1 ? std::string("grib1_").size() : 0);
    check(tr_stream_create(file_.c_str(), options.c_str(), &stream_));
    const std::string levels = "bits=16 levels=hybrid:1-" + std::to_string(levels_);
    check(tr_stream_define(stream_, "t", layout_, is_float_ ? TR_F32 : TR_F64, levels.c_str()));
  }

  /// Returns the seconds from the first put until the step is durable.
  double step(long number) {
    const double begin = bench::wall();
    check(tr_stream_begin(stream_, number * 3600));
    check(
        tr_stream_put(stream_, "t", is_float_ ? static_cast<const void*>(floats_.data()) : doubles_.data()));
    check(tr_stream_end(stream_));
    check(tr_stream_wait(stream_, TR_DURABLE));
    return bench::wall() - begin;
  }

  double cloned_step(long number) { return peer_step(cloning_, number); }
  double kept_step(long number) { return peer_step(keeping_, number); }

  void close() {
    check(tr_stream_close(&stream_));
    check(tr_layout_free(&layout_));
  }
  [[nodiscard]] double points() const { return static_cast<double>(columns_ * rows_ * levels_); }

 private:
  /// Returns the seconds of a loop over ecCodes, into a new file like the stream's.
  double peer_step(bench::EccodesLoop& peer, long number) {
    bench::pin_to_core(encoding_core);
    peer.rewind(true);
    const double begin = bench::wall();
    for (long level = 0; level < levels_; ++level) {
      peer.write(records_[static_cast<std::size_t>(level)], level + 1, number);
    }
    peer.sync();
    const double seconds = bench::wall() - begin;
    bench::pin_to_core(core_);
    return seconds;
  }

  int core_;
  long columns_, rows_, levels_;
  std::string file_, packing_;
  bool is_float_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<std::vector<double>> records_;
  bench::EccodesLoop cloning_, keeping_;
  tr_layout* layout_ = nullptr;
  tr_stream* stream_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bench::Arguments arguments(argc, argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int core = rank == 0 && ranks > 1 ? caller_core : encoding_core;
  bench::pin_to_core(core);
  MPI_Comm compute = MPI_COMM_NULL;
  check(tr_init(MPI_COMM_WORLD, &compute, nullptr));
  if (compute != MPI_COMM_NULL) {
    Rates rates(arguments, core);
    rates.open();
    std::printf("{\"points\": %.0f, \"steps\": [", rates.points());
    for (long number = 0; number < arguments.number("--steps", 6); ++number) {
      const double ours = rates.step(number);
      const double cloned = rates.cloned_step(number);
      const double kept = rates.kept_step(number);
      std::printf("%s{\"ours\": %.6f, \"cloned\": %.6f, \"kept\": %.6f}", number == 0 ? "" : ", ", ours,
                  cloned, kept);
    }
    std::printf("]}\n");
    rates.close();
  }
  check(tr_finalize());
  MPI_Finalize();
  return 0;
}
