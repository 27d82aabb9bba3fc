// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "ground/storage/posix_system.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// A file descriptor, with the loops that POSIX calls need. `system` makes the calls.
class PosixFile final : public File {
 public:
  PosixFile(std::shared_ptr<System> system, int descriptor, std::string path);
  ~PosixFile() override;
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Status write_gathered(Parts parts, Bytes offset) override;
  std::unique_ptr<StartedWrite> start_write(Parts parts, Bytes offset, WriteQueue& queue) override;
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override;
  Status sync() override;
  void begin_write_back() override;
  Bytes next_data(Bytes offset) override;
  Status reserve(std::span<const Range> ranges) override;
  void give_back_room() override;
  Status truncate(Bytes size) override;
  Result<Bytes> size() override;
  std::optional<Rights> rights() override;
  Status set_owner(std::optional<unsigned> user, unsigned group) override;
  Status set_permissions(unsigned permissions) override;
  bool is_named(const std::string& path) override;
  FileNumber number() override;
  [[nodiscard]] int descriptors() const override { return 1 + system_->descriptors(); }
  Status close() override;

 private:
  Status check_open(const char* operation) const;
  void give_back() const;

  const std::shared_ptr<System> system_;
  const std::string path_;
  // Every call holds it shared, and close() exclusively: if a descriptor were closed during a write, it could
  // by then belong to another file.
  std::shared_mutex open_;
  int descriptor_;
  std::mutex sync_mutex_;
  Status sync_failure_;
};

class PosixTarget final : public Target {
 public:
  /// `system` makes the calls on names and directories. `per_file` returns the System for one file's data, or
  /// the reason why there is none.
  using PerFile = std::function<Result<std::shared_ptr<System>>()>;
  explicit PosixTarget(std::shared_ptr<System> system);
  PosixTarget(std::shared_ptr<System> system, PerFile per_file);

  using Target::open;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<Kind> kind_of(const std::string& path) override;
  Result<Identity> identity_of(const std::string& path) override;
  std::string behind_links(const std::string& path) override;
  Result<bool> is_link(const std::string& path) override;
  [[nodiscard]] std::optional<std::string> system_name(const std::string& path) override { return path; }
  Status make_directories(const std::string& path) override;
  Status sync_directory_of(const std::string& path) override;
  Status sync_files(std::span<File* const> files) override;
  Status sync_directories_of(std::span<const std::string> paths) override;
  Result<Space> space(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<std::shared_ptr<void>> lock(const std::string& path) override;
  Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) override;

 private:
  Status make_each_directory(const std::string& tidy);
  Status sync_directory(const std::string& directory);

  const std::shared_ptr<System> system_;
  const PerFile per_file_;
  std::mutex directories_mutex_;
};

/// Implements PosixTarget::lock.
Result<std::shared_ptr<void>> lock_file(const std::shared_ptr<System>& system, const std::string& path);
/// Implements PosixTarget::share_lock.
Result<std::shared_ptr<void>> share_lock_file(const std::shared_ptr<System>& system, const std::string& path,
                                              const std::shared_ptr<void>& own);

}  // namespace tailrace::storage
