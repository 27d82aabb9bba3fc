// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/end_job.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "ground/comm/mpi_process.hpp"

namespace tailrace::comm {

void end_job(std::string_view why) {
  std::fprintf(stderr, "tailrace: %.*s\n", static_cast<int>(why.size()), why.data());
  std::fflush(stderr);
  // The launcher kills the processes that forward the ranks' output, together with the ranks (seen with
  // MPICH's hydra). It loses output that it has not read by then, and the job would end without a reason. So
  // the launcher gets time to read it.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  end_job();
}

void end_job() {
#ifdef OPEN_MPI
  // If other ranks are in MPI_Finalize, mpirun of Open MPI 4.1.4 hangs or crashes in PMIx_server_finalize on
  // some calls of MPI_Abort (15 of 400). mpirun also ends the job when a rank exits with a failure, and that
  // always works (400 of 400).
  if (std::getenv("OMPI_MCA_orte_hnp_uri") != nullptr) std::_Exit(EXIT_FAILURE);
#endif
  if (!mpi_is_running()) std::_Exit(EXIT_FAILURE);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

}  // namespace tailrace::comm
