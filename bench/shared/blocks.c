/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* One rank writes the whole file in blocks of 16 MiB: as fast as storage takes it. Reading is that of pread.
 */
#include <stdlib.h>
#include <unistd.h>

#include "contender.h"
#include "content.h"

enum { block_bytes = 16 << 20 };

static char* block;

/* A block holds whole pieces, whose common words are there before it is timed. */
static void start(const struct share* share) {
  const struct content content = {.bytes = share->bytes};
  must(block_bytes % share->bytes == 0, "pieces that fill blocks of 16 MiB");
  block = share->rank == 0 ? malloc(block_bytes) : NULL;
  must(share->rank != 0 || block != NULL, "out of memory for a block");
  for (long at = 0; share->rank == 0 && at < block_bytes; at += share->bytes)
    prepare_piece(&content, (int*)(block + at));
}

static void stop(void) { free(block); }

static void put_all(const void* pieces, const struct share* share) {
  const struct content content = {.bytes = share->bytes};
  const long end = share->all * share->bytes;
  (void)pieces;
  for (long at = 0; share->rank == 0 && at < end; at += block_bytes) {
    const long length = end - at < block_bytes ? end - at : block_bytes;
    for (long in = 0; in < length; in += share->bytes)
      fill_piece(&content, (at + in) / share->bytes, (int*)(block + in));
    posix.put(block, length, at);
  }
}

static void open_file(const char* path, const struct share* share, int writes) {
  posix.open(path, share, writes);
}

static void get(void* piece, long bytes, long offset) { posix.get(piece, bytes, offset); }

static void close_file(const char* path, const struct share* share, int sync) {
  posix.close(path, share, sync);
}

const struct contender blocks = {"blocks", start, stop, open_file, NULL, get, put_all, NULL, close_file};
