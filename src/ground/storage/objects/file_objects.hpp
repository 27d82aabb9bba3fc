// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ground/storage/objects/keyed_objects.hpp"

namespace tailrace::storage {

/// The number of descriptors that objects in files keep open until they are durable, in all places of a
/// target together. Thread-safe.
using OpenDescriptors = std::atomic<int>;

/// Objects that are files: the place is a directory, a group is a directory in it. An object that is put
/// takes its name by a rename. An object that is written in parts has its name from the first part on.
class FileObjects final : public KeyedObjects {
 public:
  /// The most descriptors that stay open until sync(), in all places with the same `open`.
  static constexpr int most_open = 256;

  /// `reading` says what find() makes of names that are not those of regular files: with OpenMode::read an
  /// error, with OpenMode::read_regular no object.
  FileObjects(std::shared_ptr<Target> target, std::shared_ptr<OpenDescriptors> open, std::string directory,
              OpenMode reading = OpenMode::read)
      : target_(std::move(target)),
        open_(std::move(open)),
        directory_(std::move(directory)),
        reading_(reading) {}
  /// Returns the places that are directories of a target.
  static ObjectsAt at(const std::shared_ptr<Target>& target, OpenMode reading);

  [[nodiscard]] const std::string& place() const override { return directory_; }
  Result<bool> is_made() override { return target_->exists(directory_); }
  Status make() override;
  Status unmake() override { return target_->remove_directory(directory_); }
  Result<bool> make_group(const std::string& group) override;
  Status remove_group(const std::string& group) override;
  Result<bool> leads_elsewhere(const std::string& group) override { return target_->is_link(name_of(group)); }
  Result<std::unique_ptr<FoundObject>> find(const std::string& key) override;
  Result<bool> exists(const std::string& key) override { return target_->exists(name_of(key)); }
  Result<std::vector<std::string>> list(const std::string& group) override;
  [[nodiscard]] std::string_view finished_name(std::string_view name) const override;
  Status put(std::span<const Text> objects) override;
  Status write(const std::string& key, Bytes offset, Parts parts,
               std::span<const std::byte> begin = {}) override;
  Status copy_from(const std::string& place, const std::string& key, Bytes size) override;
  Status remove(const std::string& key) override;
  Status remove_if_there(const std::string& key) override;
  Status sync_keys() override;
  Status sync() override;
  void give_up_writes() override { written_.clear(); }

 private:
  struct Written {
    Written(std::unique_ptr<File> opened, OpenDescriptors& open)
        : file(std::move(opened)), descriptors(file->descriptors()), counted(open) {
      counted += descriptors;
    }
    ~Written() { counted -= descriptors; }
    Written(const Written&) = delete;
    Written& operator=(const Written&) = delete;
    std::unique_ptr<File> file;
    const int descriptors;
    OpenDescriptors& counted;
    /// Number of the last write to the object, counted over the place.
    std::int64_t number = 0;
  };
  Status unless_removed(const std::string& path, const Status& status);
  void keep_open(const std::string& path, std::unique_ptr<File> file);
  void close_oldest();
  void sync_and_close(const std::map<std::string, Written>& all);

  const std::shared_ptr<Target> target_;
  const std::shared_ptr<OpenDescriptors> open_;
  const std::string directory_;
  const OpenMode reading_;
  // The last descriptor of each object with bytes that are not durable yet. While a descriptor is open, the
  // system reports a failed write-back to the next fsync.
  std::map<std::string, Written> written_;
  std::int64_t writes_ = 0;
  std::set<std::string> names_;  // paths whose names, or whose removals, are not durable yet
  Status failure_;
};

}  // namespace tailrace::storage
