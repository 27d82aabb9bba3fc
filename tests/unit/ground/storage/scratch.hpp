// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "ground/base/bytes.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// A new directory on disk. The destructor removes it.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "tailrace-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline ByteVector bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns the whole contents of a file, or a text "error: ..." with the reason.
inline std::string contents_of(Target& target, const std::string& path) {
  auto file = target.open(path, OpenMode::read);
  if (!file.is_ok()) return "error: " + file.status().text();
  const auto size = (*file)->size();
  if (!size.is_ok()) return "error: " + size.status().text();
  ByteVector bytes(static_cast<std::size_t>(*size));
  const auto got = (*file)->read(bytes, 0);
  if (!got.is_ok()) return "error: " + got.status().text();
  bytes.resize(static_cast<std::size_t>(*got));
  return text_of(bytes);
}

/// Makes a file with these contents. The contents and the name are durable afterwards.
inline Status put_file(Target& target, const std::string& path, std::string_view text) {
  auto file = target.open(path, OpenMode::create);
  if (!file.is_ok()) return file.status();
  TR_TRY((*file)->write(bytes_of(text), 0));
  TR_TRY((*file)->sync());
  TR_TRY((*file)->close());
  return target.sync_directory_of(path);
}

}  // namespace tailrace::storage
