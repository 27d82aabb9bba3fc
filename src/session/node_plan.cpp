// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "session/node_plan.hpp"

#include <type_traits>

#include "base/log.hpp"

namespace tailrace::session {

void print_node_plan(MPI_Comm node, const std::string& host, const RankCpus& mine) {
  static_assert(std::is_trivially_copyable_v<RankCpus>);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &size);
  std::vector<RankCpus> places(rank == 0 ? static_cast<std::size_t>(size) : 0);
  MPI_Gather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, 0, node);
  if (rank == 0 && logs(LogLevel::info)) log(LogLevel::info, affinity_text(host, places));
}

}  // namespace tailrace::session
