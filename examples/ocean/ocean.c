/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes an ocean on a tripolar grid, with its mask, depth and areas of cells, to NAME.nc, and means over
 * three days to NAME_means.nc.
 *   mpirun -n 4 ocean [NAME.nc [DAYS]] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

#include "model.h"

static int failed(int code) {
  if (code != TR_OK) tr_log(tr_error());
  return code != TR_OK;
}

/* The places of this rank's points, and of the corners of their cells, anticlockwise. Arrays have a row of
 * the neighbours on each side, as those of the model. */
static int give_places(tr_layout* sea, int lower, int upper) {
  const size_t count = (size_t)(upper - lower + 2) * NX;
  double* const all = malloc(sizeof(double) * (2 + 2 * CORNERS) * count);
  double *lat = all, *lon = lat + count, *lats = lon + count, *lons = lats + CORNERS * count;
  for (size_t i = 0; i < count; ++i) {
    const int y = lower - 1 + (int)(i / NX), x = (int)(i % NX);
    ocean_place(y, x, lat + i, lon + i);
    ocean_corners(y, x, lats + CORNERS * i, lons + CORNERS * i);
  }
  const int given = tr_layout_coordinates(sea, lat, lon, CORNERS, lats, lons);
  free(all);
  return failed(given);
}

/* What does not change is defined with time=none and put once. Each file has it. */
static int put_fields_without_time(tr_stream* out, const tr_layout* sea, int lower, int upper) {
  const size_t count = (size_t)(upper - lower + 2) * NX;
  int8_t* const mask = malloc(count);
  float* const depth = malloc(sizeof(float) * count);
  double* const area = malloc(sizeof(double) * count);
  for (size_t i = 0; i < count; ++i) {
    const int y = lower - 1 + (int)(i / NX), x = (int)(i % NX);
    depth[i] = ocean_depth(y, x), area[i] = ocean_area(y, x);
    mask[i] = depth[i] > 0;
  }
  const int wrong =
      failed(tr_stream_define(out, "mask", sea, TR_I8,
                              "time=none standard_name=sea_binary_mask attributes=\"flag_values='0,1', "
                              "flag_meanings='land sea'\"")) ||
      failed(tr_stream_define(out, "deptho", sea, TR_F32,
                              "time=none standard_name=sea_floor_depth_below_geoid units=m "
                              "attributes=\"cell_measures='area: areacello'\"")) ||
      failed(tr_stream_define(out, "areacello", sea, TR_F64, "time=none standard_name=cell_area units=m2")) ||
      failed(tr_stream_put(out, "mask", mask)) || failed(tr_stream_put(out, "deptho", depth)) ||
      failed(tr_stream_put(out, "areacello", area));
  free(mask);
  free(depth);
  free(area);
  return wrong;
}

/* Gets the rows beside those that belong here. */
static void exchange(const ocean* o, MPI_Comm compute) {
  int rank, ranks;
  MPI_Comm_rank(compute, &rank);
  MPI_Comm_size(compute, &ranks);
  const int below = rank > 0 ? rank - 1 : MPI_PROC_NULL, above = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  for (int k = 0; k < NZ; ++k) {
    MPI_Sendrecv(ocean_row(o, k, o->upper - 1), NX, MPI_FLOAT, above, 0, ocean_row(o, k, o->lower - 1), NX,
                 MPI_FLOAT, below, 0, compute, MPI_STATUS_IGNORE);
    MPI_Sendrecv(ocean_row(o, k, o->lower), NX, MPI_FLOAT, below, 1, ocean_row(o, k, o->upper), NX, MPI_FLOAT,
                 above, 1, compute, MPI_STATUS_IGNORE);
  }
}

static int define_fields(tr_stream* out, const tr_layout* sea) {
  return failed(tr_stream_define(out, "zos", sea, TR_F32,
                                 "missing=-999 standard_name=sea_surface_height_above_geoid units=m "
                                 "attributes=\"cell_measures='area: areacello'\"")) ||
         failed(tr_stream_define(out, "thetao", sea, TR_F32,
                                 "levels=depth:5,15,30 missing=-999 "
                                 "standard_name=sea_water_potential_temperature units=degC "
                                 "attributes=\"cell_measures='area: areacello'\""));
}

/* The file of means. The areas are in the other file. */
static int create_means(const char* file, const tr_layout* sea, tr_stream** means) {
  char name[500];
  snprintf(name, sizeof name, "%.*s_means.nc", (int)strlen(file) - 3, file);
  return failed(tr_stream_create(name,
                                 "format=cdf5 base=2026-01-01 calendar=noleap lead_unit=d interval=3d "
                                 "attributes=\"title='Warm water in all seas, means', "
                                 "external_variables=areacello\"",
                                 means)) ||
         failed(tr_stream_define(*means, "tos", sea, TR_F32,
                                 "operation=mean missing=-999 "
                                 "standard_name=sea_surface_temperature units=degC "
                                 "attributes=\"cell_measures='area: areacello'\""));
}

static int run(MPI_Comm compute, const char* file, int days) {
  const tr_index shape[2] = {NY, NX}, halo[2] = {1, 0};
  int along_y[2] = {0, 1};
  tr_layout* sea = NULL;
  tr_stream *out = NULL, *means = NULL;
  tr_index lower[2], upper[2];
  MPI_Comm_size(compute, &along_y[0]);
  if (failed(tr_layout_block_grid(2, shape, halo, along_y, &sea)) ||
      failed(tr_layout_dimensions(sea, "y,x")) || failed(tr_layout_bounds(sea, 0, lower, upper)))
    return 1;
  const int first = (int)lower[0], behind = (int)upper[0];
  if (give_places(sea, first, behind) ||
      failed(tr_stream_create(file,
                              "format=cdf5 base=2026-01-01 calendar=noleap lead_unit=d "
                              "attributes=\"title='Warm water in all seas'\"",
                              &out)) ||
      put_fields_without_time(out, sea, first, behind) || define_fields(out, sea) ||
      create_means(file, sea, &means))
    return 1;
  ocean o;
  float* const surface = malloc(sizeof(float) * (size_t)(behind - first + 2) * NX);
  ocean_begin(&o, first, behind);
  for (int day = 0; day <= days; ++day) {
    for (int y = first; y < behind; ++y)
      for (int x = 0; x < NX; ++x) surface[(y - first + 1) * NX + x] = ocean_surface(&o, y, x);
    tr_stream_begin(out, day);
    tr_stream_put(out, "zos", surface);
    tr_stream_put(out, "thetao", o.warmth); /* the model's own array, with the rows of the neighbours */
    if (failed(tr_stream_end(out))) return 1;
    tr_stream_begin(means, day);
    tr_stream_put(means, "tos", o.warmth); /* the uppermost level is the first part of the array */
    if (failed(tr_stream_end(means))) return 1;
    exchange(&o, compute);
    ocean_step(&o);
  }
  ocean_end(&o);
  free(surface);
  return failed(tr_stream_close(&out)) || failed(tr_stream_close(&means)) || failed(tr_layout_free(&sea));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  int ended = 0;
  MPI_Init(&argc, &argv);
  if (failed(tr_init(MPI_COMM_WORLD, &compute, NULL))) MPI_Abort(MPI_COMM_WORLD, 1);
  if (compute != MPI_COMM_NULL)
    ended = run(compute, argc > 1 ? argv[1] : "ocean.nc", argc > 2 ? atoi(argv[2]) : 30);
  if (failed(tr_finalize())) ended = 1;
  MPI_Finalize();
  return ended;
}
