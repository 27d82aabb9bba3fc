/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Writes one raw field of 10 x 12 values, 100 * row + column, into the directory given. */
#include <stdio.h>
#include <tailrace.h>

#define OK(call)                            \
  do {                                      \
    if ((call) != TR_OK) return tr_error(); \
  } while (0)

static const char* write_field(const char* directory) {
  tr_layout* grid;
  tr_stream* out;
  tr_index lower[2], upper[2];
  float field[10 * 12];
  char pattern[4096];
  int n = 0;
  OK(tr_layout_block(2, (tr_index[]){10, 12}, NULL, &grid));
  OK(tr_layout_bounds(grid, 0, lower, upper));
  for (tr_index row = lower[0]; row < upper[0]; row++)
    for (tr_index column = lower[1]; column < upper[1]; column++)
      field[n++] = 100.0f * (float)row + (float)column;
  snprintf(pattern, sizeof pattern, "%s/field.raw", directory);
  OK(tr_stream_create(pattern, "format=raw base=2026-03-01T00:00Z", &out));
  OK(tr_stream_define(out, "t", grid, TR_F32, NULL));
  tr_stream_begin(out, 0);
  tr_stream_put(out, "t", field);
  OK(tr_stream_end(out));
  OK(tr_stream_close(&out));
  OK(tr_layout_free(&grid));
  return NULL;
}

int main(int argc, char** argv) {
  MPI_Comm model;
  const char* why = NULL;
  MPI_Init(&argc, &argv);
  if (tr_init(MPI_COMM_WORLD, &model, NULL) != TR_OK)
    why = tr_error();
  else if (model != MPI_COMM_NULL)
    why = write_field(argv[1]);
  if (why) fprintf(stderr, "%s\n", why);
  if (tr_finalize() != TR_OK && !why) fprintf(stderr, "%s\n", why = tr_error());
  MPI_Finalize();
  return why != NULL;
}
