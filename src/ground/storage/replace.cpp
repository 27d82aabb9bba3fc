// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/replace.hpp"

namespace tailrace::storage {

namespace {

/// Removes a file that is of no use after `failure`, which stays the error that is told.
Status without(Target& target, const std::string& path, Status failure) {
  static_cast<void>(remove_if_there(target, path));
  return failure;
}

Status write_new(Target& target, const std::string& path, std::span<const std::byte> bytes,
                 Durability durability) {
  const auto write = [&]() -> Status {
    const Result<std::unique_ptr<File>> file = target.open(path, OpenMode::anew);
    TR_TRY(file.status());
    TR_TRY((*file)->write(bytes, 0));
    if (durability != Durability::none) TR_TRY((*file)->sync());
    return (*file)->close();
  };
  Status written = write();
  return written.is_ok() ? written : without(target, path, std::move(written));
}

}  // namespace

Status write_durably(Target& target, const std::string& path, std::span<const std::byte> bytes) {
  return write_new(target, path, bytes, Durability::bytes_and_name);
}

Status rename_durably(Target& target, const std::string& from, const std::string& to) {
  TR_TRY(target.rename(from, to));
  return target.sync_directory_of(to);
}

Status replace_file(Target& target, const std::string& path, std::span<const std::byte> bytes,
                    const std::string& temporary, Durability durability) {
  TR_TRY(write_new(target, temporary, bytes, durability));
  Status renamed = target.rename(temporary, path);
  if (!renamed.is_ok()) return without(target, temporary, std::move(renamed));
  return durability == Durability::none ? Status() : target.sync_directory_of(path);
}

}  // namespace tailrace::storage
