// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/compat/environment.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/settings/settings.hpp"

extern "C" char** environ;

namespace tailrace::compat {

namespace {

struct OlderName {
  std::string_view older;
  std::string_view ours;
};

constexpr std::string_view prefix = "TAILRACE_";

constexpr std::array older_names{
    OlderName{"DVMH_PARALLEL_IO_THRES", "TAILRACE_PARALLEL_THRESHOLD"},
    OlderName{"DVMH_IO_BUF_SIZE", "TAILRACE_IO_BUFFER"},
    OlderName{"DVMH_IO_THREAD_COUNT", "TAILRACE_IO_THREADS"},
};

/// Returns the value of `name`, or "" if it is not set. An empty value counts as not set.
std::string value_of(const std::vector<std::string>& environment, std::string_view name) {
  const std::string begin = cat(name, "=");
  const auto found = std::find_if(environment.begin(), environment.end(),
                                  [&](const std::string& entry) { return entry.starts_with(begin); });
  return found == environment.end() ? "" : found->substr(begin.size());
}

}  // namespace

std::vector<std::string> translated(std::vector<std::string> environment) {
  for (const OlderName& name : older_names) {
    const std::string value = value_of(environment, name.older);
    if (value.empty() || !value_of(environment, name.ours).empty()) continue;
    environment.push_back(cat(name.ours, "=", value));
  }
  return environment;
}

std::vector<std::string> environment() { return translated(plain_environment()); }

std::vector<std::string> plain_environment() {
  std::vector<std::string> own;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) own.emplace_back(*entry);
  return own;
}

Status as_given(const Status& status, const std::vector<std::string>& environment) {
  for (const OlderName& name : older_names) {
    const std::string setting = cat(name.ours, "=");
    if (value_of(environment, name.older).empty() || !value_of(environment, name.ours).empty()) continue;
    if (status.text().starts_with(setting))
      return {status.code(),
              cat(name.older, "=", status.text().substr(setting.size()), " (it stands for ", name.ours, ")")};
  }
  return status;
}

std::vector<std::string> near_misses(const std::vector<std::string>& environment) {
  std::vector<std::string> lines;
  for (const std::string& entry : environment) {
    const std::string variable = entry.substr(0, entry.find('='));
    if (variable.starts_with(prefix)) continue;
    for (const SettingInfo& setting : all_settings()) {
      const std::string name = environment_name(setting.name);
      if (edit_distance(upper_case(variable), name) > 2) continue;
      lines.push_back(
          cat("the environment variable ", variable, " means nothing to Tailrace; did you mean ", name, "?"));
      break;
    }
  }
  return lines;
}

std::string other_launcher(const std::vector<std::string>& environment) {
  constexpr std::array<std::string_view, 4> sizes{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
                                                  "SLURM_STEP_NUM_TASKS"};
  for (const std::string_view size : sizes) {
    const Result<std::int64_t> ranks =
        parse_integer(value_of(environment, size), 2, std::numeric_limits<int>::max());
    if (!ranks.is_ok()) continue;
    return cat(
        "MPI_COMM_WORLD has 1 rank, but ", size, "=", *ranks,
        ": another MPI's launcher seems to have started this program, as ", *ranks,
        " jobs of one rank each, which lock each other out of their files. Start it with the mpirun of "
        "the MPI that it was built with");
  }
  return "";
}

}  // namespace tailrace::compat
