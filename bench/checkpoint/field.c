/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "field.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { columns = 2048 };

void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "bench: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void* warm_memory(size_t bytes) {
  const size_t huge_page = (size_t)2 << 20, size = (bytes + huge_page - 1) / huge_page * huge_page;
  void* const memory = aligned_alloc(huge_page, size);
  must(memory != NULL, "out of memory");
  madvise(memory, size, MADV_HUGEPAGE); /* the library's captures have them too */
  memset(memory, 1, size);
  return memory;
}

/* A wave with all its digits, like the fields of a model: the low bytes of neighbours have nothing in common.
 * */
static double value_at(tr_index row, tr_index column) {
  return 280 + 20 * sin(0.002 * (double)row) * cos(0.003 * (double)column);
}

struct field field_create(MPI_Comm comm, size_t bytes) {
  struct field f = {.comm = comm, .shape = {(tr_index)(bytes / (columns * sizeof(double))), columns}};
  MPI_Comm_rank(comm, &f.rank);
  MPI_Comm_size(comm, &f.ranks);
  must(tr_layout_block(2, f.shape, NULL, &f.layout) == TR_OK, tr_error());
  must(tr_layout_bounds(f.layout, 0, f.lower, f.upper) == TR_OK, tr_error());
  f.bytes = (size_t)((f.upper[0] - f.lower[0]) * (f.upper[1] - f.lower[1])) * sizeof(double);
  double* next = f.data = warm_memory(f.bytes);
  for (tr_index i = f.lower[0]; i < f.upper[0]; i++)
    for (tr_index j = f.lower[1]; j < f.upper[1]; j++) *next++ = value_at(i, j);
  return f;
}

int field_is_right(const struct field* f) {
  const double* next = f->data;
  for (tr_index i = f->lower[0]; i < f->upper[0]; i++)
    for (tr_index j = f->lower[1]; j < f->upper[1]; j++)
      if (*next++ != value_at(i, j)) return 0;
  return 1;
}

double longest(const struct field* f, double seconds) {
  double all = 0;
  MPI_Allreduce(&seconds, &all, 1, MPI_DOUBLE, MPI_MAX, f->comm);
  return all;
}

struct cost cost_now(void) {
  struct timespec thread;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &thread);
  return (struct cost){MPI_Wtime(), (double)thread.tv_sec + 1e-9 * (double)thread.tv_nsec};
}

struct cost longest_cost(const struct field* f, struct cost begin, struct cost end) {
  const double mine[] = {end.wall - begin.wall, end.thread - begin.thread};
  double all[2];
  MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, f->comm);
  return (struct cost){all[0], all[1]};
}
