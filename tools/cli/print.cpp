// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "commands.hpp"
#include "formats/index/index.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cli {

int report(const char* command, const Status& status) {
  std::fprintf(stderr, "tailrace %s: %s\n", command, status.text().c_str());
  switch (status.code()) {
    case Code::argument:
    case Code::settings:
    case Code::format:
      return Exit::usage;
    case Code::timeout:
      return Exit::timed_out;
    case Code::corrupt:
      return Exit::corrupt;
    default:
      return Exit::failed;
  }
}

std::size_t width_of_output() {
  constexpr std::size_t usual = 100, least = 40;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return usual;
  return std::max<std::size_t>(size.ws_col, least);
}

std::string duration_text(std::int64_t seconds) {
  if (seconds < 0) return "-" + duration_text(-seconds);
  std::string out;
  if (seconds >= 3600) out += cat(seconds / 3600, "h");
  if (seconds / 60 % 60 != 0) out += cat(seconds / 60 % 60, "m");
  if (seconds % 60 != 0 || out.empty()) out += cat(seconds % 60, "s");
  return out;
}

std::string at_text(const TimeAxis& times, std::int64_t lead) {
  return times.is_default() ? "lead " + duration_text(lead) : times.at(lead);
}

std::string data_path_of(std::string path) {
  // A shell completes the name of a store, which is a directory, with a slash.
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  for (const std::string& ending : {streams::index_path(""), streams::old_index_path("")}) {
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  return path;
}

}  // namespace tailrace::cli
