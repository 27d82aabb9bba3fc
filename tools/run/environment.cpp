// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "launch.hpp"

namespace tailrace::run {

namespace {

long number_of(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atol(text) : 0;
}

/// Returns true if the program names a loader, which alone preloads libraries.
bool names_loader(std::FILE* file, const Elf64_Ehdr& head) {
  for (int each = 0; each < head.e_phnum; ++each) {
    Elf64_Phdr part = {};
    const auto at = static_cast<long>(head.e_phoff + static_cast<std::uint64_t>(each) * head.e_phentsize);
    if (std::fseek(file, at, SEEK_SET) != 0 || std::fread(&part, sizeof(part), 1, file) != 1) return true;
    if (part.p_type == PT_INTERP) return true;
  }
  return false;
}

std::string obstacle_at_depth(const std::string& path, int depth) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0 || depth > 4) return {};
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0)
    return path + " is setuid or setgid: the system preloads nothing into such programs";
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return {};
  Elf64_Ehdr head = {};
  char line[256] = {};
  const bool has_head = std::fread(&head, sizeof(head), 1, file) == 1;
  std::memcpy(line, &head, 2);
  std::string why;
  if (has_head && std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0) {
    if (head.e_ident[EI_CLASS] != ELFCLASS64)
      why = path + " is no 64-bit program: its calls have other sizes";
    if (why.empty() && !names_loader(file, head))
      why = path + " is linked statically: nothing can be preloaded into it; link it dynamically";
  } else if (std::memcmp(line, "#!", 2) == 0 && std::fseek(file, 2, SEEK_SET) == 0 &&
             std::fgets(line, sizeof(line), file) != nullptr) {
    const char* const begin = line + std::strspn(line, " \t");
    why = obstacle_at_depth(std::string(begin, std::strcspn(begin, " \t\n")), depth + 1);
  }
  std::fclose(file);
  return why;
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
    // "PID (NAME) STATE PARENT ...", where a name may have spaces and brackets, and ends after 15 letters.
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

std::string obstacle_of(const std::string& path) { return obstacle_at_depth(path, 0); }

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
    // MPICH's ranks on a node have one ancestor: each may have a shell of its own in between.
    const pid_t proxy = mpich_proxy();
    if (proxy > 0) return "proxy-" + std::to_string(proxy);
    if (number_of("PMI_SIZE") > 1) return {};
  }
  return "process-" + std::to_string(getpid());
}

}  // namespace tailrace::run
