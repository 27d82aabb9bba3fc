/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The command line of the Jacobi iteration. */
#ifndef JACOBI_OPTIONS_H
#define JACOBI_OPTIONS_H

/* The way in which the array is saved. */
struct mode {
  const char* name;
  const char* letters; /* beside w or r in the open call */
  int is_local;        /* each rank has a file of its own */
  int is_async;        /* a save goes on while the next iterations are computed */
};

struct options {
  long size, iterations, save_every;
  const struct mode* mode;
  const char *out, *progress;
  int keep, verify, json;
  long checkpoint_every;       /* iterations; 0: never */
  const char* checkpoint_mode; /* as in the call that opens it */
  int sync, restart;
};

/* Every rank reads the same command line; `talks` is non-zero on the one that prints. Returns -1 if the
 * program should go on, otherwise its exit status. */
int read_options(int count, char** words, int talks, struct options* chosen);

#endif
