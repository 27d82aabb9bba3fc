/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* This rank's block of the grid with a halo of one point, and the iteration on it. */
#ifndef JACOBI_GRID_H
#define JACOBI_GRID_H

#include <tailrace.h>

struct grid {
  MPI_Comm comm;
  int rank, ranks;
  int cut[2];                /* ranks along each dimension */
  int up, down, left, right; /* neighbours, or MPI_PROC_NULL */
  tr_layout* layout;
  tr_index size, lower[2], upper[2]; /* the block in global indices, without halo */
  tr_index rows, columns, pitch;     /* of the block; of a row with its halo */
  double *a, *b;                     /* the iterate before and the new one, halo included */
  MPI_Datatype column;
};

/* Collective. Cuts size x size points into blocks, as square as the ranks allow, and sets the first iterate.
 * Returns 0, or a text that says why not. */
const char* grid_create(struct grid* grid, MPI_Comm comm, tr_index size);
void grid_free(struct grid* grid);
/* Collective. One iteration; returns the largest change, the same on every rank. */
double grid_iterate(struct grid* grid);
/* Local. Copies this rank's part of b into `room`, of `points` points, from its beginning again when it is
 * full. */
void grid_copy(const struct grid* grid, double* room, tr_index points);

#endif
