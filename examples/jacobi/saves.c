/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
#include "saves.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a call failed. The call then failed on every rank, except in the local modes, where
 * each rank is alone. A launcher may lose the last lines of a job that aborts. */
static void check(const struct saves* s, int ok) {
  if (ok) return;
  const int is_alone = s->options->mode->is_local;
  if (is_alone || s->grid->rank == 0) fprintf(stderr, "jacobi_c: %s\n", tr_error());
  if (is_alone) MPI_Abort(s->grid->comm, 1);
  tr_finalize();
  MPI_Finalize();
  exit(1);
}

static tr_file* open_file(const struct saves* s, const char* name, char access) {
  const struct mode* mode = s->options->mode;
  char path[4096], letters[8];
  snprintf(path, sizeof path, "%s/jacobi_%s%s.dat", s->options->out, name, mode->is_local ? ".%04d" : "");
  snprintf(letters, sizeof letters, "%c%s", access, mode->letters);
  tr_file* file = tr_fopen(path, letters);
  check(s, file != NULL);
  return file;
}

/* Returns the elements that a call moves: those of all ranks, in the local modes this rank's. */
static size_t elements(const struct saves* s) {
  const struct grid* g = s->grid;
  return (size_t)(s->options->mode->is_local ? g->rows * g->columns : g->size * g->size);
}

static void write_array(const struct saves* s, tr_file* file) {
  check(s, tr_fwrite_array(s->grid->b, TR_F64, s->grid->layout, file) == elements(s));
}

/* Waits until everything is written to it. */
static void close_file(const struct saves* s, tr_file** file) {
  if (*file) check(s, tr_fclose(*file) == 0);
  *file = NULL;
}

void saves_add(struct saves* s, long iteration) {
  char name[32];
  tr_file** file = &s->open[s->count % 2];
  snprintf(name, sizeof name, "%04ld", iteration);
  close_file(s, file);
  *file = open_file(s, s->options->keep ? name : s->count % 2 == 0 ? "a" : "b", 'w');
  write_array(s, *file);
  if (!s->options->mode->is_async) close_file(s, file);
  s->count++;
}

void saves_finish(struct saves* s) {
  close_file(s, &s->open[s->count % 2]);
  close_file(s, &s->open[(s->count + 1) % 2]);
}

void saves_result(struct saves* s) {
  tr_file* file = open_file(s, "result", 'w');
  write_array(s, file);
  check(s, tr_fflush_durable(file) == 0);
  close_file(s, &file);
}

long saves_verify(struct saves* s) {
  const struct grid* g = s->grid;
  tr_file* file = open_file(s, "result", 'r');
  check(s, tr_fread_array(g->a, TR_F64, g->layout, file) == elements(s));
  check(s, tr_fwait(file) == 0); /* asynchronous reading has delivered now */
  close_file(s, &file);
  long wrong = 0, all = 0;
  for (tr_index i = 1; i <= g->rows; i++)
    for (tr_index j = 1; j <= g->columns; j++) wrong += g->a[i * g->pitch + j] != g->b[i * g->pitch + j];
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, g->comm);
  return all;
}
