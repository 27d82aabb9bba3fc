/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "grid.h"

#include <stdlib.h>
#include <string.h>

/* Returns the element of row i and column j of this rank's block; -1 and rows or columns are halo. */
static tr_index at(const struct grid* g, tr_index i, tr_index j) { return (i + 1) * g->pitch + j + 1; }

/* Bounds of the points that change, in indices of the block: the rim of the whole grid stays. */
static tr_index first(const struct grid* g, int d) { return g->lower[d] == 0 ? 1 : 0; }
static tr_index last(const struct grid* g, int d) {
  const tr_index length = g->upper[d] - g->lower[d];
  return g->upper[d] == g->size ? length - 1 : length;
}

static const char* decompose(struct grid* g) {
  const int periods[2] = {0, 0};
  MPI_Comm cartesian;
  MPI_Comm_rank(g->comm, &g->rank);
  MPI_Comm_size(g->comm, &g->ranks);
  g->cut[0] = g->cut[1] = 0;
  MPI_Dims_create(g->ranks, 2, g->cut);
  if (g->size < 2 * g->cut[0]) return "--size: at least two points for each rank and dimension";
  MPI_Cart_create(g->comm, 2, g->cut, periods, 0, &cartesian);
  MPI_Cart_shift(cartesian, 0, 1, &g->up, &g->down);
  MPI_Cart_shift(cartesian, 1, 1, &g->left, &g->right);
  MPI_Comm_free(&cartesian);
  if (tr_layout_block_grid(2, (tr_index[]){g->size, g->size}, (tr_index[]){1, 1}, g->cut, &g->layout) ||
      tr_layout_bounds(g->layout, 0, g->lower, g->upper))
    return tr_error();
  return NULL;
}

const char* grid_create(struct grid* g, MPI_Comm comm, tr_index size) {
  *g = (struct grid){.comm = comm, .size = size};
  const char* problem = decompose(g);
  if (problem) return problem;
  g->rows = g->upper[0] - g->lower[0];
  g->columns = g->upper[1] - g->lower[1];
  g->pitch = g->columns + 2;
  MPI_Type_vector((int)g->rows, 1, (int)g->pitch, MPI_DOUBLE, &g->column);
  MPI_Type_commit(&g->column);
  const size_t points = (size_t)((g->rows + 2) * g->pitch);
  g->a = calloc(points, sizeof *g->a);
  g->b = calloc(points, sizeof *g->b);
  if (!g->a || !g->b) return "out of memory";
  for (tr_index i = first(g, 0); i < last(g, 0); i++)
    for (tr_index j = first(g, 1); j < last(g, 1); j++)
      g->b[at(g, i, j)] = (double)(2 + g->lower[0] + i + g->lower[1] + j);
  return NULL;
}

void grid_free(struct grid* g) {
  free(g->a);
  free(g->b);
  MPI_Type_free(&g->column);
  tr_layout_free(&g->layout);
}

/* The outermost rows and columns of the neighbours' a become halo. The corners are not needed. */
static void exchange(struct grid* g) {
  const int columns = (int)g->columns;
  MPI_Sendrecv(&g->a[at(g, 0, 0)], columns, MPI_DOUBLE, g->up, 0, &g->a[at(g, g->rows, 0)], columns,
               MPI_DOUBLE, g->down, 0, g->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&g->a[at(g, g->rows - 1, 0)], columns, MPI_DOUBLE, g->down, 1, &g->a[at(g, -1, 0)], columns,
               MPI_DOUBLE, g->up, 1, g->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&g->a[at(g, 0, 0)], 1, g->column, g->left, 2, &g->a[at(g, 0, g->columns)], 1, g->column,
               g->right, 2, g->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&g->a[at(g, 0, g->columns - 1)], 1, g->column, g->right, 3, &g->a[at(g, 0, -1)], 1, g->column,
               g->left, 3, g->comm, MPI_STATUS_IGNORE);
}

/* a becomes b. Returns how much the two differed at most. */
static double advance(struct grid* g) {
  double change = 0;
  for (tr_index i = first(g, 0); i < last(g, 0); i++) {
    double* a = &g->a[at(g, i, 0)];
    const double* b = &g->b[at(g, i, 0)];
    for (tr_index j = first(g, 1); j < last(g, 1); j++) {
      const double difference = b[j] > a[j] ? b[j] - a[j] : a[j] - b[j];
      if (difference > change) change = difference;
      a[j] = b[j];
    }
  }
  return change;
}

/* b becomes the mean of the four neighbours. It is one expression, the same for any number of ranks. */
static void relax(struct grid* g) {
  for (tr_index i = first(g, 0); i < last(g, 0); i++) {
    const double *above = &g->a[at(g, i - 1, 0)], *here = &g->a[at(g, i, 0)], *below = &g->a[at(g, i + 1, 0)];
    double* b = &g->b[at(g, i, 0)];
    for (tr_index j = first(g, 1); j < last(g, 1); j++)
      b[j] = (above[j] + here[j - 1] + here[j + 1] + below[j]) / 4;
  }
}

double grid_iterate(struct grid* g) {
  double change = advance(g), largest = 0;
  exchange(g);
  relax(g);
  MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, g->comm);
  return largest;
}

void grid_copy(const struct grid* g, double* room, tr_index points) {
  tr_index used = 0;
  for (tr_index i = 0; i < g->rows; i++) {
    if (used + g->columns > points) used = 0;
    memcpy(&room[used], &g->b[at(g, i, 0)], (size_t)g->columns * sizeof *room);
    used += g->columns;
  }
}
