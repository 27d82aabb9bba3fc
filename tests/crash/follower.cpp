// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Reads the field t of tests/checkpoint/restart_model.cpp, step by step, with its halo. Rank 0 prints
// "following", for each step "step NUMBER DIGEST", and "complete". The digest depends on all values, and not
// on the layout. If the writer has taken a step back, the program tries to read it again.
//   follower PATTERN OPTIONS STEPS
#include <tailrace.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/restart_grid.hpp"

using namespace tailrace::restart_grid;

namespace {

/// A part of the field with its halo: (y, x), in C order.
struct Part {
  tr_index lower[2] = {}, upper[2] = {};
  std::vector<double> values;

  [[nodiscard]] tr_index pitch() const { return upper[1] - lower[1] + 2 * halo[1]; }
  [[nodiscard]] double at(tr_index y, tr_index x) const {
    return values[static_cast<std::size_t>((y - lower[0] + halo[0]) * pitch() + x - lower[1] + halo[1])];
  }
  /// Returns a sum over the elements of this rank. The sums of all ranks add up to the same for any number of
  /// ranks.
  [[nodiscard]] std::uint64_t digest() const {
    std::uint64_t sum = 0;
    for (tr_index y = lower[0]; y < upper[0]; ++y) {
      for (tr_index x = lower[1]; x < upper[1]; ++x) {
        std::uint64_t bits = 0;
        const double value = at(y, x);
        std::memcpy(&bits, &value, sizeof bits);
        bits = (bits ^ static_cast<std::uint64_t>(y * shape[1] + x)) * 0x9E3779B97F4A7C15U;
        sum += bits ^ (bits >> 29);
      }
    }
    return sum;
  }
};

void run(MPI_Comm compute, char** arguments) {
  tr_layout* blocks = nullptr;
  Part part;
  must(tr_layout_block(2, shape, halo, &blocks), "layout");
  must(tr_layout_bounds(blocks, 0, part.lower, part.upper), "bounds");
  must(tr_layout_georeference(blocks, grid_keys), "georeference");
  part.values.resize(static_cast<std::size_t>((part.upper[0] - part.lower[0] + 2 * halo[0]) * part.pitch()));
  tr_stream* in = nullptr;
  const std::string options = std::string("base=2026-03-01T00:00Z ") + arguments[2];
  must(tr_stream_open(arguments[1], options.c_str(), &in), "open");
  must(tr_stream_define(in, "t", blocks, TR_F64, nullptr), "define");
  if (rank == 0) std::printf("following\n");
  for (std::int64_t step = 1; step <= std::atoll(arguments[3]);) {
    tr_stream_begin(in, step * step_seconds);
    tr_stream_get(in, "t", part.values.data());
    const int ended = tr_stream_end(in);
    if (ended == TR_ERR_STATE) continue;
    must(ended, "end");
    const std::uint64_t mine = part.digest();
    std::uint64_t all = 0;
    MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, compute);
    if (rank == 0) std::printf("step %" PRId64 " %016" PRIx64 "\n", step, all);
    ++step;
  }
  must(tr_stream_close(&in), "close");
  tr_layout_free(&blocks);
  if (rank == 0) std::printf("complete\n");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: follower PATTERN OPTIONS STEPS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (FILE* const file = std::fopen(("pids/" + std::to_string(::getpid())).c_str(), "w")) std::fclose(file);
  MPI_Comm compute = MPI_COMM_NULL;
  must(tr_init(MPI_COMM_WORLD, &compute, nullptr), "init");
  if (compute != MPI_COMM_NULL) {
    MPI_Comm_rank(compute, &rank);
    run(compute, argv);
  }
  must(tr_finalize(), "finalize");
  MPI_Finalize();
  return 0;
}
