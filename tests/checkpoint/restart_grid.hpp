// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The grid and the steps of restart_model.cpp, for it and for programs that read its files.
#pragma once

#include <tailrace.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace tailrace::restart_grid {

inline constexpr std::int64_t step_seconds = 900;
inline constexpr tr_index shape[2] = {23, 19};
inline constexpr tr_index halo[2] = {1, 2};
inline constexpr const char* grid_keys =
    "keys=\"gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, longitudeOfFirstGridPointInDegrees=5, "
    "latitudeOfLastGridPointInDegrees=28, longitudeOfLastGridPointInDegrees=23\"";

inline int rank = 0;

/// Ends the program if a call has failed. The code is the same on every rank, so all ranks end.
inline void must(int code, const char* what) {
  if (code == TR_OK) return;
  // Each rank tells: mpirun ends rank 0, too, as soon as another rank has ended.
  std::printf("%s: %s\n", what, tr_error());
  std::fflush(stdout);
  std::_Exit(3);
}

}  // namespace tailrace::restart_grid
