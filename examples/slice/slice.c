/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes a slice (z, x) on a staggered grid, in seconds of simulated time, to slice.nc.
 *   mpirun -n 4 slice [FILE [STEPS]]
 * If FILE ends in .yaml, it is a description that says which files have which fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

#include "model.h"

static int failed(int code) {
  if (code != TR_OK) tr_log(tr_error());
  return code != TR_OK;
}

/* Columns of cells, and the faces between them, which are one more. */
static int make_layouts(MPI_Comm compute, tr_layout** cells, tr_layout** faces) {
  const tr_index shape[2] = {NZ, NX}, wider[2] = {NZ, NX + 1};
  int along_x[2] = {1, 0};
  MPI_Comm_size(compute, &along_x[1]);
  double x[NX], edges[2 * NX], z[NZ], xu[NX + 1];
  for (int i = 0; i < NX; ++i) x[i] = (i + 0.5) * DX, edges[2 * i] = i * DX, edges[2 * i + 1] = (i + 1) * DX;
  for (int i = 0; i <= NX; ++i) xu[i] = i * DX;
  for (int k = 0; k < NZ; ++k) z[k] = (k + 0.5) * DZ;
  if (failed(tr_layout_block_grid(2, shape, NULL, along_x, cells))) return 1;
  if (failed(tr_layout_block_grid(2, wider, NULL, along_x, faces))) return 1;
  return failed(tr_layout_dimensions(*cells, "z,x")) || failed(tr_layout_dimensions(*faces, "z,xu")) ||
         failed(tr_layout_axis(*cells, "z", TR_F64, NZ, z, NULL, "units=m axis=Z positive=up")) ||
         failed(tr_layout_axis(*cells, "x", TR_F64, NX, x, edges, "units=m axis=X")) ||
         failed(tr_layout_axis(*faces, "xu", TR_F64, NX + 1, xu, NULL, "units=m axis=X"));
}

/* Gets the column to the left of this rank's first. The slice is periodic. */
static void exchange(const slice* s, MPI_Comm compute, double* left) {
  int rank, ranks;
  double last[NZ];
  MPI_Comm_rank(compute, &rank);
  MPI_Comm_size(compute, &ranks);
  slice_column(s, s->upper - 1, last);
  MPI_Sendrecv(last, NZ, MPI_DOUBLE, (rank + 1) % ranks, 0, left, NZ, MPI_DOUBLE, (rank + ranks - 1) % ranks,
               0, compute, MPI_STATUS_IGNORE);
}

static int open_output(const char* file, tr_stream** out) {
  const char* const ending = strrchr(file, '.');
  if (ending != NULL && strcmp(ending, ".yaml") == 0)
    return failed(tr_streams_configure(file, "time=model", out));
  return failed(tr_stream_create(
      file, "time=model format=cdf5 attributes=\"title='Warm air in a sheared wind'\"", out));
}

static int run(MPI_Comm compute, const char* file, int steps) {
  tr_layout *cells = NULL, *faces = NULL;
  tr_stream* out = NULL;
  tr_index lower[2], upper[2], first[2], behind[2];
  if (make_layouts(compute, &cells, &faces)) return 1;
  if (open_output(file, &out)) return 1;
  if (failed(tr_stream_define(out, "theta", cells, TR_F64, "units=K")) ||
      failed(tr_stream_define(out, "u", faces, TR_F64, "units='m s-1'")))
    return 1;
  if (failed(tr_layout_bounds(cells, 0, lower, upper)) || failed(tr_layout_bounds(faces, 0, first, behind)))
    return 1;

  slice s;
  const tr_index width = behind[1] - first[1];
  double left[NZ], *u = malloc(sizeof(double) * NZ * (size_t)(width > 0 ? width : 1));
  slice_begin(&s, (int)lower[1], (int)upper[1]);
  for (tr_index k = 0; k < NZ; ++k)
    for (tr_index i = 0; i < width; ++i) u[k * width + i] = slice_wind((int)k);
  for (int step = 0; step <= steps; ++step) {
    if (step % STEPS_APART == 0) {
      tr_stream_begin_at(out, s.time); /* 0, 0.5, 1, and 1.4999999999999998: the file holds the very double */
      tr_stream_put(out, "theta", s.theta);
      tr_stream_put(out, "u", u);
      if (failed(tr_stream_end(out))) return 1;
    }
    exchange(&s, compute, left);
    slice_step(&s, left);
  }
  slice_end(&s);
  free(u);
  return failed(tr_stream_close(&out)) || failed(tr_layout_free(&cells)) || failed(tr_layout_free(&faces));
}

int main(int argc, char** argv) {
  MPI_Comm compute;
  int ended = 0;
  MPI_Init(&argc, &argv);
  if (failed(tr_init(MPI_COMM_WORLD, &compute, NULL))) MPI_Abort(MPI_COMM_WORLD, 1);
  if (compute != MPI_COMM_NULL)
    ended = run(compute, argc > 1 ? argv[1] : "slice.nc", argc > 2 ? atoi(argv[2]) : 60);
  if (failed(tr_finalize())) ended = 1;
  MPI_Finalize();
  return ended;
}
