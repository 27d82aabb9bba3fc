/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* An MPI program that knows nothing of Tailrace: its ranks write one file in the patterns of IOR, and read
   what their neighbours have written. Arguments: the file, the pattern (segmented, strided, random), and
   "fsync" or "none". */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { transfer = 1000, blocks = 700 };

static int ranks, failures;

/* Returns the offset of the n-th transfer of a rank. With "random" the transfers go through the file in steps
 * whose length has no common divisor with the number of all blocks. */
static off_t place(const char* pattern, int rank, int n) {
  if (pattern[0] == 's' && pattern[1] == 'e') return ((off_t)rank * blocks + n) * transfer;
  if (pattern[0] == 's') return ((off_t)n * ranks + rank) * transfer;
  const long all = (long)blocks * ranks;
  return ((long)rank * blocks + n) * 7919L % all * transfer;
}

static char value(int rank, int n, int at) { return (char)(rank * 31 + n * 7 + at); }

static void expect(int condition, const char* what, int n) {
  if (!condition && failures++ < 3) fprintf(stderr, "FAILED: %s, transfer %d\n", what, n);
}

int main(int argc, char** argv) {
  int rank, all = 0;
  char bytes[transfer];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* pattern = argv[2];
  const int file = open(argv[1], O_RDWR | O_CREAT, 0644);
  expect(file >= 0, "open", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int n = 0; n < blocks; ++n) {
    for (int at = 0; at < transfer; ++at) bytes[at] = value(rank, n, at);
    expect(pwrite(file, bytes, transfer, place(pattern, rank, n)) == transfer, "pwrite", n);
  }
  if (!strcmp(argv[3], "fsync")) expect(fsync(file) == 0, "fsync", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int next = (rank + 1) % ranks;
  for (int n = 0; n < blocks; ++n) {
    int same = pread(file, bytes, transfer, place(pattern, next, n)) == transfer;
    for (int at = 0; at < transfer; ++at) same = same && bytes[at] == value(next, n, at);
    expect(same, "pread of the neighbour's", n);
  }
  expect(lseek(file, 0, SEEK_END) == (off_t)ranks * blocks * transfer, "size", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  expect(close(file) == 0, "close", 0);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
