// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace tailrace::session {

/// The threads that one rank of a node runs, and the CPUs on which they may run.
struct RankCpus {
  int rank = 0;  // of the world
  bool serves = false;
  int threads = 1;      // its main thread and the library's threads
  cpu_set_t cpus = {};  // empty if the system does not tell
  int encoding = 0;     // threads that encode
};

/// Returns the CPUs on which the calling thread may run: those that the launcher, the batch system or the
/// cgroup left it (sched_getaffinity(2)).
cpu_set_t own_cpus();

/// Returns how many threads encode on a server if no setting says so: the node's CPUs that no rank needs,
/// shared by its servers, and no more than the server may use beside its main thread; 1 to 4. `node_cpus`
/// counts the CPUs on which any rank of the node may run, `own_cpus` those of the server, 0 if the system
/// does not tell.
int spare_threads(int node_cpus, int ranks, int servers, int own_cpus);

/// Returns one line about the ranks of a node: how many CPUs they have, how many threads encode beside them,
/// and what to do about each rank that has fewer CPUs than threads. The library itself binds no thread. If a
/// process may use more CPUs than it has busy threads, the kernel moves its workers to the idle ones. The
/// kernel knows the idle CPUs better than the library, which cannot see the model's own threads, other jobs
/// and SMT siblings.
std::string affinity_text(const std::string& host, const std::vector<RankCpus>& node);

}  // namespace tailrace::session
