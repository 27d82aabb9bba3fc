// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "ground/base/checksum.hpp"
#include "launch.hpp"
#include "program_file.hpp"

namespace tailrace::run {

namespace {

long number_of(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atol(text) : 0;
}

/// Returns the process of MPICH's launcher that has started this rank, or 0.
pid_t mpich_proxy() {
  pid_t process = getppid();
  for (int depth = 0; depth < 64 && process > 1; ++depth) {
    std::FILE* const file = std::fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "re");
    if (file == nullptr) return 0;
    char line[512] = {};
    const bool is_read = std::fgets(line, sizeof(line), file) != nullptr;
    std::fclose(file);
    // "PID (NAME) STATE PARENT ...". A name may have spaces and brackets; the kernel cuts it after 15
    // letters.
    const char* const name = std::strchr(line, '(');
    const char* const end = std::strrchr(line, ')');
    if (!is_read || name == nullptr || end == nullptr) return 0;
    const std::string text(name + 1, end);
    if (text == "hydra_pmi_proxy" || text == "pmi_proxy") return process;
    if (std::sscanf(end + 1, " %*c %d", &process) != 1) return 0;
  }
  return 0;
}

}  // namespace

std::string obstacle_of(const std::string& path) {
  char program[PATH_MAX];
  const char* const why = obstacle_in(path.c_str(), program);
  return why != nullptr ? std::string(program) + " " + why : "";
}

std::string several_nodes() {
  const struct {
    const char* all;
    const char* here;
  } counts[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                {"PMI_SIZE", "MPI_LOCALNRANKS"},
                {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"}};
  for (const auto& each : counts) {
    const long all = number_of(each.all);
    const long here = number_of(each.here);
    if (here > 0 && all > here)
      return std::to_string(here) + " of the job's " + std::to_string(all) + " ranks are on this node";
  }
  if (std::getenv("SLURM_PROCID") != nullptr && number_of("SLURM_STEP_NUM_NODES") > 1)
    return "the job step is on " + std::string(std::getenv("SLURM_STEP_NUM_NODES")) + " nodes";
  return {};
}

std::string group_name() {
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (const char* const text = std::getenv(name)) return text;
  if (std::getenv("SLURM_PROCID") != nullptr && std::getenv("SLURM_JOB_ID") != nullptr) {
    const char* const step = std::getenv("SLURM_STEP_ID");
    return std::string("slurm-") + std::getenv("SLURM_JOB_ID") + "." + (step != nullptr ? step : "0");
  }
  if (std::getenv("PMI_RANK") != nullptr) {
    // All of MPICH's ranks on a node descend from one proxy, but each may have a shell as its parent.
    const pid_t proxy = mpich_proxy();
    if (proxy > 0) return "proxy-" + std::to_string(proxy);
    if (number_of("PMI_SIZE") > 1) return {};
  }
  return "process-" + std::to_string(getpid());
}

std::string socket_name_of(const std::string& group) {
  constexpr std::size_t longest = 100;
  if (group.size() <= longest) return group;
  char sum[32];
  std::snprintf(sum, sizeof(sum), "-%016llx",
                static_cast<unsigned long long>(checksum(std::as_bytes(std::span(group)))));
  return group.substr(0, longest - std::strlen(sum)) + sum;
}

}  // namespace tailrace::run
