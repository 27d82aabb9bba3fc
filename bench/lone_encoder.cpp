// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A process that knows of no model: encodes and writes the same number of records of the same size, step
// after step, at a given cadence, until SIGTERM. Prints the share of the time in which it was busy.
//   --columns --rows --records (a step)  --packing  --file PATH  --core N  --period SECONDS
#include <signal.h>
#include <time.h>

#include <cstdio>
#include <vector>

#include "arguments.hpp"
#include "clocks.hpp"
#include "eccodes_loop.hpp"
#include "synthetic_model.hpp"

namespace {

volatile sig_atomic_t stopping = 0;

void stop(int) { stopping = 1; }

void sleep_until(double time) {
  timespec until{};
  until.tv_sec = static_cast<time_t>(time);
  until.tv_nsec = static_cast<long>((time - static_cast<double>(until.tv_sec)) * 1e9);
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const long columns = arguments.number("--columns", 468), rows = arguments.number("--rows", 378);
  if (!bench::pin_to_core(static_cast<int>(arguments.number("--core", 1))))
    std::fprintf(stderr, "bench: not pinned\n");
  const auto records = bench::weather_records(arguments.number("--records", 160), rows, columns);
  bench::EccodesLoop loop(bench::linked_eccodes(), {columns, rows, arguments.text("--packing", "simple")},
                          arguments.text("--file", "lone.grib2"));
  const double period = arguments.real("--period", 1);
  ::signal(SIGTERM, stop);
  std::printf("ready\n");
  std::fflush(stdout);

  const double begin = bench::wall();
  double busy = 0, next = begin;
  long steps = 0;
  for (; stopping == 0; ++steps) {
    const bench::Span span = bench::timed([&] {
      for (std::size_t record = 0; record < records.size(); ++record) {
        loop.write(records[record], static_cast<std::int64_t>(record) % 40 + 1, steps);
      }
      loop.sync();
    });
    busy += span.wall;
    next += period;
    sleep_until(next);
  }
  std::printf("{\"busy\": %.4f, \"steps\": %ld}\n", busy / (bench::wall() - begin), steps);
  return 0;
}
