/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The rate of storage for one process: pwrite and pread of 16 MiB. For one rank. */
#include <fcntl.h>
#include <unistd.h>

#include "contender.h"

enum { portion = 16 << 20 };

static void write_arrays(const char* path, const struct block* b, int arrays, int sync) {
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
  const long bytes = b->count[0] * b->count[1] * 8;
  must(b->ranks == 1 && file >= 0, "open");
  for (int i = 0; i < arrays; i++) {
    for (long at = 0; at < bytes; at += portion) {
      const long length = bytes - at < portion ? bytes - at : portion;
      must(pwrite(file, (const char*)b->data + at, (size_t)length, i * bytes + at) == length, "pwrite");
    }
  }
  if (sync) must(fsync(file) == 0, "fsync");
  close(file);
}

static void read_array(const char* path, const struct block* b) {
  const int file = open(path, O_RDONLY);
  const long bytes = b->count[0] * b->count[1] * 8;
  must(b->ranks == 1 && file >= 0, "open");
  for (long at = 0; at < bytes; at += portion) {
    const long length = bytes - at < portion ? bytes - at : portion;
    must(pread(file, (char*)b->data + at, (size_t)length, at) == length, "pread");
  }
  close(file);
}

const struct contender contender = {"posix", 1, NULL, NULL, write_arrays, read_array};
