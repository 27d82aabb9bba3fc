/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A library that the tests preload into MPICH's ranks. MPICH 4.0 (ch4:ucx) polls without ever giving up its
 * core, so that with more ranks than cores each message waits for the end of a scheduler slice. On 2 cores a
 * barrier and broadcast of 4 ranks takes 8,100 us without this library and 8 us with it; of 8 ranks 35,000 us
 * and 31 us. A program's results do not depend on it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

typedef unsigned (*progress_fn)(void*);

/* A rank polls a few times in vain before it gives up its core: where every rank has its own core, this keeps
 * the latency low. */
enum { idle_polls_before_yield = 16 };

unsigned ucp_worker_progress(void* worker) {
  static progress_fn real = NULL;
  static __thread unsigned idle = 0;
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = real(worker);
  if (events != 0) {
    idle = 0;
  } else if (++idle >= idle_polls_before_yield) {
    idle = 0;
    sched_yield();
  }
  return events;
}
