/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Everything that has to do with files: the part to copy. */
#ifndef JACOBI_SAVES_H
#define JACOBI_SAVES_H

#include "grid.h"
#include "options.h"

struct saves {
  const struct options* options;
  const struct grid* grid;
  tr_file* open[2]; /* of asynchronous saves that may be under way */
  long count;
};

/* Collective. Saves b after `iteration` iterations. In the asynchronous modes b may change when this returns,
 * and the file is complete two saves later, or after saves_finish. */
void saves_add(struct saves* saves, long iteration);
/* Collective. Returns when all saves are complete. */
void saves_finish(struct saves* saves);
/* Collective. Saves b once more as the result, and waits until it is on storage. */
void saves_result(struct saves* saves);
/* Collective. Reads the result into the grid's a; returns how many points of all ranks differ from b. */
long saves_verify(struct saves* saves);

#endif
