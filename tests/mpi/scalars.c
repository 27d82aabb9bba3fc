/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A model's diagnostics beside its map: numbers of a step, a profile, a constant, a series at one station and
 * at several.
 *
 *   scalars PATTERN OPTIONS FIRST STEPS [HOW]
 *
 * The first step is FIRST. HOW: `read` (the steps are read and compared), `misuse` (calls that no scalar
 * takes), `array` (scalars are put with the shape of their arrays), `grib` (the scalars alone). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

enum { NY = 4, NX = 5, LEVELS = 3, STATIONS = 3, MOST = NY * NX };
static int failures = 0, rank = 0;

static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

static tr_layout *scalar = NULL, *cells = NULL, *station = NULL, *stations = NULL;
static double energy, profile[LEVELS];
static int32_t iterations;
static float surface[MOST], here, series[STATIONS];

static void fill(int step) {
  tr_index lower[2], upper[2], i = 0;
  /* The value of compute rank 0 counts. */
  energy = rank == 0 ? 1e9 / (3 + step) : -1;
  iterations = rank == 0 ? 100 + step : -1;
  here = rank == 0 ? 280.5F + (float)step : -1;
  for (int level = 0; level < LEVELS; ++level) profile[level] = rank == 0 ? 10.0 * level + step : -1;
  expect(tr_layout_bounds(cells, 0, lower, upper));
  for (tr_index y = lower[0]; y < upper[0]; ++y)
    for (tr_index x = lower[1]; x < upper[1]; ++x) surface[i++] = (float)(y * NX + x + 100 * step);
  expect(tr_layout_bounds(stations, 0, lower, upper));
  for (tr_index s = lower[0]; s < upper[0]; ++s) series[s - lower[0]] = (float)(s + 10 * step);
}

static void define(tr_stream* stream, int reads, int scalars_alone) {
  expect(tr_stream_define(stream, "energy", scalar, TR_F64,
                          reads || scalars_alone ? NULL : "attributes='units=J'"));
  expect(tr_stream_define(stream, "iterations", scalar, reads ? TR_F64 : TR_I32, NULL));
  if (scalars_alone) return;
  expect(tr_stream_define(stream, "profile", scalar, TR_F64, "levels=height:2,10,50"));
  expect(tr_stream_define(stream, "surface", cells, TR_F32, NULL));
  expect(tr_stream_define(stream, "t_station", station, TR_F32, NULL));
  expect(tr_stream_define(stream, "t", stations, TR_F32, NULL));
  expect(tr_stream_define(stream, "gravity", scalar, TR_F64, "time=none"));
}

static void put(tr_stream* stream, const char* field, const void* data, int type, int as_array) {
  const tr_index levels = LEVELS;
  const int has_levels = strcmp(field, "profile") == 0;
  if (as_array)
    expect(tr_stream_put_array(stream, field, data, type, has_levels, has_levels ? &levels : NULL, NULL));
  else
    expect(tr_stream_put(stream, field, data));
}

static void write_steps(tr_stream* stream, int first, int steps, const char* how) {
  const int alone = strcmp(how, "grib") == 0, as_array = strcmp(how, "array") == 0;
  const double gravity = rank == 0 ? 9.80665 : -1;
  define(stream, 0, alone);
  if (!alone) put(stream, "gravity", &gravity, TR_F64, as_array);
  for (int step = first; step < first + steps && failures == 0; ++step) {
    fill(step);
    expect(tr_stream_begin(stream, 3600 * step));
    put(stream, "energy", &energy, TR_F64, as_array);
    put(stream, "iterations", &iterations, TR_I32, as_array);
    if (!alone) {
      put(stream, "profile", profile, TR_F64, as_array);
      put(stream, "surface", surface, TR_F32, 0);
      put(stream, "t_station", &here, TR_F32, as_array);
      put(stream, "t", series, TR_F32, 0);
    }
    expect(tr_stream_end(stream));
  }
}

/* Each rank gets each number. */
static void read_steps(tr_stream* stream, int first, int steps) {
  double got_energy = 0, got_iterations = 0, got_gravity = 0, got_profile[LEVELS] = {0};
  float got_here = 0;
  tr_index extent = LEVELS;
  define(stream, 1, 0);
  for (int step = first; step < first + steps && failures == 0; ++step) {
    expect(tr_stream_begin(stream, 3600 * step));
    expect(tr_stream_get(stream, "energy", &got_energy));
    expect(tr_stream_get_array(stream, "iterations", &got_iterations, TR_F64, 0, NULL, NULL));
    expect(tr_stream_get_array(stream, "profile", got_profile, TR_F64, 1, &extent, NULL));
    expect(tr_stream_get(stream, "t_station", &got_here));
    expect(tr_stream_get(stream, "gravity", &got_gravity));
    expect(tr_stream_end(stream));
    const int profile_is_right =
        got_profile[0] == step && got_profile[1] == 10.0 + step && got_profile[2] == 20.0 + step;
    if (got_gravity != 9.80665 || got_energy != 1e9 / (3 + step) || got_iterations != 100 + step ||
        got_here != 280.5F + (float)step || !profile_is_right) {
      printf("rank %d, step %d: read %.17g %g %g, profile %g %g %g\n", rank, step, got_energy, got_iterations,
             (double)got_here, got_profile[0], got_profile[1], got_profile[2]);
      ++failures;
    }
  }
}

static void misuse(tr_stream* stream) {
  tr_layout* none = NULL;
  const double number = 1;
  tr_index untouched = 7;
  expect(tr_layout_dimensions(scalar, "x"));
  expect(tr_layout_axis(scalar, "x", TR_F64, 1, &number, NULL, NULL));
  expect(tr_layout_georeference(scalar, "gridType=regular_ll"));
  expect(tr_layout_block(0, NULL, NULL, &none));
  expect(tr_layout_replicated(-1, NULL, &none));
  expect(tr_stream_define(stream, "e", scalar, TR_F64, "level_axis=1"));
  expect(tr_stream_define(stream, "e", scalar, TR_F64, "chunks=2"));
  expect(tr_layout_bounds(scalar, 0, &untouched, &untouched));
  if (untouched != 7) tr_log("bounds of a scalar were written");
  expect(tr_layout_bounds(scalar, 1, NULL, NULL));
  expect(tr_layout_count(scalar, &untouched));
  if (untouched != (rank == 0)) tr_log("a scalar has another number of elements");
  /* Elsewhere it is an array of one element. */
  tr_file* const file = tr_fopen("others/number.bin", "w");
  if (tr_fwrite_array(&number, TR_F64, scalar, file) != 1) tr_log("a scalar was not written");
  tr_fclose(file);
  expect(tr_stream_define(stream, "e", scalar, TR_F64, NULL));
  expect(tr_stream_begin(stream, 0));
  untouched = 2;
  expect(tr_stream_put_array(stream, "e", &number, TR_F64, 1, &untouched, NULL));
  expect(tr_stream_end(stream));
}

static void run(char** arguments, const char* how) {
  const tr_index shape[2] = {NY, NX}, count = STATIONS;
  const double latitude = 47.5, longitude = 8.5;
  const int first = atoi(arguments[3]), steps = atoi(arguments[4]), reads = strcmp(how, "read") == 0;
  tr_stream* stream = NULL;
  expect(tr_layout_replicated(0, NULL, &scalar));
  expect(tr_layout_replicated(0, NULL, &station));
  expect(tr_layout_coordinates(station, &latitude, &longitude, 0, NULL, NULL));
  expect(tr_layout_block(2, shape, NULL, &cells));
  expect(tr_layout_block(1, &count, NULL, &stations));
  expect(tr_layout_dimensions(stations, "station"));
  expect(reads ? tr_stream_open(arguments[1], arguments[2], &stream)
               : tr_stream_create(arguments[1], arguments[2], &stream));
  if (stream == NULL) return;
  if (reads)
    read_steps(stream, first, steps);
  else if (strcmp(how, "misuse") == 0)
    misuse(stream);
  else
    write_steps(stream, first, steps, how);
  expect(tr_stream_close(&stream));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  expect(tr_init(MPI_COMM_WORLD, &compute, NULL));
  if (compute != MPI_COMM_NULL) {
    MPI_Comm_rank(compute, &rank);
    run(argv, argc > 5 ? argv[5] : "");
  }
  tr_layout** const all[] = {&scalar, &station, &cells, &stations};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) expect(tr_layout_free(all[i]));
  expect(tr_finalize());
  MPI_Finalize();
  return failures > 0;
}
