// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Writes the same fields on several grids and types of levels, in each format whose ending is given:
//   grids DIRECTORY ENDING...
// The Python package must tell the same places of the points from GRIB as the library writes into NetCDF.
// GRIB files have cfgrib's index, and there are two more with steps of 20 minutes: "ensemble" on a Gaussian
// grid and "reduced" on a reduced one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

enum { NY = 6, NX = 8, LEVELS = 3 };

static const char* const grids[][2] = {
    {"rotated",
     "gridType=rotated_ll, latitudeOfFirstGridPointInDegrees=-20, longitudeOfFirstGridPointInDegrees=-3, "
     "latitudeOfLastGridPointInDegrees=-15, longitudeOfLastGridPointInDegrees=4, "
     "latitudeOfSouthernPoleInDegrees=-30, longitudeOfSouthernPoleInDegrees=10, jScansPositively=1"},
    {"lambert",
     "gridType=lambert, Nx=8, Ny=6, latitudeOfFirstGridPointInDegrees=40, "
     "longitudeOfFirstGridPointInDegrees=350, "
     "LoVInDegrees=10, LaDInDegrees=50, Latin1InDegrees=50, Latin2InDegrees=50, DxInMetres=5000, "
     "DyInMetres=5000, "
     "jScansPositively=1"},
    {"polar",
     "gridType=polar_stereographic, Nx=8, Ny=6, latitudeOfFirstGridPointInDegrees=40, "
     "longitudeOfFirstGridPointInDegrees=350, LoV=10000000, LaD=60000000, DxInMetres=5000, DyInMetres=5000, "
     "jScansPositively=1"},
    {"northward",
     "gridType=regular_ll, jScansPositively=1, latitudeOfFirstGridPointInDegrees=-10, "
     "longitudeOfFirstGridPointInDegrees=0, iDirectionIncrementInDegrees=1, jDirectionIncrementInDegrees=1"},
    {"unstructured", "gridType=unstructured_grid"}};

static int failed(const char* what, int code) {
  if (code != TR_OK) fprintf(stderr, "grids: %s: %s\n", what, tr_error());
  return code != TR_OK;
}

static int write_on(const char* directory, const char* name, const char* keys, const char* ending) {
  const int flat = strcmp(name, "unstructured") == 0;
  const tr_index shape[] = {NY, NX}, cells[] = {NY * NX};
  static float values[LEVELS * NY * NX];
  char pattern[4096], georeference[1024];
  tr_layout* grid = NULL;
  tr_stream* out = NULL;
  snprintf(pattern, sizeof pattern, "%s/%s.%s", directory, name, ending);
  snprintf(georeference, sizeof georeference, "keys='%s'", keys);
  if (failed("layout", tr_layout_block(flat ? 1 : 2, flat ? cells : shape, NULL, &grid)) ||
      failed(name, tr_layout_georeference(grid, georeference)) ||
      failed(pattern, tr_stream_create(pattern,
                                       strcmp(ending, "grib2") == 0
                                           ? "base=2026-03-01T00:00Z member=3 index=cfgrib"
                                           : "base=2026-03-01T00:00Z member=3 conventions=weather",
                                       &out)) ||
      failed("u", tr_stream_define(out, "u", grid, TR_F32,
                                   "levels=hybrid:1-3 coefficients=0,100,200,0,0,0.2,0.5,1 accuracy=0.01")) ||
      failed("sp", tr_stream_define(out, "sp", grid, TR_F32, "accuracy=1 missing=-1")) ||
      failed("2t", tr_stream_define(out, "2t", grid, TR_F64, "levels=height:2 accuracy=0.01")) ||
      failed("tp", tr_stream_define(out, "tp", grid, TR_F32, "statistic=accum since=start accuracy=0.01")) ||
      failed("skt", tr_stream_define(out, "skt", grid, TR_F32, "statistic=average since=last accuracy=0.01")))
    return 1;
  for (int hour = 1; hour <= 2; hour++) {
    static double height[NY * NX];
    tr_stream_begin(out, hour * 3600);
    for (int n = 0; n < LEVELS * NY * NX; n++) values[n] = 0.5f * (float)n + (float)hour;
    tr_stream_put(out, "u", values);
    for (int n = 0; n < NY * NX; n++) height[n] = 270 + 0.25 * n;
    tr_stream_put(out, "2t", height);
    static float sp[NY * NX], tp[NY * NX];
    for (int n = 0; n < NY * NX; n++) {
      sp[n] = n % 5 == 0 ? -1 : 100000 + (float)n;
      tp[n] = (float)(hour * n);
    }
    tr_stream_put(out, "sp", sp);
    if (hour == 2) tr_stream_put(out, "tp", tp);
    tr_stream_put(out, "skt", tp);
    if (failed("end", tr_stream_end(out))) return 1;
  }
  return failed("close", tr_stream_close(&out)) || failed("free", tr_layout_free(&grid));
}

/// Writes each kind of statistic and level in steps that are not whole hours.
static int write_minutes(const char* directory, const char* name, const char* keys, const char* options,
                         int rank, const tr_index* shape) {
  static const char* const fields[][2] = {{"t", "levels=pressure:1000,500"},
                                          {"z", "levels=isobaricInPa:50,10"},
                                          {"2t", "levels=height:2 statistic=minimum since=last"},
                                          {"sot", "levels=depthBelowLand:0.07,0.28"},
                                          {"msl", "levels=msl"},
                                          {"tcc", "levels=entireAtmosphere"},
                                          {"pt", "levels=theta:315"},
                                          {"u", "levels=heightAboveSea:1000"},
                                          {"v", "levels=model:1-2"},
                                          {"tp", "levels=surface statistic=accum"},
                                          {"sf", "levels=surface statistic=accum since=last"},
                                          {"skt", "levels=surface statistic=average since=1h"},
                                          {"10si", "levels=height:10 statistic=average since=40min"}};
  enum { FIELDS = sizeof fields / sizeof *fields };
  static float values[2 * 128];
  char pattern[4096], georeference[1024];
  tr_layout* grid = NULL;
  tr_stream* out = NULL;
  snprintf(pattern, sizeof pattern, "%s/%s.grib2", directory, name);
  snprintf(georeference, sizeof georeference, "keys='%s'", keys);
  if (failed("layout", tr_layout_block(rank, shape, NULL, &grid)) ||
      failed(name, tr_layout_georeference(grid, georeference)) ||
      failed(pattern, tr_stream_create(pattern, options, &out)))
    return 1;
  for (int i = 0; i < FIELDS; i++)
    if (failed(fields[i][0], tr_stream_define(out, fields[i][0], grid, TR_F32, fields[i][1]))) return 1;
  for (int step = 0; step <= 4; step++) {
    tr_stream_begin(out, step * 1200);
    for (int n = 0; n < 2 * 128; n++) values[n] = 200 + 0.25f * (float)(n + step);
    for (int i = 0; i < FIELDS; i++) tr_stream_put(out, fields[i][0], values);
    if (failed("end", tr_stream_end(out))) return 1;
  }
  return failed("close", tr_stream_close(&out)) || failed("free", tr_layout_free(&grid));
}

int main(int argc, char** argv) {
  const tr_index gaussian[] = {8, 16}, reduced[] = {24};
  MPI_Comm compute;
  MPI_Init(&argc, &argv);
  int bad = failed("init", tr_init(MPI_COMM_WORLD, &compute, NULL));
  for (int ending = 2; ending < argc && !bad; ending++) {
    for (size_t i = 0; i < sizeof grids / sizeof *grids && !bad; i++)
      bad = write_on(argv[1], grids[i][0], grids[i][1], argv[ending]);
    if (strcmp(argv[ending], "grib2") != 0 || bad) continue;
    bad = write_minutes(argv[1], "ensemble", "gridType=regular_gg, N=4",
                        "base=2026-03-01T06:30Z index=cfgrib centre=98 member=7 members=51", 2, gaussian) ||
          write_minutes(argv[1], "reduced", "gridType=reduced_gg, N=2, pl=\"4,8,8,4\"",
                        "base=2026-12-31T23:45Z index=cfgrib", 1, reduced);
  }
  bad = failed("finalize", tr_finalize()) || bad;
  return MPI_Finalize() || bad;
}
