/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The part to copy for a run that goes on after it was stopped. */
#ifndef JACOBI_CHECKPOINTS_H
#define JACOBI_CHECKPOINTS_H

#include "grid.h"
#include "options.h"

struct checkpoints {
  const struct options* options;
  const struct grid* grid;
  tr_checkpoint* open; /* NULL: this run neither saves nor loads one */
  int64_t iteration;   /* iterations done */
  double change;       /* of that iteration */
};

/* Collective. Opens the checkpoint of the grid, of the iteration and of the change. */
void checkpoints_open(struct checkpoints* checkpoints);
/* Collective. With --restart: loads the last save, on however many ranks, if there is any. */
void checkpoints_load(struct checkpoints* checkpoints);
/* Collective. Saves every few iterations. The grid may change when this returns. */
void checkpoints_add(struct checkpoints* checkpoints, int64_t iteration, double change);
/* Collective. Returns when the last save is on storage. */
void checkpoints_close(struct checkpoints* checkpoints);

#endif
