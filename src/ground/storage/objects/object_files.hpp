// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "ground/storage/objects/object_service.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

struct ObjectFileContent;

/// Small files that are objects of a service: the index, the lock and whatever else lies beside a store. A
/// file's bytes are kept in memory from the first write on, shared by all who have it open in this process,
/// and sync() or close() puts the whole object: other processes find the file as it was before or as it is
/// then. If another process has put or removed the object meanwhile, sync() fails with Code::state, and that
/// process's object stays. A file that is closed by its destructor loses what was not synchronised, as in a
/// kill. Directories are what names begin with: each of them exists, or comes to be with its first file. A
/// rename puts the new name before it removes the old one, and a kill in between leaves both.
class ObjectFiles final : public Target {
 public:
  /// The most bytes of a file: each sync() puts all of them.
  static constexpr Bytes most_bytes = Bytes{256} << 20;

  /// `kind` names the kind of the place in errors.
  ObjectFiles(std::shared_ptr<ObjectService> service, std::string_view kind)
      : service_(std::move(service)), kind_(kind) {}

  using Target::open;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<Kind> kind_of(const std::string& path) override;
  Status make_directories(const std::string& path) override;
  Status sync_directory_of(const std::string& path) override;
  Result<Space> space(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<std::shared_ptr<void>> lock(const std::string& path) override;
  /// Returns Code::unsupported: the files that several processes write at once are no small files.
  Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) override;

 private:
  using Content = std::shared_ptr<ObjectFileContent>;
  /// Returns what users of the file in this process share, or null if nobody has it open.
  Content in_use(const std::string& name);
  Content shared_content(const std::string& name);
  Status keep_bytes(ObjectFileContent& content);
  Result<bool> has_file(const std::string& name);
  Result<bool> has_below(const std::string& name);

  const std::shared_ptr<ObjectService> service_;
  const std::string kind_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<ObjectFileContent>> open_;
};

/// Returns a target that hands names of places of whole objects (places.hpp) on to small files there, and all
/// other names to `below`.
std::shared_ptr<Target> with_object_files(std::shared_ptr<Target> below);
/// Returns a target that refuses names of places of whole objects with Code::unsupported, and hands all other
/// names on to `below`: for files that a place of objects cannot hold, such as checkpoints.
std::shared_ptr<Target> without_object_files(std::shared_ptr<Target> below);

}  // namespace tailrace::storage
