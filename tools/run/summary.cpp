// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstdio>
#include <string>

#include "keeper.hpp"

namespace tailrace::run {

namespace {

std::string bytes_text(std::uint64_t bytes) {
  char text[64];
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value,
                bytes == 1 ? "byte" : units[unit]);
  return text;
}

std::string counted(std::uint64_t number, const char* one, const char* more) {
  return std::to_string(number) + " " + (number == 1 ? one : more);
}

}  // namespace

/// Prints the lines of docs/run.md, which programs and tests read.
void Keeper::print_summary() const {
  const Traffic& traffic = pages_.traffic();
  if (paths_.empty()) {
    std::fprintf(stderr, "tailrace run: no program opened a file that --shared names\n");
    return;
  }
  std::fprintf(
      stderr,
      "tailrace run: %s: %s (%s) and %s (%s) of the programs became %s (%s) and %s (%s) of storage, and %s\n",
      counted(paths_.size(), "file", "files").c_str(), counted(writes_, "write", "writes").c_str(),
      bytes_text(written_bytes_).c_str(), counted(reads_, "read", "reads").c_str(),
      bytes_text(read_bytes_).c_str(), counted(traffic.stores, "write", "writes").c_str(),
      bytes_text(traffic.stored_bytes).c_str(), counted(traffic.loads, "read", "reads").c_str(),
      bytes_text(traffic.loaded_bytes).c_str(), counted(traffic.syncs, "fsync", "fsyncs").c_str());
  if (locks_refused_ + maps_refused_ + others_refused_ == 0) return;
  std::fprintf(stderr, "tailrace run: refused: %s, %s, %s\n",
               counted(locks_refused_, "lock", "locks").c_str(),
               counted(maps_refused_, "mapping", "mappings").c_str(),
               counted(others_refused_, "other call", "other calls").c_str());
}

}  // namespace tailrace::run
