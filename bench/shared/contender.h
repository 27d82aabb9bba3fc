/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Ways in which all ranks write and read small pieces of one file. driver.c times them; the command line
 * chooses. */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <mpi.h>
#include <stddef.h>

/* The file is cut into pieces of equal size, dealt out to the ranks in turn: a rank has its first piece and
 * every `ranks`-th piece after that. */
struct share {
  MPI_Comm comm;
  int rank, ranks;
  long bytes;  /* of a piece */
  long all;    /* pieces in the file */
  long first;  /* the number of this rank's first piece */
  long pieces; /* of this rank */
};

/* Local. Returns where piece `k` of this rank begins in the file. */
static inline long offset_of(const struct share* share, long k) {
  return (share->first + k * share->ranks) * share->bytes;
}

struct contender {
  const char* name;
  /* Collective, not timed. Before and after everything else; either may be NULL. */
  void (*start)(const struct share* share);
  void (*stop)(void);
  /* Collective. Opens the file, which does not exist, for writing, or an existing file for reading. */
  void (*open)(const char* path, const struct share* share, int writes);
  /* Local. Write and read one piece; NULL in contenders that do all pieces at once. */
  void (*put)(const void* piece, long bytes, long offset);
  void (*get)(void* piece, long bytes, long offset);
  /* Collective. Write and read all pieces of this rank, which lie one after another in memory. */
  void (*put_all)(const void* pieces, const struct share* share);
  void (*get_all)(void* pieces, const struct share* share);
  /* Collective. Closes the file. With `sync`, after writing, it is on storage. */
  void (*close)(const char* path, const struct share* share, int sync);
};

extern const struct contender tailrace, tailrace_list, posix, standard_io, mpi_at, mpi_all, blocks;

/* Ends all ranks with the text of what went wrong, unless `ok`. */
void must(int ok, const char* what);
/* Collective. Does rank 0's fsync, which writes back what all ranks wrote, for a contender without a call of
 * its own for it. */
void sync_file(const char* path, const struct share* share);

#endif
