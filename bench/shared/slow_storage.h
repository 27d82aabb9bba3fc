/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* slow_storage.c counts the calls of this process that reach storage. */
#ifndef BENCH_SLOW_STORAGE_H
#define BENCH_SLOW_STORAGE_H

struct slow_storage_counts {
  long writes, bytes_written;
  long small_writes; /* below 1 MiB */
  long last_write_is_small;
  long reads, bytes_read, small_reads;
  long syncs;
};

/* Local. Returns the counts since the last call, which begin with zeros again. Calls are charged and counted
 * from here on if `charges`. A program finds this with dlsym: it is there only if slow_storage.c is
 * preloaded. */
typedef struct slow_storage_counts slow_storage_take(int charges);

#endif
