/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The Jacobi iteration, saving its array every few iterations: the time of computing, how long saving blocks
 * it, and the time of a plain copy of as many bytes. Everything that has to do with files stands in saves.c.
 * */
#include <stdio.h>
#include <stdlib.h>

#include "checkpoints.h"
#include "grid.h"
#include "options.h"
#include "progress.h"
#include "saves.h"

/* Seconds; each the longest of all ranks in the end. */
struct figures {
  double total, last,
      result;             /* the whole run; waiting for the last saves in it; saving the result, after it */
  double *blocked, *copy; /* of each save */
  double checkpoints;     /* blocked in checkpoints, the wait for the last included */
  long saves;
  double change;
};

static struct figures figures_create(const struct options* options) {
  struct figures f = {0};
  const size_t most = options->save_every ? (size_t)(options->iterations / options->save_every) : 0;
  f.blocked = calloc(most + 1, sizeof *f.blocked);
  f.copy = calloc(most + 1, sizeof *f.copy);
  return f;
}

/* Times the least that saving has to do: a copy into memory that was touched before. Its size is limited,
 * because memory is. */
static double time_copy(const struct grid* grid) {
  enum { most = 32 << 20 };
  static double* room;
  static tr_index points;
  if (!room) {
    points = grid->rows * grid->columns < most ? grid->rows * grid->columns : most;
    room = malloc((size_t)points * sizeof *room);
    if (room) grid_copy(grid, room, points);
  }
  const double begin = MPI_Wtime();
  if (room) grid_copy(grid, room, points);
  return MPI_Wtime() - begin;
}

static void add_checkpoint(struct checkpoints* checkpoints, long iteration, struct figures* f) {
  const double begin = MPI_Wtime();
  checkpoints_add(checkpoints, iteration, f->change);
  f->checkpoints += MPI_Wtime() - begin;
}

static void run(const struct options* options, struct grid* grid, struct saves* saves,
                struct checkpoints* checkpoints, struct figures* f) {
  const long every = options->save_every;
  if (every) time_copy(grid);
  if (every) saves->count = (long)checkpoints->iteration / every; /* the files take turns as in one run */
  f->change = checkpoints->change;
  MPI_Barrier(grid->comm);
  const double begin = MPI_Wtime();
  for (long i = (long)checkpoints->iteration + 1; i <= options->iterations; i++) {
    f->change = grid_iterate(grid);
    if (grid->rank == 0) progress_show(i, options->iterations);
    add_checkpoint(checkpoints, i, f);
    if (!every) continue;
    /* The copy comes between two saves, so that neither finds what the other left in the processor's caches.
     * */
    if (i % every == every / 2 && f->saves < options->iterations / every) f->copy[f->saves] = time_copy(grid);
    if (i % every != 0) continue;
    const double saving = MPI_Wtime();
    saves_add(saves, i);
    f->blocked[f->saves++] = MPI_Wtime() - saving;
  }
  const double computed = MPI_Wtime();
  saves_finish(saves);
  f->last = MPI_Wtime() - computed;
  const double saved = MPI_Wtime();
  checkpoints_close(checkpoints);
  f->checkpoints += MPI_Wtime() - saved;
  f->total = MPI_Wtime() - begin;
}

static void save_result(struct saves* saves, struct figures* f) {
  MPI_Barrier(saves->grid->comm);
  const double begin = MPI_Wtime();
  saves_result(saves);
  f->result = MPI_Wtime() - begin;
}

static void largest_of_all(struct figures* f, MPI_Comm comm) {
  MPI_Allreduce(MPI_IN_PLACE, f->blocked, (int)f->saves, MPI_DOUBLE, MPI_MAX, comm);
  MPI_Allreduce(MPI_IN_PLACE, f->copy, (int)f->saves, MPI_DOUBLE, MPI_MAX, comm);
  double others[4] = {f->total, f->last, f->result, f->checkpoints};
  MPI_Allreduce(MPI_IN_PLACE, others, 4, MPI_DOUBLE, MPI_MAX, comm);
  f->total = others[0], f->last = others[1], f->result = others[2], f->checkpoints = others[3];
}

static double sum(const double* values, long count) {
  double all = 0;
  for (long i = 0; i < count; i++) all += values[i];
  return all;
}

static double computing(const struct figures* f) {
  return f->total - f->last - f->checkpoints - sum(f->blocked, f->saves) - sum(f->copy, f->saves);
}

static void print_list(const char* name, const double* values, long count) {
  printf(", \"%s\": [", name);
  for (long i = 0; i < count; i++) printf("%s%.6f", i ? ", " : "", values[i]);
  printf("]");
}

static void print_json(const struct options* options, const struct grid* grid, const struct figures* f) {
  printf("{\"size\": %ld, \"ranks\": %d, \"mode\": \"%s\", \"change\": %.17g, \"save_bytes\": %.0f, ",
         options->size, grid->ranks, options->mode->name, f->change,
         8.0 * (double)options->size * (double)options->size);
  printf("\"total\": %.6f, \"compute\": %.6f, \"last\": %.6f, \"result\": %.6f, \"checkpoints\": %.6f",
         f->total, computing(f), f->last, f->result, f->checkpoints);
  print_list("blocked", f->blocked, f->saves);
  print_list("copy", f->copy, f->saves);
  printf("}\n");
}

static void print_table(const struct options* options, const struct grid* grid, const struct figures* f) {
  const double bytes = 8.0 * (double)options->size * (double)options->size;
  const double blocked = sum(f->blocked, f->saves), copies = sum(f->copy, f->saves);
  printf("%ld x %ld points on %d x %d ranks, mode %s: %ld saves of %.1f MB\n", options->size, options->size,
         grid->cut[0], grid->cut[1], options->mode->name, f->saves, bytes / 1e6);
  printf("  whole run       %10.3f s\n", f->total);
  printf("  computing       %10.3f s\n", computing(f));
  printf("  blocked in I/O  %10.3f s   in saves, and %.3f s at the end until the last were complete\n",
         blocked, f->last);
  printf("  of which copy   %10.3f s   as a plain copy of the array takes it\n", copies);
  if (options->checkpoint_every)
    printf("  in checkpoints  %10.3f s   blocked, and waiting for the last\n", f->checkpoints);
  printf("  to durable      %10.1f MB/s the result, saved once more\n", bytes / f->result / 1e6);
  printf("  change          %.17g\n", f->change);
}

/* Returns the program's exit status, the same on every rank. */
static int jacobi(const struct options* options, MPI_Comm comm) {
  struct grid grid;
  const char* problem = grid_create(&grid, comm, options->size);
  if (problem) {
    if (grid.rank == 0) fprintf(stderr, "jacobi_c: %s\n", problem);
    return 1;
  }
  struct saves saves = {.options = options, .grid = &grid};
  struct checkpoints checkpoints = {.options = options, .grid = &grid};
  struct figures f = figures_create(options);
  checkpoints_open(&checkpoints);
  checkpoints_load(&checkpoints);
  if (grid.rank == 0) progress_start(options->progress);
  run(options, &grid, &saves, &checkpoints, &f);
  save_result(&saves, &f);
  const long wrong = options->verify ? saves_verify(&saves) : 0;
  largest_of_all(&f, comm);
  if (grid.rank == 0) (options->json ? print_json : print_table)(options, &grid, &f);
  if (wrong && grid.rank == 0) fprintf(stderr, "jacobi_c: %ld points were read back wrong\n", wrong);
  free(f.blocked);
  free(f.copy);
  grid_free(&grid);
  return wrong != 0;
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  struct options options;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int status = read_options(argc, argv, rank == 0, &options);
  if (status < 0) {
    status = 0;
    if (tr_init(MPI_COMM_WORLD, &comm, NULL) != TR_OK)
      status = 1;
    else if (comm != MPI_COMM_NULL)
      status = jacobi(&options, comm);
    if (tr_finalize() != TR_OK) status = 1;
    if (status && rank == 0 && *tr_error()) fprintf(stderr, "jacobi_c: %s\n", tr_error());
  }
  MPI_Finalize();
  return status;
}
