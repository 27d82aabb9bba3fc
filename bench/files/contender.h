/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* One way to bring a distributed array of float64 to a file and back. driver.c times it; each program links
 * one. */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <mpi.h>
#include <stddef.h>

/* The array of rows x columns, and this rank's block of it: contiguous, row after row. */
struct block {
  MPI_Comm comm;
  int rank, ranks;
  long shape[2], lower[2], count[2];
  double* data;
};

struct contender {
  const char* name;
  /* Non-zero if the file holds the array and nothing else, as this machine has it in memory. */
  int is_plain;
  /* Collective. Called before and after everything that is timed. Either may be NULL. */
  void (*start)(const struct block* block);
  void (*stop)(void);
  /* Collective, timed. Makes a new file with the array `arrays` times, one after another, and closes it; with
   * `sync` it is on storage. */
  void (*write)(const char* path, const struct block* block, int arrays, int sync);
  /* Reads the same file back into the block; NULL if this program only writes. */
  void (*read)(const char* path, const struct block* block);
};

extern const struct contender contender;

/* Ends all ranks with the text of what went wrong, unless `ok`. */
void must(int ok, const char* what);
/* Collective. Does rank 0's fsync after closing, for a contender without a call of its own for it. */
void sync_file(const char* path, const struct block* block);
/* Local. Returns the hints of BENCH_HINTS for MPI-IO ("romio_cb_write=disable,striping_unit=1048576"), or
 * MPI_INFO_NULL. Lives as long as the program. */
MPI_Info hints(void);
/* Local. Returns the chunk in which each rank's block lies alone, if BENCH_LAYOUT is "chunks"; 0: the file is
 * contiguous. */
int chunk_of_blocks(const struct block* block, long chunk[2]);
/* Local. Returns true if BENCH_TRANSFER asks for each rank's own writes, not for those of all together. */
int is_independent(void);
/* Local. Returns the rank's part of the array as a datatype of the whole, for MPI. The caller frees it. */
MPI_Datatype part_of_whole(const struct block* block);

#endif
