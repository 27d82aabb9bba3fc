// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "session/node_plan.hpp"

#include <type_traits>

#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/huge_pages.hpp"

namespace tailrace::session {

void print_node_plan(MPI_Comm node, const std::string& host, const NodeShare& mine) {
  static_assert(std::is_trivially_copyable_v<NodeShare>);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &size);
  std::vector<NodeShare> shares(rank == 0 ? static_cast<std::size_t>(size) : 0);
  MPI_Gather(&mine, sizeof mine, MPI_BYTE, shares.data(), sizeof mine, MPI_BYTE, 0, node);
  if (rank != 0 || !logs(LogLevel::info)) return;
  std::vector<RankCpus> places;
  Bytes huge_pages = 0;
  for (const NodeShare& share : shares) {
    places.push_back(share.place);
    huge_pages += share.huge_pages;
  }
  log(LogLevel::info, affinity_text(host, places));
  if (mine.staging == 0 || !mine.huge_pages_asked) return;
  log(LogLevel::info, cat("plan: host ", host, ": ",
                          comm::huge_page_text(huge_pages, mine.staging, comm::huge_page_setting())));
}

}  // namespace tailrace::session
