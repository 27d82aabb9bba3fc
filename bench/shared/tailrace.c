/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The library's shared files: a call for each piece, or one call with a list of all pieces. */
#include <stdlib.h>
#include <tailrace.h>

#include "contender.h"

static tr_shared* file;
static tr_piece* list;
static int users; /* both contenders use one session */

static void check(int code) {
  if (code != TR_OK) must(0, tr_error());
}

static void start(const struct share* share) {
  MPI_Comm compute;
  if (users++ == 0) check(tr_init(share->comm, &compute, NULL));
}

static void stop(void) {
  if (--users == 0) check(tr_finalize());
}

static void open_file(const char* path, const struct share* share, int writes) {
  (void)share;
  check(tr_shared_open(path, writes ? "w" : "r", NULL, &file));
}

static void put(const void* piece, long bytes, long offset) {
  check(tr_shared_pwrite(file, piece, bytes, offset));
}

static void get(void* piece, long bytes, long offset) {
  check(tr_shared_pread(file, piece, bytes, offset, NULL));
}

static void close_file(const char* path, const struct share* share, int sync) {
  (void)path, (void)share;
  if (sync) check(tr_shared_flush(file));
  check(tr_shared_close(&file));
}

/* A program with a list has it before it writes. */
static void start_list(const struct share* share) {
  start(share);
  list = calloc((size_t)share->pieces + 1, sizeof *list);
  must(list != NULL, "out of memory for the list of pieces");
  for (long k = 0; k < share->pieces; k++) list[k] = (tr_piece){NULL, share->bytes, offset_of(share, k)};
}

static void stop_list(void) {
  free(list);
  stop();
}

static void point_to(char* pieces, const struct share* share) {
  for (long k = 0; k < share->pieces; k++) list[k].data = pieces + k * share->bytes;
}

static void put_all(const void* pieces, const struct share* share) {
  point_to((char*)pieces, share); /* tr_shared_writev changes nothing there */
  check(tr_shared_writev(file, list, share->pieces));
}

static void get_all(void* pieces, const struct share* share) {
  point_to(pieces, share);
  check(tr_shared_readv(file, list, share->pieces, NULL));
}

const struct contender tailrace = {"tailrace", start, stop, open_file, put, get, NULL, NULL, close_file};
const struct contender tailrace_list = {"tailrace_list", start_list, stop_list, open_file, NULL, NULL,
                                        put_all,         get_all,    close_file};
