/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Every rank opens the file and calls pwrite and pread for each piece. */
#include <fcntl.h>
#include <unistd.h>

#include "contender.h"

static int file = -1;

/* No rank truncates: the file is new, and no rank has to wait until another has made it. */
static void open_file(const char* path, const struct share* share, int writes) {
  (void)share;
  file = open(path, writes ? O_WRONLY | O_CREAT : O_RDONLY, 0666);
  must(file >= 0, "open");
}

static void put(const void* piece, long bytes, long offset) {
  must(pwrite(file, piece, (size_t)bytes, offset) == bytes, "pwrite");
}

static void get(void* piece, long bytes, long offset) {
  must(pread(file, piece, (size_t)bytes, offset) == bytes, "pread");
}

static void close_file(const char* path, const struct share* share, int sync) {
  must(close(file) == 0, "close");
  if (sync) sync_file(path, share);
}

const struct contender posix = {"posix", NULL, NULL, open_file, put, get, NULL, NULL, close_file};
