// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A small model for tests that are scripts. It writes hourly steps of two fields, whose values are computed
// from place and lead alone.
//   small_model PATTERN OPTIONS FIRST LAST PAUSE_MS [forget]
// FIRST and LAST are the hours of the first and the last step. The model pauses for PAUSE_MS between steps.
// With `forget` it does not call tr_finalize. Each process makes a file named after its process id in the
// directory `pids`, if that exists. With SMALL_MODEL_STALLS=RANK:SECONDS this compute rank sleeps before its
// second step. With SMALL_MODEL_AWAITS=HOUR:FILE each compute rank waits before this hour's step until the
// file exists. SMALL_MODEL_FIELDS has further options of both fields. With SMALL_MODEL_THREADS MPI is
// initialised with MPI_THREAD_MULTIPLE. With SMALL_MODEL_STOPS the model asks behind each step whether it is
// to stop, and rank 0 prints "stopped HOUR" with the hour of the last step. SMALL_MODEL_TWIN is the pattern
// of a second stream, which has the same options and gets the same fields.
#include <tailrace.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "mpi/scene.hpp"

using tailrace::scene::Array;

namespace {

int failures = 0;

void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

void stall(MPI_Comm compute) {
  int rank = 0;
  int seconds = 0;
  const char* const text = std::getenv("SMALL_MODEL_STALLS");
  if (text == nullptr || std::sscanf(text, "%d:%d", &rank, &seconds) != 2) return;
  if (rank == tailrace::scene::rank_of(compute)) std::this_thread::sleep_for(std::chrono::seconds(seconds));
}

void await(std::int64_t hour) {
  const char* const text = std::getenv("SMALL_MODEL_AWAITS");
  if (text == nullptr || std::atoll(text) != hour) return;
  while (!std::filesystem::exists(std::strchr(text, ':') + 1))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

bool should_stop(MPI_Comm compute, std::int64_t hour) {
  if (std::getenv("SMALL_MODEL_STOPS") == nullptr || tr_should_stop() == 0) return false;
  if (tailrace::scene::rank_of(compute) == 0) std::printf("stopped %lld\n", static_cast<long long>(hour));
  return true;
}

void forecast(MPI_Comm compute, char** arguments) {
  const std::string options = std::string("base=2026-03-01T00:00Z ") + arguments[2];
  const bool has_grid = options.find("format=raw") == std::string::npos;
  tr_stream *stream = nullptr, *twin = nullptr;  // the twin gets the same fields
  expect(tr_stream_create(arguments[1], options.c_str(), &stream));
  if (stream == nullptr) return;
  const char* const twins_pattern = std::getenv("SMALL_MODEL_TWIN");
  if (twins_pattern != nullptr) expect(tr_stream_create(twins_pattern, options.c_str(), &twin));
  Array t("halo", compute, TR_F64);
  Array u("indexed", compute, TR_F32);
  if (has_grid) {
    expect(tr_layout_georeference(t.layout(), tailrace::scene::grid_keys));
    expect(tr_layout_georeference(u.layout(), tailrace::scene::grid_keys));
  }
  const char* const more = std::getenv("SMALL_MODEL_FIELDS");
  const std::string field = std::string("levels=pressure:1000,850,500 ") + (more == nullptr ? "" : more);
  for (tr_stream* const each : {stream, twin}) {
    if (each == nullptr) continue;
    expect(tr_stream_define(each, "t", t.layout(), TR_F64, field.c_str()));
    expect(tr_stream_define(each, "u", u.layout(), TR_F32, field.c_str()));
  }
  for (std::int64_t hour = std::atoll(arguments[3]); hour <= std::atoll(arguments[4]); ++hour) {
    t.fill(0, hour * 3600);
    u.fill(1, hour * 3600);
    if (hour == std::atoll(arguments[3]) + 1) stall(compute);
    await(hour);
    for (tr_stream* const each : {stream, twin}) {
      if (each == nullptr) continue;
      expect(tr_stream_begin(each, hour * 3600));
      expect(tr_stream_put(each, "t", t.data()));
      expect(tr_stream_put(each, "u", u.data()));
      expect(tr_stream_end(each));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(arguments[5])));
    if (should_stop(compute, hour)) break;
  }
  if (std::getenv("SMALL_MODEL_KEEPS_OPEN") == nullptr) expect(tr_stream_close(&stream));
  if (twin != nullptr) expect(tr_stream_close(&twin));
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  const bool is_multiple = std::getenv("SMALL_MODEL_THREADS") != nullptr;
  MPI_Init_thread(&argc, &argv, is_multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (argc < 6) {
    std::fprintf(stderr, "usage: small_model PATTERN OPTIONS FIRST LAST PAUSE_MS [forget]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (FILE* const file = std::fopen(("pids/" + std::to_string(::getpid())).c_str(), "w")) std::fclose(file);
  MPI_Comm compute = MPI_COMM_NULL;
  int code = tr_init(MPI_COMM_WORLD, &compute, nullptr);
  if (code != TR_OK) std::fprintf(stderr, "%s\n", tr_error());
  if (code == TR_OK && compute != MPI_COMM_NULL) {
    forecast(compute, argv);
  } else if (code == TR_OK) {
    std::printf("rank %d served\n", tailrace::scene::rank_of(MPI_COMM_WORLD));
  }
  const bool forget = argc > 6 && std::strcmp(argv[6], "forget") == 0;
  if (code == TR_OK && !forget) {
    code = tr_finalize();
    if (code != TR_OK) std::fprintf(stderr, "%s\n", tr_error());
  }
  MPI_Finalize();
  return code != TR_OK || failures > 0 ? 1 : 0;
}
