/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* One way to bring a distributed array of float64 to a file and back. driver.c times it; each program links
 * one. */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <mpi.h>
#include <stddef.h>

/* The array of rows x columns, and the block of it that this rank holds: contiguous, row after row. */
struct block {
  MPI_Comm comm;
  int rank, ranks;
  long shape[2], lower[2], count[2];
  double* data;
};

struct contender {
  const char* name;
  /* Non-zero: the file holds the array and nothing else, as this machine has it in memory. */
  int is_plain;
  /* Collective: before and after everything that is timed. Either may be NULL. */
  void (*start)(const struct block* block);
  void (*stop)(void);
  /* Collective, timed: a new file with the array `arrays` times, one after another, closed again; with `sync`
   * on storage. */
  void (*write)(const char* path, const struct block* block, int arrays, int sync);
  /* The same file back into the block; NULL if this program only writes. */
  void (*read)(const char* path, const struct block* block);
};

extern const struct contender contender;

/* Ends all ranks with the text of what went wrong, unless `ok`. */
void must(int ok, const char* what);
/* What a contender without a call of its own for it does after closing: rank 0's fsync. Collective. */
void sync_file(const char* path, const struct block* block);
/* Local. What BENCH_HINTS tells MPI-IO ("romio_cb_write=disable,striping_unit=1048576"), or MPI_INFO_NULL.
 * Lives as long as the program. */
MPI_Info hints(void);
/* Local. The chunk in which each rank's block lies alone, where BENCH_LAYOUT is "chunks"; 0: the file is
 * contiguous. */
int chunk_of_blocks(const struct block* block, long chunk[2]);
/* Local. Whether BENCH_TRANSFER asks for each rank's own writes, not for those of all together. */
int is_independent(void);
/* Local. The rank's part of the array as a datatype of the whole, for MPI. To be freed. */
MPI_Datatype part_of_whole(const struct block* block);

#endif
