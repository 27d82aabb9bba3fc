// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "compat/environment.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"

extern "C" char** environ;

namespace tailrace::compat {

namespace {

struct OlderName {
  std::string_view older;
  std::string_view ours;
};

constexpr std::array older_names{
    OlderName{"DVMH_PARALLEL_IO_THRES", "TAILRACE_PARALLEL_THRESHOLD"},
    OlderName{"DVMH_IO_BUF_SIZE", "TAILRACE_IO_BUFFER"},
    OlderName{"DVMH_IO_THREAD_COUNT", "TAILRACE_IO_THREADS"},
};

/// Returns the value of `name`, or "" if it is not set (or empty, which says nothing either).
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

std::vector<std::string> environment() {
  std::vector<std::string> own;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) own.emplace_back(*entry);
  return translated(std::move(own));
}

}  // namespace tailrace::compat
