/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The library: collective files in the mode that BENCH_MODE names ("p", "", "ps"; default p). */
#include <stdlib.h>
#include <string.h>
#include <tailrace.h>

#include "contender.h"

static tr_layout* layout;
static char write_mode[8] = "w", read_mode[8] = "r";

static void check(int ok) { must(ok, tr_error()); }

static void start(const struct block* b) {
  MPI_Comm compute;
  const char* letters = getenv("BENCH_MODE") ? getenv("BENCH_MODE") : "p";
  strncat(write_mode, letters, 4);
  strncat(read_mode, letters, 4);
  check(tr_init(b->comm, &compute, NULL) == TR_OK);
  const tr_index shape[] = {b->shape[0], b->shape[1]}, lower[] = {b->lower[0], b->lower[1]};
  const tr_index upper[] = {b->lower[0] + b->count[0], b->lower[1] + b->count[1]};
  check(tr_layout_box(2, shape, NULL, lower, upper, &layout) == TR_OK);
}

static void stop(void) {
  check(tr_layout_free(&layout) == TR_OK);
  check(tr_finalize() == TR_OK);
}

static void write_arrays(const char* path, const struct block* b, int arrays, int sync) {
  tr_file* file = tr_fopen(path, write_mode);
  check(file != NULL);
  const size_t all = (size_t)(b->shape[0] * b->shape[1]);
  for (int i = 0; i < arrays; i++) check(tr_fwrite_array(b->data, TR_F64, layout, file) == all);
  if (sync) check(tr_fflush_durable(file) == 0);
  check(tr_fclose(file) == 0);
}

static void read_array(const char* path, const struct block* b) {
  tr_file* file = tr_fopen(path, read_mode);
  check(file != NULL);
  check(tr_fread_array(b->data, TR_F64, layout, file) == (size_t)(b->shape[0] * b->shape[1]));
  check(tr_fclose(file) == 0);
}

const struct contender contender = {"tailrace", 1, start, stop, write_arrays, read_array};
