// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

namespace tailrace::comm {

/// True between MPI_Init and MPI_Finalize.
[[nodiscard]] bool mpi_is_running();
/// Initialises MPI with MPI_THREAD_MULTIPLE, unless the program has initialised it. Then also finalises MPI
/// at exit(3) if the program has not, unless the program exits with a failure.
void begin_mpi();
/// Returns the caller's rank in MPI_COMM_WORLD. Call it only while MPI runs.
[[nodiscard]] int rank_in_world();
/// Returns the caller's rank in `comm`. Call it only while MPI runs.
[[nodiscard]] int rank_in(MPI_Comm comm);
/// True if any thread may call MPI: it was initialised with MPI_THREAD_MULTIPLE.
[[nodiscard]] bool threads_may_call_mpi();
/// Makes MPI_Finalize call `hook` first (MPI 3.1, 8.7.1). Only the first hook counts; further calls change
/// nothing.
void before_mpi_ends(void (*hook)());

}  // namespace tailrace::comm
