// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "session/node_plan.hpp"

#include <type_traits>

#include "base/log.hpp"

namespace tailrace::session {

void print_node_plan(comm::Line& node, const std::string& host, const RankCpus& mine) {
  static_assert(std::is_trivially_copyable_v<RankCpus>);
  Packer told;
  told.put(mine);
  const comm::Verdict verdict = node.agree({{}, "tr_init", told.take()});
  if (node.rank() != 0 || !logs(LogLevel::info)) return;
  std::vector<RankCpus> places;
  for (const ByteVector& each : verdict.contributions) places.push_back(Unpacker(each).get<RankCpus>());
  log(LogLevel::info, affinity_text(host, places));
}

}  // namespace tailrace::session
