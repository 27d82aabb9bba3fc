/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "checkpoints.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a call failed. The call then failed on every rank. A launcher may lose the last lines
 * of a job that aborts. */
static void check(const struct checkpoints* c, int code) {
  if (code == TR_OK) return;
  if (c->grid->rank == 0) fprintf(stderr, "jacobi_c: %s\n", tr_error());
  tr_finalize();
  MPI_Finalize();
  exit(1);
}

void checkpoints_open(struct checkpoints* c) {
  const struct options* o = c->options;
  if (!o->checkpoint_every && !o->restart) return;
  char name[4096], first[4096], second[4096];
  snprintf(name, sizeof name, "%s/jacobi", o->out);
  snprintf(first, sizeof first, "%s/jacobi_first.ckpt", o->out);
  snprintf(second, sizeof second, "%s/jacobi_second.ckpt", o->out);
  const char* files[] = {first, second};
  /* Both iterates are saved: the next change is the difference of them. The addresses are used at each save.
   * */
  const tr_variable variables[] = {{"iteration", &c->iteration, TR_I64, NULL},
                                   {"change", &c->change, TR_F64, NULL},
                                   {"a", c->grid->a, TR_F64, c->grid->layout},
                                   {"b", c->grid->b, TR_F64, c->grid->layout}};
  check(c, tr_checkpoint_create_registered(name, variables, 4, files, 2, o->checkpoint_mode, &c->open));
}

void checkpoints_load(struct checkpoints* c) {
  int found = 0;
  if (!c->options->restart) return;
  check(c, tr_checkpoint_load(c->open, &found));
  if (c->grid->rank != 0 || c->options->json) return;
  if (found)
    printf("going on from iteration %ld\n", (long)c->iteration);
  else
    printf("no checkpoint in %s: starting at iteration 0\n", c->options->out);
}

void checkpoints_add(struct checkpoints* c, int64_t iteration, double change) {
  const long every = c->options->checkpoint_every;
  if (!every || iteration % every != 0) return;
  c->iteration = iteration;
  c->change = change;
  check(c, tr_checkpoint_save(c->open, !c->options->sync));
}

void checkpoints_close(struct checkpoints* c) {
  if (c->open) check(c, tr_checkpoint_close(&c->open));
}
