// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

namespace tailrace::comm {

/// Between MPI_Init and MPI_Finalize.
[[nodiscard]] bool mpi_is_running();
/// The caller's rank in MPI_COMM_WORLD. To be called only while MPI runs.
[[nodiscard]] int rank_in_world();
/// True if any thread may call MPI: the program initialised it with MPI_THREAD_MULTIPLE.
[[nodiscard]] bool threads_may_call_mpi();
/// MPI_Finalize will call `hook` first (MPI 3.1, 8.7.1). Further calls change nothing.
void before_mpi_ends(void (*hook)());

}  // namespace tailrace::comm
