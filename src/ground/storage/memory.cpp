// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>

#include "ground/base/text.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::storage {

namespace {

class MemoryFile final : public File {
 public:
  MemoryFile(std::shared_ptr<MemoryInode> inode, std::string path, bool writable)
      : inode_(std::move(inode)), path_(std::move(path)), writable_(writable) {}

  Status write_gathered(Parts parts, Bytes offset) override {
    TR_TRY(check_writable("write"));
    TR_TRY(check_range("write", path_, offset, bytes_in(parts)));
    return guarded([&] { return put(parts, offset); }).in(path_);
  }

  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    TR_TRY(check_open("read"));
    TR_TRY(check_range("read", path_, offset, static_cast<Bytes>(data.size())));
    const std::lock_guard guard(inode_->mutex);
    return inode_->now.read(data, offset);
  }

  Status sync() override {
    TR_TRY(check_open("sync"));
    const std::lock_guard guard(inode_->mutex);
    for (const ContentChange& change : inode_->unsynced) {
      if (change.cut) {
        inode_->durable.resize(change.offset);
      } else {
        inode_->durable.write(change.bytes, change.offset);
      }
    }
    inode_->unsynced.clear();
    return {};
  }

  Status truncate(Bytes size) override {
    TR_TRY(check_writable("truncate"));
    TR_TRY(check_range("truncate", path_, size, 0));
    const std::lock_guard guard(inode_->mutex);
    inode_->now.resize(size);
    if (inode_->journalled) inode_->unsynced.push_back({true, size, {}});
    return {};
  }

  Result<Bytes> size() override {
    TR_TRY(check_open("size"));
    const std::lock_guard guard(inode_->mutex);
    return inode_->now.size();
  }

  /// Returns the inode's address, because ranks in one process, as in the simulation, share files.
  FileNumber number() override { return {0, reinterpret_cast<std::uintptr_t>(inode_.get())}; }

  Status close() override {
    TR_TRY(check_open("close"));
    open_ = false;
    return {};
  }

 private:
  Status check_open(const char* operation) const {
    if (open_) return {};
    return {Code::state, cat(operation, " ", path_, ": the file is closed")};
  }
  Status check_writable(const char* operation) const {
    TR_TRY(check_open(operation));
    return writable_ ? Status() : io_error(operation, path_, EBADF);
  }

  Status put(Parts parts, Bytes offset) {
    const std::lock_guard guard(inode_->mutex);
    for (const auto& part : parts) {
      if (part.empty()) continue;
      inode_->now.write(part, offset);
      if (inode_->journalled) inode_->unsynced.push_back({false, offset, {part.begin(), part.end()}});
      offset += static_cast<Bytes>(part.size());
    }
    return {};
  }

  const std::shared_ptr<MemoryInode> inode_;
  const std::string path_;
  const bool writable_;
  std::atomic<bool> open_ = true;
};

Status held_here(const std::string& path) {
  return {Code::state, cat("lock ", path, ": held by this process, pid ",
                           static_cast<std::int64_t>(::getpid()), "; wait until that user is done")};
}

}  // namespace

MemoryTarget::MemoryTarget(bool journalled) : journalled_(journalled) {
  for (const TargetKind& kind : target_kinds()) {
    if (!kind.prefix.empty()) directories_.emplace(kind.prefix);
  }
}

Status MemoryTarget::check_parent(const char* operation, const std::string& path) const {
  if (directories_.contains(parent_of(path))) return {};
  return io_error(operation, path, files_.contains(parent_of(path)) ? ENOTDIR : ENOENT);
}

void MemoryTarget::change(EntryChange change) {
  if (!change.erased.empty()) files_.erase(change.erased);
  if (!change.set.empty()) files_[change.set] = change.inode;
  if (journalled_) unsynced_.push_back(std::move(change));
}

Result<std::unique_ptr<File>> MemoryTarget::open(const std::string& path, OpenMode mode,
                                                 unsigned /*permissions*/) {
  const char* verb = empties(mode) ? "create" : "open";
  const std::string tidy = tidy_path(path);
  const std::lock_guard guard(mutex_);
  if (directories_.contains(tidy))
    return io_error(verb, path, mode == OpenMode::read_regular ? ENOENT : EISDIR);
  TR_TRY(check_parent(verb, tidy));
  auto found = files_.find(tidy);
  if (found == files_.end() || mode == OpenMode::anew) {
    if (!makes(mode)) return io_error(verb, path, ENOENT);
    auto inode = std::make_shared<MemoryInode>();
    inode->journalled = journalled_;
    change({parent_of(tidy), "", tidy, inode});
    found = files_.find(tidy);
  }
  auto file = std::make_unique<MemoryFile>(found->second, path, !only_reads(mode));
  if (mode == OpenMode::create) TR_TRY(file->truncate(0));
  return std::unique_ptr<File>(std::move(file));
}

Status MemoryTarget::rename(const std::string& from, const std::string& to) {
  TR_TRY(check_one_directory(from, to));
  const std::string source = tidy_path(from), destination = tidy_path(to);
  const std::lock_guard guard(mutex_);
  TR_TRY(check_parent("rename", source));
  const auto found = files_.find(source);
  if (directories_.contains(source)) {
    if (files_.contains(destination)) return io_error("rename", cat(from, " to ", to), ENOTDIR);
    if (source != destination && directories_.contains(destination) && !is_empty(destination))
      return io_error("rename", cat(from, " to ", to), ENOTEMPTY);
    if (source != destination) move_directory(source, destination);
    return {};
  }
  if (directories_.contains(destination)) return io_error("rename", cat(from, " to ", to), EISDIR);
  if (found == files_.end()) return io_error("rename", cat(from, " to ", to), ENOENT);
  if (source != destination) change({parent_of(source), source, destination, found->second});
  return {};
}

bool MemoryTarget::is_empty(const std::string& directory) const {
  const std::string below = directory + "/";
  const auto file = files_.lower_bound(below);
  const auto other = directories_.lower_bound(below);
  return (file == files_.end() || !file->first.starts_with(below)) &&
         (other == directories_.end() || !other->starts_with(below));
}

std::string path_behind(const std::string& path, const std::string& from, const std::string& to) {
  return path == from || path.starts_with(from + "/") ? to + path.substr(from.size()) : path;
}

void rename_below(MemoryFiles& files, const std::string& from, const std::string& to) {
  MemoryFiles now;
  for (const auto& [path, inode] : files) now.emplace(path_behind(path, from, to), inode);
  files = std::move(now);
}

void rename_below(std::set<std::string>& directories, const std::string& from, const std::string& to) {
  std::set<std::string> now;
  for (const std::string& path : directories) now.insert(path_behind(path, from, to));
  directories = std::move(now);
}

void MemoryTarget::move_directory(const std::string& from, const std::string& to) {
  for (MemoryFiles* const files : {&files_, &durable_files_}) rename_below(*files, from, to);
  rename_below(directories_, from, to);
  for (EntryChange& change : unsynced_) {
    for (std::string* const path : {&change.directory, &change.erased, &change.set})
      *path = path_behind(*path, from, to);
  }
  if (journalled_) moved_.push_back({from, to});
}

void MemoryTarget::settle_directories_in(const std::string& directory) {
  std::erase_if(moved_, [&](const DirectoryChange& each) { return parent_of(each.from) == directory; });
}

Status MemoryTarget::remove_directory(const std::string& path) {
  const std::string tidy = tidy_path(path);
  const std::lock_guard guard(mutex_);
  if (!directories_.contains(tidy))
    return io_error("remove directory", path, files_.contains(tidy) ? ENOTDIR : ENOENT);
  if (!is_empty(tidy)) return io_error("remove directory", path, ENOTEMPTY);
  directories_.erase(tidy);
  DirectoryChange removed{tidy, ""};
  for (const EntryChange& change : unsynced_) {
    if (change.directory == tidy) removed.unsynced.push_back(change);
  }
  for (const auto& each : durable_files_) {
    if (parent_of(each.first) == tidy) removed.files.insert(each);
  }
  std::erase_if(unsynced_, [&](const EntryChange& change) { return change.directory == tidy; });
  std::erase_if(durable_files_, [&](const auto& each) { return parent_of(each.first) == tidy; });
  if (journalled_) moved_.push_back(std::move(removed));
  return {};
}

Status MemoryTarget::remove(const std::string& path) {
  const std::string tidy = tidy_path(path);
  const std::lock_guard guard(mutex_);
  if (directories_.contains(tidy)) return io_error("remove", path, EISDIR);
  if (!files_.contains(tidy)) return io_error("remove", path, ENOENT);
  change({parent_of(tidy), tidy, "", nullptr});
  return {};
}

Result<bool> MemoryTarget::exists(const std::string& path) {
  const std::string tidy = tidy_path(path);
  const std::lock_guard guard(mutex_);
  return directories_.contains(tidy) || files_.contains(tidy);
}

Result<Kind> MemoryTarget::kind_of(const std::string& path) {
  const std::string tidy = tidy_path(path);
  const std::lock_guard guard(mutex_);
  if (directories_.contains(tidy)) return Kind::directory;
  return files_.contains(tidy) ? Kind::file : Kind::nothing;
}

Status MemoryTarget::make_directories(const std::string& path) {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> missing;
  for (std::string tidy = tidy_path(path); !directories_.contains(tidy); tidy = parent_of(tidy)) {
    if (files_.contains(tidy)) return io_error("make directory", tidy, ENOTDIR);
    missing.push_back(tidy);
    if (parent_of(tidy) == tidy) break;  // the root that a prefix is
  }
  directories_.insert(missing.begin(), missing.end());
  for (const std::string& each : missing) settle_directories_in(parent_of(each));
  return {};
}

Status MemoryTarget::sync_directory_of(const std::string& path) {
  const std::string tidy = tidy_path(path), directory = parent_of(tidy);
  const std::lock_guard guard(mutex_);
  TR_TRY(check_parent("fsync directory", tidy));
  for (const EntryChange& change : unsynced_) {
    if (change.directory != directory) continue;
    if (!change.erased.empty()) durable_files_.erase(change.erased);
    if (!change.set.empty()) durable_files_[change.set] = change.inode;
  }
  std::erase_if(unsynced_, [&](const EntryChange& change) { return change.directory == directory; });
  settle_directories_in(directory);
  return {};
}

Result<Space> MemoryTarget::space(const std::string&) { return Space{std::numeric_limits<Bytes>::max(), 1}; }

Result<std::vector<std::string>> MemoryTarget::list(const std::string& directory) {
  const std::string tidy = tidy_path(directory);
  const std::lock_guard guard(mutex_);
  if (!directories_.contains(tidy)) return io_error("list", tidy, files_.contains(tidy) ? ENOTDIR : ENOENT);
  std::vector<std::string> names;
  const auto add = [&](const std::string& path) {
    if (path != tidy && parent_of(path) == tidy) names.push_back(path.substr(path.rfind('/') + 1));
  };
  for (const auto& [path, inode] : files_) add(path);
  for (const std::string& path : directories_) add(path);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::shared_ptr<void>> MemoryTarget::lock(const std::string& path) {
  const std::string tidy = tidy_path(path);
  {
    const std::lock_guard guard(mutex_);
    TR_TRY(check_parent("lock", tidy));
    if (directories_.contains(tidy)) return io_error("lock", path, EISDIR);
    if (files_.contains(tidy)) {
      return Status(Code::argument, cat("lock ", path,
                                        ": the file exists and is no lock file; it is left untouched, "
                                        "choose another name or remove it"));
    }
  }
  const std::lock_guard guard(locks_->mutex);
  if (!locks_->held.emplace(tidy, 0).second) return held_here(path);
  return std::shared_ptr<void>(locks_.get(), [locks = locks_, tidy](void*) {
    const std::lock_guard release(locks->mutex);
    locks->held.erase(tidy);
  });
}

Result<std::shared_ptr<void>> MemoryTarget::share_lock(const std::string& path, std::shared_ptr<void> own) {
  own.reset();
  const std::string tidy = tidy_path(path);
  const std::lock_guard guard(locks_->mutex);
  const auto [held, is_new] = locks_->held.emplace(tidy, 1);
  if (!is_new && held->second == 0) return held_here(path);
  if (!is_new) ++held->second;
  return std::shared_ptr<void>(locks_.get(), [locks = locks_, tidy](void*) {
    const std::lock_guard release(locks->mutex);
    if (--locks->held[tidy] == 0) locks->held.erase(tidy);
  });
}

std::shared_ptr<Target> memory_target() { return std::make_shared<MemoryTarget>(false); }

}  // namespace tailrace::storage
