/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A model whose grid has coordinates that no keys describe.
 *   coordinates PATTERN OPTIONS KIND NY NX CORNERS SHIFT FIRST LAST [BAD]
 * KIND: curvilinear (blocks with a halo, and the same points on an indexed layout), cells (indexed layout of
 * NY * NX cells), replicated, unsaid (replicated, and bounds also without a number of corners) or huge (so
 * many cells that their coordinates have more than 2^63 bytes). SHIFT is added to all longitudes. FIRST and
 * LAST are the hours of the first and last step. BAD is the global index of a point whose latitude is 91. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

static int failures = 0, unsaid = 0;
static tr_index ny, nx, corners, bad = -1;
static double shift;

static void expect(int code) {
  if (code == TR_OK) return;
  ++failures;
  tr_log(tr_error());
}

static double latitude(tr_index point) {
  if (point == bad) return 91;
  return -60 + 120.0 * (double)(point / nx) / (double)ny + 0.5 * sin(0.1 * (double)(point % nx));
}
static double longitude(tr_index point) {
  return shift - 170 + 340.0 * (double)(point % nx) / (double)nx + 0.001 * (double)(point / nx);
}
static double corner_latitude(tr_index point, tr_index k) {
  return latitude(point) + (k == 0 || k == 1 ? -0.25 : 0.25);
}
static double corner_longitude(tr_index point, tr_index k) {
  return longitude(point) + (k == 1 || k == 2 ? 0.25 : -0.25);
}

/* This rank's arrays: for each element of its memory the global point, or -1 in a halo. */
typedef struct part {
  tr_layout* layout;
  tr_index count, *points;
} part;

static void set_coordinates(const part* mine) {
  const size_t n = (size_t)(mine->count > 0 ? mine->count : 1),
               wide = n * (size_t)(corners > 0 ? corners : 1);
  double *lat = malloc(n * 8), *lon = malloc(n * 8), *lat_b = malloc(wide * 8), *lon_b = malloc(wide * 8);
  for (tr_index i = 0; i < mine->count; ++i) {
    const tr_index point = mine->points[i];
    lat[i] = point < 0 ? NAN : latitude(point); /* the library never reads a halo */
    lon[i] = point < 0 ? NAN : longitude(point);
    for (tr_index k = 0; k < corners; ++k) {
      lat_b[i * corners + k] = point < 0 ? NAN : corner_latitude(point, k);
      lon_b[i * corners + k] = point < 0 ? NAN : corner_longitude(point, k);
    }
  }
  const int bounds = corners > 0 || unsaid;
  expect(tr_layout_coordinates(mine->layout, lat, lon, (int)corners, bounds ? lat_b : NULL,
                               bounds ? lon_b : NULL));
  for (size_t i = 0; i < n; ++i) lat[i] = lon[i] = 1e9; /* the arrays may change */
  free(lat), free(lon), free(lat_b), free(lon_b);
}

static part curvilinear(void) {
  part made = {NULL, 0, NULL};
  const tr_index shape[] = {ny, nx}, halo[] = {1, 2};
  tr_index lower[2], upper[2];
  expect(tr_layout_block(2, shape, halo, &made.layout));
  if (made.layout == NULL) return made;
  expect(tr_layout_bounds(made.layout, 1, lower, upper));
  made.points = malloc((size_t)((upper[0] - lower[0]) * (upper[1] - lower[1])) * sizeof(tr_index));
  for (tr_index j = lower[0]; j < upper[0]; ++j)
    for (tr_index i = lower[1]; i < upper[1]; ++i) {
      const int own = j >= lower[0] + 1 && j < upper[0] - 1 && i >= lower[1] + 2 && i < upper[1] - 2;
      made.points[made.count++] = own ? j * nx + i : -1;
    }
  return made;
}

/* Deals the elements out one by one, in descending order, so that neighbours belong to different ranks. */
static part scattered(int ndims, MPI_Comm model) {
  part made = {NULL, 0, malloc((size_t)(ny * nx) * sizeof(tr_index))};
  const tr_index shape[] = {ndims == 1 ? ny * nx : ny, nx};
  int rank, ranks;
  MPI_Comm_rank(model, &rank);
  MPI_Comm_size(model, &ranks);
  for (tr_index point = ny * nx - 1; point >= 0; --point)
    if (point % ranks == rank) made.points[made.count++] = point;
  expect(tr_layout_indexed(ndims, shape, made.count, made.points, 0, &made.layout));
  return made;
}

static part whole(void) {
  part made = {NULL, ny * nx, malloc((size_t)(ny * nx) * sizeof(tr_index))};
  const tr_index shape[] = {ny, nx};
  for (tr_index point = 0; point < made.count; ++point) made.points[point] = point;
  expect(tr_layout_replicated(2, shape, &made.layout));
  return made;
}

static void huge(void) {
  const tr_index shape[] = {(tr_index)1 << 60};
  const double place = 0; /* the library refuses the call, and never reads this */
  tr_layout* layout = NULL;
  expect(tr_layout_block(1, shape, NULL, &layout));
  expect(tr_layout_coordinates(layout, &place, &place, 0, NULL, NULL));
  expect(tr_layout_free(&layout));
}

static void run(char** arguments, MPI_Comm model) {
  char options[1024];
  tr_stream* stream = NULL;
  if (strcmp(arguments[3], "huge") == 0) {
    huge();
    return;
  }
  unsaid = strcmp(arguments[3], "unsaid") == 0;
  const int cells = strcmp(arguments[3], "cells") == 0, blocks = strcmp(arguments[3], "curvilinear") == 0;
  part first = cells ? scattered(1, model) : blocks ? curvilinear() : whole();
  part second = blocks ? scattered(2, model) : first;
  if (first.layout == NULL || second.layout == NULL) return;
  set_coordinates(&first);
  if (blocks) set_coordinates(&second);
  if (failures > 0) return;
  snprintf(options, sizeof options, "base=2026-03-01T00:00Z %s", arguments[2]);
  expect(tr_stream_create(arguments[1], options, &stream));
  if (stream == NULL) return;
  expect(tr_stream_define(stream, "thetao", first.layout, TR_F32, "levels=depth:5,15 missing=-999"));
  expect(tr_stream_define(stream, "zos", second.layout, TR_F32, ""));
  expect(tr_layout_free(&first.layout));
  if (blocks) expect(tr_layout_free(&second.layout));
  for (tr_index hour = atoi(arguments[8]); hour <= atoi(arguments[9]) && failures == 0; ++hour) {
    float* t = malloc((size_t)(first.count > 0 ? first.count : 1) * 2 * sizeof(float));
    float* z = malloc((size_t)(second.count > 0 ? second.count : 1) * sizeof(float));
    for (tr_index i = 0; i < 2 * first.count; ++i)
      t[i] = (float)(first.points[i % first.count] + 100 * (i / first.count) + 1000 * hour);
    for (tr_index i = 0; i < second.count; ++i) z[i] = (float)(second.points[i] + 1000 * hour);
    tr_stream_begin(stream, 3600 * hour);
    tr_stream_put(stream, "thetao", t);
    tr_stream_put(stream, "zos", z);
    expect(tr_stream_end(stream));
    free(t), free(z);
  }
  expect(tr_stream_close(&stream));
}

int main(int argc, char** argv) {
  MPI_Comm model;
  MPI_Init(&argc, &argv);
  ny = atoll(argv[4]), nx = atoll(argv[5]), corners = atoll(argv[6]), shift = atof(argv[7]);
  if (argc > 10) bad = atoll(argv[10]);
  if (tr_init(MPI_COMM_WORLD, &model, NULL) != TR_OK)
    ++failures, tr_log(tr_error());
  else if (model != MPI_COMM_NULL)
    run(argv, model);
  if (tr_finalize() != TR_OK) ++failures;
  MPI_Finalize();
  return failures > 0;
}
