// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/stores/stores.hpp"

#include <cerrno>
#include <mutex>
#include <set>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/forwarding.hpp"

#ifdef TAILRACE_HAVE_ZARR
#include "formats/stores/store_file.hpp"
#endif

namespace tailrace::stores {

namespace {

constexpr std::string_view again_ending = ".zarr.again";

}  // namespace

bool is_store(std::string_view path) { return path.ends_with(ending) || path.ends_with(again_ending); }

#ifdef TAILRACE_HAVE_ZARR

namespace {

using storage::File;
using storage::OpenMode;
using storage::Target;

/// Returns the name that a store gets before another store takes its place. POSIX has no call that replaces a
/// directory with files in it. Once the old store has this name, every process takes the new one
/// (*.zarr.again) for the store of the name.
std::string old_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return cat(path.substr(0, begin), ".", path.substr(begin), ".replaced");
}

bool is_again(std::string_view path) { return path.ends_with(again_ending); }

/// Returns the name that the store *.zarr.again takes over when it is finished.
std::string first_name(const std::string& path) {
  return is_again(path) ? path.substr(0, path.size() - again_ending.size() + ending.size()) : path;
}

class StoreTarget final : public storage::ForwardingTarget {
 public:
  explicit StoreTarget(std::shared_ptr<Target> below) : ForwardingTarget(std::move(below)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override {
    if (!is_store(path)) return below_->open(path, mode, permissions);
    if (!storage::only_reads(mode)) TR_TRY(end_rename(first_name(path)));
    const Result<std::string> directory = directory_of(path);
    TR_TRY(directory.status());
    Result<std::unique_ptr<StoreFile>> file = StoreFile::open(below_, known_, *directory, mode);
    TR_TRY(file.status());
    return std::unique_ptr<File>(std::move(*file));
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (!is_store(from) && !is_store(to)) return below_->rename(from, to);
    if (!is_again(from) || first_name(from) != to)
      return {Code::unsupported, cat("rename ", from, " to ", to, ": only ", to, ".again takes this name")};
    const Result<bool> between = is_between(to);
    TR_TRY(between.status());
    TR_TRY(end_rename(to));
    if (*between) return {};
    const Result<bool> has_new = below_->exists(from);
    TR_TRY(has_new.status());
    if (!*has_new) return io_error("rename", cat(from, " to ", to), ENOENT);
    const Result<bool> exists = below_->exists(to);
    TR_TRY(exists.status());
    if (*exists) {
      TR_TRY(check_removable(to));
      TR_TRY(below_->rename(to, old_name(to)));
    }
    return *exists ? end_rename(to) : below_->rename(from, to);
  }

  Status remove(const std::string& path) override {
    if (!is_store(path)) return below_->remove(path);
    TR_TRY(end_rename(first_name(path)));
    return remove_store(path);
  }

  Result<bool> exists(const std::string& path) override {
    if (!is_store(path)) return below_->exists(path);
    const Result<std::string> directory = directory_of(path);
    TR_TRY(directory.status());
    return below_->exists(*directory);
  }

  Status copy(const std::string& from, Bytes size, const std::string& to) override {
    if (!is_store(from)) return Target::copy(from, size, to);
    // A rename between the two names may have been interrupted.
    TR_TRY(end_rename(first_name(from)));
    TR_TRY(end_rename(first_name(to)));
    Result<std::unique_ptr<StoreFile>> source = StoreFile::open(below_, known_, from, OpenMode::read);
    TR_TRY(source.status());
    Result<std::unique_ptr<StoreFile>> made = StoreFile::open(below_, known_, to, OpenMode::create);
    TR_TRY(made.status());
    const Result<bool> holds = (*source)->holds(size, {});
    TR_TRY(holds.status());
    if (!*holds)
      return {Code::corrupt, cat(from, ": lacks steps that its index has; something else has removed them")};
    TR_TRY((*source)->copy_to(**made, size));
    return (*made)->close();
  }

  Status check_removable(const std::string& path) override {
    if (!is_store(path)) return below_->check_removable(path);
    const Result<bool> exists = this->exists(path);
    TR_TRY(exists.status());
    if (!*exists) return {};
    const Result<std::string> directory = directory_of(path);
    TR_TRY(directory.status());
    Result<std::unique_ptr<StoreFile>> file = StoreFile::open(below_, known_, *directory, OpenMode::read);
    TR_TRY(file.status());
    return (*file)->check_own();
  }

 private:
  /// True if a rename to this name has begun and is not finished.
  Result<bool> is_between(const std::string& path) {
    const Result<bool> exists = below_->exists(path);
    if (!exists.is_ok() || *exists) return exists.is_ok() ? Result<bool>(false) : exists;
    const Result<bool> has_old = below_->exists(old_name(path));
    if (!has_old.is_ok() || !*has_old) return has_old;
    return below_->exists(path + ".again");
  }

  /// Returns the directory of the store with this name. During a rename the new store already counts under
  /// the final name, so *.zarr.again leads to a directory that does not exist.
  Result<std::string> directory_of(const std::string& path) {
    const std::string first = first_name(path);
    const Result<bool> between = is_between(first);
    TR_TRY(between.status());
    if (!*between) return path;
    return is_again(path) ? path + ".gone" : first + ".again";
  }

  Status end_rename(const std::string& path) {
    const Result<bool> between = is_between(path);
    TR_TRY(between.status());
    if (*between) TR_TRY(below_->rename(path + ".again", path));
    for (const std::string& name : {path, old_name(path)}) {
      const Result<bool> exists = below_->exists(name);
      TR_TRY(exists.status());
      if (!*exists) return {};
    }
    // Make the names durable before removing the old objects.
    TR_TRY(below_->sync_directory_of(path));
    Status removed = remove_store(old_name(path));
    if (removed.is_ok()) removed = below_->sync_directory_of(path);
    // The old store is not needed any more, so a failure is only logged. The next writer here tries again.
    const std::lock_guard guard(mutex_);
    if (!removed.is_ok() && warned_.insert(path).second)
      log(LogLevel::warn, cat(old_name(path), ": was replaced, and is still there: ", removed.text()));
    return {};
  }

  Status remove_store(const std::string& directory) {
    Result<std::unique_ptr<StoreFile>> file = StoreFile::open(below_, known_, directory, OpenMode::existing);
    TR_TRY(file.status());
    TR_TRY((*file)->remove_all());
    return below_->remove_directory(directory);
  }

  const std::shared_ptr<Known> known_ = std::make_shared<Known>();
  std::mutex mutex_;
  std::set<std::string> warned_;  // stores whose replaced store is still there
};

}  // namespace

std::shared_ptr<Target> with_stores(std::shared_ptr<Target> below) {
  return std::make_shared<StoreTarget>(std::move(below));
}

#else

std::shared_ptr<storage::Target> with_stores(std::shared_ptr<storage::Target> below) { return below; }

#endif

}  // namespace tailrace::stores
