// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <set>

#include "base/text.hpp"
#include "sinks/sink.hpp"
#include "storage/paths.hpp"

namespace tailrace::sinks {

namespace {

constexpr std::string_view temporary_suffix = ".tailrace-tmp";

/// A key is a relative path of plain names. It can never lead out of its root nor name a temporary file.
Status check_key(const std::string& key) {
  for (std::size_t begin = 0, slash = 0; slash != std::string::npos; begin = slash + 1) {
    slash = key.find('/', begin);
    const std::string_view name = std::string_view(key).substr(begin, slash - begin);
    if (name.empty() || name == "." || name == ".." || name.ends_with(temporary_suffix)) {
      return {Code::argument, cat("object key \"", key,
                                  "\": expected names between single slashes, as in \"t/c/0/1\", "
                                  "got the name \"",
                                  name, "\"")};
    }
  }
  return {};
}

/// The order of a commit. It is the same for every kind of storage.
class OrderedObjects : public ObjectSink {
 public:
  Status put(const std::string& key, std::span<const std::byte> bytes) final {
    TR_TRY(check_key(key));
    const Status status = guarded([&] { return store(key, bytes); });
    const std::lock_guard guard(mutex_);
    if (failure_.is_ok()) failure_ = status;
    return status;
  }

  Status put_metadata(const std::string& key, std::span<const std::byte> bytes) final {
    TR_TRY(check_key(key));
    const std::lock_guard guard(mutex_);
    metadata_.emplace_back(key, ByteVector(bytes.begin(), bytes.end()));
    return {};
  }

  Status commit() final {
    Status failure;
    std::vector<std::pair<std::string, ByteVector>> metadata;
    {
      const std::lock_guard guard(mutex_);
      std::swap(failure, failure_);
      std::swap(metadata, metadata_);
    }
    TR_TRY(failure);
    TR_TRY(settle());
    // Each object is made durable before the next: two renames made durable together may survive a loss of
    // power in either order.
    for (const auto& [key, bytes] : metadata) {
      TR_TRY(store(key, bytes));
      TR_TRY(settle());
    }
    return {};
  }

 private:
  /// Replaces the object. Its contents are durable, and readers see the old or the new ones.
  virtual Status store(const std::string& key, std::span<const std::byte> bytes) = 0;
  /// Makes the names of everything stored durable.
  virtual Status settle() = 0;

  std::mutex mutex_;
  Status failure_;
  std::vector<std::pair<std::string, ByteVector>> metadata_;
};

class MemoryObjects final : public OrderedObjects {
 public:
  Result<ByteVector> get(const std::string& key) override {
    TR_TRY(check_key(key));
    const std::lock_guard guard(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) return io_error("open object", key, ENOENT);
    return found->second;
  }

  Result<std::vector<std::string>> keys() override {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> keys;
    for (const auto& [key, bytes] : objects_) keys.push_back(key);
    return keys;
  }

 private:
  Status store(const std::string& key, std::span<const std::byte> bytes) override {
    const std::lock_guard guard(mutex_);
    TR_TRY(check_place(key));
    objects_[key].assign(bytes.begin(), bytes.end());
    return {};
  }
  /// As in a file system, a name cannot be an object and the directory of other objects at once.
  Status check_place(const std::string& key) const {
    const std::string below = key + "/";
    const auto next = objects_.lower_bound(below);
    if (next != objects_.end() && next->first.starts_with(below)) return io_error("put object", key, EISDIR);
    for (std::size_t slash = key.find('/'); slash != std::string::npos; slash = key.find('/', slash + 1)) {
      if (objects_.contains(key.substr(0, slash))) return io_error("put object", key, ENOTDIR);
    }
    return {};
  }
  Status settle() override { return {}; }

  std::mutex mutex_;
  std::map<std::string, ByteVector> objects_;
};

class TargetObjects final : public OrderedObjects {
 public:
  TargetObjects(std::shared_ptr<storage::Target> target, std::string root)
      : target_(std::move(target)), root_(std::move(root)) {}

  Result<ByteVector> get(const std::string& key) override {
    TR_TRY(check_key(key));
    auto file = target_->open(path_of(key), storage::OpenMode::read);
    if (!file.is_ok()) return file.status();
    const auto size = (*file)->size();
    if (!size.is_ok()) return size.status();
    ByteVector bytes(static_cast<std::size_t>(*size));
    const auto got = (*file)->read(bytes, 0);
    if (!got.is_ok()) return got.status();
    bytes.resize(static_cast<std::size_t>(*got));
    return bytes;
  }

  Result<std::vector<std::string>> keys() override {
    std::vector<std::string> keys;
    const Status status = collect("", keys);
    // A root that was never put into holds nothing.
    if (!status.is_ok() && status.error_number() != ENOENT) return status;
    std::sort(keys.begin(), keys.end());
    return keys;
  }

 private:
  std::string path_of(const std::string& key) const { return cat(root_, "/", key); }

  Status store(const std::string& key, std::span<const std::byte> bytes) override {
    const std::string path = path_of(key), temporary = path + std::string(temporary_suffix);
    TR_TRY(prepare_directory(storage::parent_of(path)));
    Status status = write_file(temporary, bytes);
    if (status.is_ok()) status = target_->rename(temporary, path);
    if (status.is_ok()) {
      const std::lock_guard guard(mutex_);
      unsettled_.insert(storage::parent_of(path));
      return {};
    }
    // Only the first error counts. A temporary file that stays is overwritten by the next put.
    (void)target_->remove(temporary);
    return status.in(cat("object \"", key, "\""));
  }

  Status settle() override {
    std::set<std::string> directories;
    {
      const std::lock_guard guard(mutex_);
      std::swap(directories, unsettled_);
    }
    for (const std::string& directory : directories) {
      const Status status = target_->sync_directory_of(directory + "/entry");
      if (status.is_ok()) continue;
      const std::lock_guard guard(mutex_);
      unsettled_.merge(directories);
      return status;
    }
    return {};
  }

  Status prepare_directory(const std::string& directory) {
    {
      const std::lock_guard guard(mutex_);
      if (prepared_.contains(directory)) return {};
    }
    TR_TRY(target_->make_directories(directory));
    const std::lock_guard guard(mutex_);
    prepared_.insert(directory);
    return {};
  }

  Status write_file(const std::string& path, std::span<const std::byte> bytes) {
    auto file = target_->open(path, storage::OpenMode::create);
    if (!file.is_ok()) return file.status();
    TR_TRY((*file)->write(bytes, 0));
    TR_TRY((*file)->sync());
    return (*file)->close();
  }

  Status collect(const std::string& prefix, std::vector<std::string>& keys) {
    const auto names = target_->list(prefix.empty() ? root_ : path_of(prefix));
    if (!names.is_ok()) return names.status();
    for (const std::string& name : *names) {
      if (name.ends_with(temporary_suffix)) continue;
      const std::string key = prefix.empty() ? name : cat(prefix, "/", name);
      const Status below = collect(key, keys);
      if (below.error_number() == ENOTDIR) {
        keys.push_back(key);
      } else {
        TR_TRY(below);
      }
    }
    return {};
  }

  const std::shared_ptr<storage::Target> target_;
  const std::string root_;
  std::mutex mutex_;
  std::set<std::string> prepared_;
  std::set<std::string> unsettled_;  // directories in which renames are not durable yet
};

}  // namespace

std::unique_ptr<ObjectSink> memory_objects() { return std::make_unique<MemoryObjects>(); }

std::unique_ptr<ObjectSink> target_objects(std::shared_ptr<storage::Target> target, std::string root) {
  return std::make_unique<TargetObjects>(std::move(target), storage::tidy_path(root));
}

}  // namespace tailrace::sinks
