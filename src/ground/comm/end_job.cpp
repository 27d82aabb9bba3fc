// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/end_job.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "ground/comm/mpi_process.hpp"

namespace tailrace::comm {

namespace {

/// What is called before the job ends. It is never destroyed: the job may end while the process exits.
struct Ending {
  std::mutex mutex;
  const void* owner = nullptr;
  std::function<void(std::string_view)> tell;
  std::string why;
};

Ending& ending() {
  static Ending* const its = new Ending();
  return *its;
}

/// Calls it at most once, without the lock: what it calls may end the job, too.
void tell_end() {
  std::function<void(std::string_view)> tell;
  std::string why;
  {
    const std::lock_guard lock(ending().mutex);
    tell = std::exchange(ending().tell, nullptr);
    why.swap(ending().why);
  }
  if (tell) tell(why);
}

/// Runs what may be left out of the end. The job mostly ends because something is short, memory above all.
template <typename Body>
void try_to(const Body& body) {
  try {
    body();
  } catch (...) {
    return;
  }
}

}  // namespace

void before_job_ends(const void* owner, std::function<void(std::string_view)> tell) {
  const std::lock_guard lock(ending().mutex);
  if (tell == nullptr && ending().owner != owner) return;
  ending().owner = owner;
  ending().tell = std::move(tell);
}

void note_why_job_ends(std::string_view why) {
  try_to([why] {
    const std::lock_guard lock(ending().mutex);
    if (ending().why.empty()) ending().why = why;
  });
}

void end_job(std::string_view why) {
  std::fprintf(stderr, "tailrace: %.*s\n", static_cast<int>(why.size()), why.data());
  std::fflush(stderr);
  note_why_job_ends(why);
  // The launcher kills the processes that forward the ranks' output, together with the ranks (seen with
  // MPICH's hydra). It loses output that it has not read by then, and the job would end without a reason. So
  // the launcher gets time to read it.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  end_job();
}

void end_job() {
  try_to(tell_end);
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
