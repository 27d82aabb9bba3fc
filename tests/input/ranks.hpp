// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Helpers for tests of input streams.
#pragma once

#include <functional>
#include <string>

#include "mpi/scene.hpp"

namespace tailrace::input_test {

inline constexpr std::int64_t hour = 3600;
inline constexpr double hole = -5000;
inline const char* const base = "base=2026-03-01T00:00Z ";

inline bool expect(int code) {
  return CHECK_EQ(code == TR_OK ? std::string("no error") : std::string(tr_error()), std::string("no error"));
}

/// Runs `body` in a session of the first `ranks` ranks of the world, with the next `servers` ranks as
/// servers.
inline void on_ranks(int ranks, int servers, const std::string& settings,
                     const std::function<void(MPI_Comm)>& body) {
  using namespace mpi_test;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(state().comm, rank() < ranks + servers ? 0 : MPI_UNDEFINED, rank(), &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm compute = MPI_COMM_NULL;
    const std::string options = "servers=" + std::to_string(servers) + " staging=8MiB cache=none " + settings;
    expect(tr_init(part, &compute, options.c_str()));
    if (compute != MPI_COMM_NULL) body(compute);
    expect(tr_finalize());
    MPI_Comm_free(&part);
  }
  scene::quiet_barrier();
}

}  // namespace tailrace::input_test
