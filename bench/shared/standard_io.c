/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Every rank has a FILE of its own on the common file, and calls fseek and fwrite or fread for each piece. As
 * an expert sets it: where pieces lie apart a buffer would be copied to, emptied for each piece, and filled
 * with other ranks' pieces, so there is none; where they follow one another (one rank) it has 1 MiB and no
 * fseek comes between. */
#include <fcntl.h>
#include <stdio.h>

#include "contender.h"

enum { buffer_bytes = 1 << 20 };

static FILE* file;
static char buffer[buffer_bytes];
static long position;

static void open_file(const char* path, const struct share* share, int writes) {
  const int descriptor = open(path, writes ? O_WRONLY | O_CREAT : O_RDONLY, 0666);
  must(descriptor >= 0, "open");
  file = fdopen(descriptor, writes ? "wb" : "rb"); /* fopen would truncate what others have written */
  must(file != NULL, "fdopen");
  must(setvbuf(file, buffer, share->ranks == 1 ? _IOFBF : _IONBF, buffer_bytes) == 0, "setvbuf");
  position = 0;
}

static void move_to(long offset) {
  if (offset != position) must(fseek(file, offset, SEEK_SET) == 0, "fseek");
}

static void put(const void* piece, long bytes, long offset) {
  move_to(offset);
  must(fwrite(piece, (size_t)bytes, 1, file) == 1, "fwrite");
  position = offset + bytes;
}

static void get(void* piece, long bytes, long offset) {
  move_to(offset);
  must(fread(piece, (size_t)bytes, 1, file) == 1, "fread");
  position = offset + bytes;
}

static void close_file(const char* path, const struct share* share, int sync) {
  must(fclose(file) == 0, "fclose");
  if (sync) sync_file(path, share);
}

const struct contender standard_io = {"stdio", NULL, NULL, open_file, put, get, NULL, NULL, close_file};
