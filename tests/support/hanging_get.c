// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A library that tests preload into a program whose MPI hangs in one-sided gets, from the moment on in which
// the file exists that TEST_HANGS names.
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int MPI_Get(void* to, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
            MPI_Datatype target_type, MPI_Win window) {
  const char* const hangs = getenv("TEST_HANGS");
  while (hangs != NULL && access(hangs, F_OK) == 0) sleep(1);
  return PMPI_Get(to, count, type, target, at, target_count, target_type, window);
}
