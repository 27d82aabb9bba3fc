// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/paths.hpp"

#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

#include "ground/base/text.hpp"

namespace tailrace::storage {

std::string tidy_path(const std::string& path) {
  if (const std::size_t prefix = prefix_length(path); prefix > 0)
    return path.substr(0, prefix) + tidy_path("/" + path.substr(prefix)).substr(1);
  std::string tidy = std::filesystem::path(path).lexically_normal().string();
  while (tidy.size() > 1 && tidy.back() == '/') tidy.pop_back();
  return tidy.empty() ? "." : tidy;
}

std::string parent_of(const std::string& tidy) {
  const std::size_t slash = tidy.rfind('/');
  if (slash == std::string::npos) return ".";
  if (const std::size_t prefix = prefix_length(tidy); slash < prefix) return tidy.substr(0, prefix);
  return slash == 0 ? "/" : tidy.substr(0, slash);
}

Status with_missing_directory(const Status& status, const std::string& path) {
  const std::string directory = parent_of(tidy_path(path));
  std::error_code unknown;  // not needed: `status` has the error
  const bool missing = status.error_number() == ENOENT || status.error_number() == ENOTDIR;
  if (!missing || std::filesystem::is_directory(directory, unknown)) return status;
  std::string advice =
      cat("directory ", directory, " does not exist: make it with `mkdir -p ", directory, "`");
  if (status.error_number() == ENOTDIR) {
    std::string file = directory;
    while (!std::filesystem::exists(file, unknown) && parent_of(file) != file) file = parent_of(file);
    advice = cat(file, " is not a directory: move it away, or name another directory");
  }
  return {status.code(), cat(status.text(), "; ", advice), status.error_number()};
}

Status check_one_directory(const std::string& from, const std::string& to) {
  const std::string source = parent_of(tidy_path(from)), destination = parent_of(tidy_path(to));
  if (source == destination) return {};
  return {Code::argument, cat("rename ", from, " to ", to, ": both names must lie in one directory, got ",
                              source, " and ", destination)};
}

Status check_range(const char* operation, const std::string& path, std::int64_t offset, std::int64_t count) {
  if (offset >= 0 && count <= std::numeric_limits<std::int64_t>::max() - offset) return {};
  return {Code::argument, cat(operation, " ", path, ": ", count, " bytes at offset ", offset,
                              " is outside of what a file can hold (0 to 2^63 - 1)")};
}

}  // namespace tailrace::storage
