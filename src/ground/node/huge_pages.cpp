// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/huge_pages.hpp"

#include <charconv>
#include <fstream>
#include <sstream>

#include "ground/base/text.hpp"

namespace tailrace::node {

namespace {

/// Reads the first address of a line such as "7f00c0000000-7f00c0400000 rw-s ...", which begins a mapping.
/// Returns false for other lines: they begin with the name of a field, in a capital letter.
bool begins_mapping(const std::string& line, std::uintptr_t& address) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
  return error == std::errc{} && end != line.data() + line.size() && *end == '-';
}

}  // namespace

Bytes huge_bytes_in(std::istream& smaps, std::uintptr_t from, std::uintptr_t to) {
  Bytes total = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    if (std::uintptr_t address = 0; begins_mapping(line, address)) inside = from <= address && address < to;
    if (!inside || !line.starts_with("ShmemPmdMapped:")) continue;
    Bytes kibibytes = 0;
    if (std::istringstream(line.substr(line.find(':') + 1)) >> kibibytes) total += kibibytes * 1024;
  }
  return total;
}

std::string huge_page_setting() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string line;
  std::getline(file, line);
  // The word in brackets is the current setting: "always [never]".
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos) return "not there";
  return line.substr(open + 1, close - open - 1);
}

std::string huge_page_text(Bytes granted, Bytes asked, const std::string& setting) {
  const std::string text = cat("huge pages for ", granted, " of ", asked, " bytes of staging");
  if (granted == asked) return text;
  const bool refused = setting == "never" || setting == "deny" || setting == "not there";
  return cat(text, "; /sys/kernel/mm/transparent_hugepage/shmem_enabled is ", setting,
             refused ? ", advise or always would grant them" : "");
}

}  // namespace tailrace::node
