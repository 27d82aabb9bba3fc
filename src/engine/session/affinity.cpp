// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/affinity.hpp"

#include <algorithm>

#include "ground/base/text.hpp"

namespace tailrace::session {

namespace {

/// Returns "0-3,8", as taskset(1) and the files of the kernel write it.
std::string list_of(const cpu_set_t& cpus) {
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &cpus)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cpus)) ++last;
    text += cat(text.empty() ? "" : ",", first);
    if (last > first) text += cat("-", last);
    first = last;
  }
  return text;
}

}  // namespace

cpu_set_t own_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) CPU_ZERO(&cpus);  // more CPUs than the set holds
  return cpus;
}

int spare_threads(int node_cpus, int ranks, int servers, int own_cpus) {
  const int spare = (node_cpus - ranks) / std::max(servers, 1);
  return std::clamp(own_cpus > 0 ? std::min(spare, own_cpus - 1) : spare, 1, 4);
}

std::string affinity_text(const std::string& host, const std::vector<RankCpus>& node) {
  cpu_set_t all;
  CPU_ZERO(&all);
  std::string crowded;
  int encoding = 0;
  for (const RankCpus& rank : node) {
    encoding += rank.encoding;
    CPU_OR(&all, &all, &rank.cpus);
    const int cpus = CPU_COUNT(&rank.cpus);
    if (cpus == 0 || cpus >= rank.threads) continue;
    crowded += cat("; ", rank.serves ? "server" : "compute", " rank ", rank.rank, " has ", rank.threads,
                   " threads on CPU ", list_of(rank.cpus), ", where they take turns");
  }
  std::string text = cat("plan: host ", host, ": ranks=", node.size(), " cpus=", CPU_COUNT(&all));
  if (encoding > 0) text += cat(" encoding=", encoding);
  if (crowded.empty()) return text;
  return cat(
      text, crowded,
      ". Give it more: mpirun --bind-to none, or srun --cpus-per-task=N --cpu-bind=cores with a CPU for "
      "each thread");
}

}  // namespace tailrace::session
