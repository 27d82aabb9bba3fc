/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The array of float64 that is saved and loaded, in blocks over the ranks; memory that was touched before. */
#ifndef BENCH_FIELD_H
#define BENCH_FIELD_H

#include <tailrace.h>

struct field {
  MPI_Comm comm;
  int rank, ranks;
  tr_layout* layout;
  tr_index shape[2], lower[2], upper[2];
  size_t bytes; /* of this rank's block */
  double* data;
};

/* Ends all ranks with the text of what went wrong, unless `ok`. */
void must(int ok, const char* what);
/* Returns memory in huge pages if there are any, all of it touched. */
void* warm_memory(size_t bytes);
/* Collective. Makes an array of about `bytes` in all, smooth. */
struct field field_create(MPI_Comm comm, size_t bytes);
/* Local. Returns true if the block holds the values of field_create. */
int field_is_right(const struct field* field);
/* Collective. Returns the longest of all ranks. */
double longest(const struct field* field, double seconds);

/* Seconds by the clock, and seconds of the calling thread alone, which count if ranks share cores. */
struct cost {
  double wall, thread;
};
/* Local. Returns the cost since some moment. */
struct cost cost_now(void);
/* Collective. Returns the cost from `begin` to `end`, each the longest of all ranks. */
struct cost longest_cost(const struct field* field, struct cost begin, struct cost end);

#endif
