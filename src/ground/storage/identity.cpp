// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "ground/storage/paths.hpp"

namespace tailrace::storage {

FileNumber number_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino)};
}

bool shows_changes(const Identity& identity) {
  // Network file systems use the clock of a server, which may be a little behind.
  constexpr std::int64_t granularity = 50'000'000;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() >= identity.changed + granularity;
}

Result<std::string> whole_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path.c_str(), nullptr), &std::free);
  if (found == nullptr) return io_error("realpath", path, errno);
  return std::string(found.get());
}

std::string path_from_root(const std::string& path) {
  if (path.starts_with('/') || prefix_length(path) > 0) return path;
  const std::unique_ptr<char, decltype(&std::free)> here(::getcwd(nullptr, 0), &std::free);
  return here == nullptr ? path : std::string(here.get()) + "/" + path;
}

}  // namespace tailrace::storage
