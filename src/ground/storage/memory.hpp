// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/storage/sparse_bytes.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// One change of a file's contents since its last sync.
struct ContentChange {
  bool cut = false;  // sets the size to `offset`; otherwise puts `bytes` at `offset`
  Bytes offset = 0;
  ByteVector bytes;
};

struct MemoryInode {
  std::mutex mutex;
  SparseBytes now;
  // The members below are used only if the target is journalled, to simulate a loss of power.
  bool journalled = false;
  SparseBytes durable;
  std::vector<ContentChange> unsynced;
};

using MemoryFiles = std::map<std::string, std::shared_ptr<MemoryInode>>;  // tidy path -> inode

/// One change of a directory since its last sync: the name `erased` goes and the name `set` comes, both or
/// neither.
struct EntryChange {
  std::string directory;
  std::string erased;
  std::string set;
  std::shared_ptr<MemoryInode> inode;  // the inode named `set`
};

/// Returns the path that `path` gets when the directory `from` is renamed to `to`.
std::string path_behind(const std::string& path, const std::string& from, const std::string& to);
/// Rename the directory `from` and everything in it.
void rename_below(MemoryFiles& files, const std::string& from, const std::string& to);
void rename_below(std::set<std::string>& directories, const std::string& from, const std::string& to);

/// One change of a directory's own name since the last sync of the directory above it.
struct DirectoryChange {
  std::string from;
  std::string to;  // empty: removed
  // The content of a removed directory: its durable files, and the changes of its entries that were not
  // durable.
  MemoryFiles files{};
  std::vector<EntryChange> unsynced{};
};

/// A tree of files in memory. If `journalled`, it also keeps the changes that are not durable yet, for the
/// CrashTarget of the tests.
class MemoryTarget : public Target {
 public:
  explicit MemoryTarget(bool journalled);

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
  Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) override;

 protected:
  // The functions below expect mutex_ to be held; paths are tidy.
  Status check_parent(const char* operation, const std::string& path) const;
  void change(EntryChange change);
  [[nodiscard]] bool is_empty(const std::string& directory) const;
  void move_directory(const std::string& from, const std::string& to);
  void settle_directories_in(const std::string& directory);

  struct Locks {
    std::mutex mutex;
    std::map<std::string, int> held;  // number of shares; 0: one user has the whole lock
  };

  const bool journalled_;
  mutable std::mutex mutex_;
  std::set<std::string> directories_{".", "/"};
  MemoryFiles files_;
  MemoryFiles durable_files_;
  std::vector<EntryChange> unsynced_;
  /// In order. The names in all other members are those of now.
  std::vector<DirectoryChange> moved_;
  const std::shared_ptr<Locks> locks_ = std::make_shared<Locks>();
};

}  // namespace tailrace::storage
