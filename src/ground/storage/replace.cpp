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

template <typename Cut>
Result<Bytes> with_open(Target& target, const std::string& path, OpenMode mode, const Cut& cut) {
  const Result<std::unique_ptr<File>> file = target.open(path, mode);
  TR_TRY(file.status());
  Result<Bytes> bytes = cut(**file);
  TR_TRY(bytes.status());
  TR_TRY((*file)->close());
  return bytes;
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

Result<Bytes> cut_back(File& file, Bytes size) {
  const Result<Bytes> before = file.size();
  TR_TRY(before.status());
  if (*before <= size) return Bytes{0};
  TR_TRY(file.truncate(size));
  return *before - size;
}

Result<Bytes> cut_back(Target& target, const std::string& path, Bytes size, OpenMode mode) {
  return with_open(target, path, mode, [&](File& file) { return cut_back(file, size); });
}

Result<Bytes> cut_back_durably(File& file, Bytes size) {
  Result<Bytes> cut = cut_back(file, size);
  TR_TRY(cut.status());
  if (*cut > 0) TR_TRY(file.sync());
  return cut;
}

Result<Bytes> cut_back_durably(Target& target, const std::string& path, Bytes size, OpenMode mode) {
  return with_open(target, path, mode, [&](File& file) { return cut_back_durably(file, size); });
}

}  // namespace tailrace::storage
