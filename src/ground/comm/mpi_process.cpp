// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/mpi_process.hpp"

#include <cstdlib>

namespace tailrace::comm {

namespace {

void (*finalize_hook)() = nullptr;

int on_finalize(MPI_Comm, int, void*, void*) {
  finalize_hook();
  return MPI_SUCCESS;
}

}  // namespace

bool mpi_is_running() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

void begin_mpi() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) return;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
#ifdef __GLIBC__
  // A rank that exits with a failure does not call MPI_Finalize, in which it would wait: other ranks may wait
  // for it in another call. Once this process is gone, the launcher ends the other ranks.
  on_exit(
      [](int status, void* /*unused*/) {
        if (status == 0 && mpi_is_running()) MPI_Finalize();
      },
      nullptr);
#else
  std::atexit([] {
    if (mpi_is_running()) MPI_Finalize();
  });
#endif
}

int rank_in_world() { return rank_in(MPI_COMM_WORLD); }

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

bool threads_may_call_mpi() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  return provided == MPI_THREAD_MULTIPLE;
}

void before_mpi_ends(void (*hook)()) {
  if (finalize_hook != nullptr) return;
  finalize_hook = hook;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

}  // namespace tailrace::comm
