/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The peers: the rates that memory and storage give to anybody. Each returns the seconds of the slowest rank.
 * */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include "field.h"

/* Collective. Copies the rank's block with one memcpy into `room`, which was touched before; all ranks at
 * once. */
struct cost raw_copy(const struct field* field, void* room);
/* Collective. Writes the ranks' blocks with pwrite into as many files as a checkpoint has, over their
 * contents, with as many fsyncs in the same order: one for each part, then the directory, then the commit. */
double raw_write(const struct field* field, const char* path, int is_local);
/* Collective. Reads the bytes of a copy's files with pread, in equal shares, into `room`, which was touched
 * before. `parts`: files of the local mode, 0: one file. */
double raw_read(const struct field* field, const char* path, int parts, char* room, size_t room_bytes);
/* Local. Copies the first bytes of a file to a new one, with one fsync of it and one of its directory. */
double raw_keep(const char* from, const char* to, size_t bytes, char* room);
/* Local. Returns the most bytes that raw_read reads on one rank. */
size_t raw_share(const struct field* field, const char* path, int parts);

#endif
