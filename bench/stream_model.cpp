// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A model that computes and puts, step by step, and prints what each step took as one line of JSON.
//   --columns --rows --levels --fields   its size          --steps N   --sweeps N (computing between outputs)
//   (fields beyond the sixth have local parameter numbers)
//   --packing simple|ccsds               --file PATH       --pin (each rank to a core of its own)
//   --copy      after half of each step's computing, times a plain copy of what the output will capture
//   --no-puts   the same without output  --no-session      the same without the library
//   --linger S  stays for S seconds after the last step is durable, so that memory can be looked at
#include <mpi.h>
#include <tailrace.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <vector>

#include "arguments.hpp"
#include "clocks.hpp"
#include "eccodes_loop.hpp"
#include "synthetic_model.hpp"

namespace {

constexpr std::array names{"t", "u", "v", "q", "w", "r"};
constexpr std::int64_t halo = 2;

struct Options {
  long columns, rows, levels, fields, steps, sweeps;
  std::string packing, file;
  bool copy, puts, session;
  double linger;

  explicit Options(const bench::Arguments& given)
      : columns(given.number("--columns", 468)),
        rows(given.number("--rows", 378)),
        levels(given.number("--levels", 40)),
        fields(given.number("--fields", 4)),
        steps(given.number("--steps", 7)),
        sweeps(given.number("--sweeps", 4)),
        packing(given.text("--packing", "simple")),
        file(given.text("--file", "stream.grib2")),
        copy(given.has("--copy")),
        puts(!given.has("--no-puts") && !given.has("--no-session")),
        session(!given.has("--no-session")),
        linger(given.real("--linger", 0)) {}
};

std::string name_of(long field) {
  const auto number = static_cast<std::size_t>(field);
  return number < names.size() ? names[number] : "local_" + std::to_string(field);
}

/// Categories and numbers from 192 on are each centre's own (code tables 4.1 and 4.2): none of them has a
/// name here.
std::string parameter_of(long field) {
  const long number = field - static_cast<long>(names.size());
  if (number < 0) return "";
  return " keys=\"discipline=0, parameterCategory=" + std::to_string(192 + number / 62) +
         ", parameterNumber=" + std::to_string(192 + number % 62) + "\"";
}

struct Step {
  double compute = 0;   // seconds of wall clock on compute rank 0
  bench::Span blocked;  // wall clock: the longest of all ranks; CPU: the sum over ranks
  bench::Span copy;
  bench::Span period;  // from the beginning of the step to that of the next; CPU: of compute rank 0
};

void check(int code) {
  if (code == TR_OK) return;
  std::fprintf(stderr, "bench: %s\n", tr_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

class Run {
 public:
  Run(const Options& options, MPI_Comm compute) : options_(options), compute_(compute) {}

  bench::SyntheticModel::Shape shape();
  void open();
  void steps(bench::SyntheticModel& model);
  void close() {
    if (stream_ != nullptr) check(tr_stream_close(&stream_));
    if (layout_ != nullptr) check(tr_layout_free(&layout_));
  }
  [[nodiscard]] const std::vector<Step>& measured() const { return measured_; }
  [[nodiscard]] float checksum() const { return checksum_; }
  /// Returns the seconds from before the stream is created until all of its fields are defined.
  [[nodiscard]] double definition() const { return definition_; }

 private:
  void output(const bench::SyntheticModel& model, long number);
  void compute(bench::SyntheticModel& model, long sweeps, Step& step);
  [[nodiscard]] bench::Span over_ranks(const bench::Span& mine) const;

  const Options& options_;
  MPI_Comm compute_;
  tr_layout* layout_ = nullptr;
  tr_stream* stream_ = nullptr;
  std::vector<Step> measured_;
  float checksum_ = 0;
  double definition_ = 0;
};

bench::SyntheticModel::Shape Run::shape() {
  bench::SyntheticModel::Shape shape;
  shape.fields = options_.fields;
  shape.levels = options_.levels;
  shape.halo = halo;
  if (options_.session) {
    const tr_index extents[] = {options_.rows, options_.columns}, halos[] = {halo, halo};
    tr_index lower[2], upper[2];
    check(tr_layout_block(2, extents, halos, &layout_));
    check(tr_layout_bounds(layout_, 0, lower, upper));
    shape.lower_y = lower[0], shape.upper_y = upper[0];
    shape.lower_x = lower[1], shape.upper_x = upper[1];
    return shape;
  }
  int rank = 0, ranks = 1;
  MPI_Comm_rank(compute_, &rank);
  MPI_Comm_size(compute_, &ranks);
  shape.lower_y = options_.rows * rank / ranks;
  shape.upper_y = options_.rows * (rank + 1) / ranks;
  shape.upper_x = options_.columns;
  return shape;
}

void Run::open() {
  if (!options_.puts) return;
  const double begin = bench::wall();
  check(tr_layout_georeference(
      layout_, ("keys=\"" + bench::grid_keys(options_.columns, options_.rows) + "\"").c_str()));
  check(tr_stream_create(options_.file.c_str(),
                         ("base=2026-03-01T00:00Z packing=" + options_.packing).c_str(), &stream_));
  const std::string levels = "bits=16 levels=hybrid:1-" + std::to_string(options_.levels);
  for (long field = 0; field < options_.fields; ++field) {
    check(tr_stream_define(stream_, name_of(field).c_str(), layout_, TR_F32,
                           (levels + parameter_of(field)).c_str()));
  }
  definition_ = bench::wall() - begin;
}

void Run::output(const bench::SyntheticModel& model, long number) {
  check(tr_stream_begin(stream_, number * 3600));
  for (long field = 0; field < options_.fields; ++field) {
    check(tr_stream_put(stream_, name_of(field).c_str(), model.field(field)));
  }
  check(tr_stream_end(stream_));
}

void Run::compute(bench::SyntheticModel& model, long sweeps, Step& step) {
  const double begin = bench::wall();
  for (long i = 0; i < sweeps; ++i) model.sweep();
  // Ranks come to their output together, as after the halo exchange of a real model.
  MPI_Barrier(compute_);
  step.compute += bench::wall() - begin;
}

bench::Span Run::over_ranks(const bench::Span& mine) const {
  bench::Span all;
  MPI_Allreduce(&mine.wall, &all.wall, 1, MPI_DOUBLE, MPI_MAX, compute_);
  MPI_Allreduce(&mine.cpu, &all.cpu, 1, MPI_DOUBLE, MPI_SUM, compute_);
  return all;
}

void Run::steps(bench::SyntheticModel& model) {
  for (long number = 0; number < options_.steps; ++number) {
    const double begin = bench::wall(), cpu_before = bench::thread_cpu();
    Step step;
    if (options_.copy) {
      compute(model, options_.sweeps / 2, step);
      step.copy = over_ranks(bench::timed([&] { model.copy_owned(); }));
      checksum_ += model.checksum();
      compute(model, options_.sweeps - options_.sweeps / 2, step);
    } else {
      compute(model, options_.sweeps, step);
    }
    if (stream_ != nullptr) step.blocked = over_ranks(bench::timed([&] { output(model, number); }));
    step.period = {bench::wall() - begin, bench::thread_cpu() - cpu_before};
    measured_.push_back(step);
  }
}

void print(const Run& run, double start, double total, double bytes) {
  std::printf(
      "{\"init\": %.6f, \"total\": %.6f, \"define\": %.6f, \"output_bytes\": %.0f, \"checksum\": %g, "
      "\"steps\": [",
      start, total, run.definition(), bytes, static_cast<double>(run.checksum()));
  const char* comma = "";
  for (const Step& step : run.measured()) {
    std::printf(
        "%s{\"compute\": %.6f, \"period\": %.6f, \"period_cpu\": %.6f, \"blocked\": %.6f, \"blocked_cpu\": "
        "%.6f, "
        "\"copy\": %.6f, \"copy_cpu\": %.6f}",
        comma, step.compute, step.period.wall, step.period.cpu, step.blocked.wall, step.blocked.cpu,
        step.copy.wall, step.copy.cpu);
    comma = ", ";
  }
  std::printf("]}\n");
}

void linger(double seconds) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  ::nanosleep(&time, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bench::Arguments arguments(argc, argv);
  const Options options(arguments);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (arguments.has("--pin") && !bench::pin_to_core(rank))
    std::fprintf(stderr, "bench: rank %d is not pinned\n", rank);

  MPI_Comm compute = MPI_COMM_WORLD;
  const double before = bench::wall();
  if (options.session) check(tr_init(MPI_COMM_WORLD, &compute, nullptr));
  const double start = bench::wall() - before;
  if (compute != MPI_COMM_NULL) {
    int me = 0;
    MPI_Comm_rank(compute, &me);
    Run run(options, compute);
    bench::SyntheticModel model(run.shape());
    run.open();
    MPI_Barrier(compute);
    const double begin = bench::wall();
    run.steps(model);
    run.close();
    linger(options.linger);
    if (options.session) check(tr_finalize());
    const double total = bench::wall() - begin - options.linger;
    const auto bytes = static_cast<double>(options.columns * options.rows * options.levels * options.fields) *
                       sizeof(float) * static_cast<double>(options.steps);
    if (me == 0) print(run, start, total, bytes);
  } else {
    check(tr_finalize());
  }
  MPI_Finalize();
  return 0;
}
