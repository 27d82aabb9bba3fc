// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Calls of storage fail, each in its turn, while streams are read in several ways.
#include <cstdlib>

#include "input/put_files.hpp"
#include "input/ranks.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;
using namespace tailrace::input_test;

namespace {

/// Streams that are read while calls of storage fail.
struct Failing {
  std::string pattern;
  std::string options;
  std::string settings;
  int servers = 0;
};

/// Reads all steps on two ranks. Expects the same results on both ranks, and right values where there is no
/// error. Returns how many calls have failed on each rank.
int read_with_fault(const Failing& scene, const std::string& fault) {
  int failures = 0;
  const CapturedStderr quiet;
  on_ranks(2, scene.servers, scene.settings + " fault=\"" + fault + "\"", [&](MPI_Comm compute) {
    Array array("halo", compute, TR_F32);
    expect(tr_layout_georeference(array.layout(), grid_keys));
    const auto same = [&](int code) {
      const std::string text = code == TR_OK ? "" : tr_error();
      CHECK(same_text(compute, text));
      failures += code != TR_OK;
      return code == TR_OK;
    };
    tr_stream* in = nullptr;
    if (!same(tr_stream_open((input() + scene.pattern).c_str(), (base + scene.options).c_str(), &in))) return;
    expect(tr_stream_define(in, "t", array.layout(), TR_F32, own_levels));
    for (std::int64_t at = 0; at <= last_hour; at += 3) {
      tr_stream_begin(in, at * hour);
      tr_stream_get(in, "t", array.data());
      if (same(tr_stream_end(in)))
        check_values(array, 0, static_cast<double>(at), {0, 1, 2}, scene.pattern + " " + fault);
    }
    expect(tr_stream_close(&in));
  });
  return failures;
}

/// Fails a call of a rank, and then each call from there on: the first calls one by one, and then some of
/// them until there are no more. Returns how many calls failed in all.
int fail_every_read(const Failing& scene, int victim) {
  int failures = 0, last = -1;
  const bool all = std::getenv("TEST_ALL") != nullptr;
  for (int nth = 1; last != 0; nth += nth < (all ? 24 : 8) ? 1 : all ? 5 : 9) {
    const std::string fault = "rank=" + std::to_string(victim) + " nth=" + std::to_string(nth) +
                              " calls=open,read,size,exists,list";
    failures += read_with_fault(scene, fault);
    // With every later call failing, too, nothing can be hidden by another try.
    last = read_with_fault(scene, fault + " for=good");
    MPI_Bcast(&last, 1, MPI_INT, 0, state().comm);
    if (!CHECK(nth < 1000)) return failures;
  }
  return failures;
}

MPI_TEST(input, a_failure_of_storage_is_the_same_error_on_every_rank_or_none) {
  input();
  const std::vector<Failing> scenes = {{"/bd+{lead:03h}.grib2", "", "io_threads=0"},
                                       {"/bd+{lead:03h}.grib2", "", "io_threads=1"},
                                       {"/all.grib2", "follow=on timeout=0s", "io_threads=0"},
                                       {"/all.raw", "follow=on timeout=0s", "io_threads=1"},
                                       {"/all.nc", "", "io_threads=1"},
                                       {"/bd+{lead:03h}.grib2", "prefetch=3", "", 1},
                                       {"/all.nc", "follow=on timeout=0s", "", 1}};
  for (const Failing& scene : scenes) {
    int failures = 0;
    for (int victim = 0; victim < 2 + scene.servers; ++victim) failures += fail_every_read(scene, victim);
    const std::string where = scene.pattern + " " + scene.options + " " + scene.settings;
    // A server hears of none.
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_MAX, state().comm);
    if (!CHECK(failures >= 6)) std::fprintf(stderr, "  %s: %d failures\n", where.c_str(), failures);
  }
}

}  // namespace
