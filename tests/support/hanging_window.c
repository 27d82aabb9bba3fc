// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A library that tests preload into a program whose MPI hangs when it makes a window.
#include <unistd.h>

int MPI_Win_allocate(void);

// The program gives arguments that the function does not look at.
int MPI_Win_allocate(void) {
  for (;;) sleep(1);
}
