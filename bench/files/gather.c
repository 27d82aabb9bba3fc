/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Programs do this by hand: rank 0 gathers the array and calls fwrite. */
#include <stdio.h>
#include <stdlib.h>

#include "contender.h"

static double* whole;
static MPI_Datatype* parts; /* of each rank, on rank 0 */

static void start(const struct block* b) {
  long mine[4] = {b->lower[0], b->lower[1], b->count[0], b->count[1]};
  long* all = calloc((size_t)b->ranks, sizeof mine);
  MPI_Gather(mine, 4, MPI_LONG, all, 4, MPI_LONG, 0, b->comm);
  if (b->rank == 0) {
    whole = malloc((size_t)(b->shape[0] * b->shape[1]) * sizeof *whole);
    parts = calloc((size_t)b->ranks, sizeof *parts);
    must(whole != NULL && parts != NULL, "out of memory");
    for (int r = 0; r < b->ranks; r++) {
      struct block theirs = *b;
      for (int d = 0; d < 2; d++) theirs.lower[d] = all[4 * r + d], theirs.count[d] = all[4 * r + 2 + d];
      parts[r] = part_of_whole(&theirs);
    }
  }
  free(all);
}

static void gather(const struct block* b) {
  MPI_Request sent;
  MPI_Isend(b->data, (int)(b->count[0] * b->count[1]), MPI_DOUBLE, 0, 0, b->comm, &sent);
  for (int r = 0; b->rank == 0 && r < b->ranks; r++)
    MPI_Recv(whole, 1, parts[r], r, 0, b->comm, MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static void write_arrays(const char* path, const struct block* b, int arrays, int sync) {
  FILE* file = b->rank == 0 ? fopen(path, "w") : NULL;
  const size_t all = (size_t)(b->shape[0] * b->shape[1]);
  must(b->rank != 0 || file != NULL, "fopen");
  for (int i = 0; i < arrays; i++) {
    gather(b);
    if (file) must(fwrite(whole, sizeof *whole, all, file) == all, "fwrite");
  }
  if (file) must(fclose(file) == 0, "fclose");
  if (sync) sync_file(path, b);
}

const struct contender contender = {"gather", 1, start, NULL, write_arrays, NULL};
