// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/stores/stores.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <set>

#include "formats/stores/moving.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/forwarding.hpp"
#include "ground/storage/objects/object_files.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::stores {

namespace {

/// Ends the name of a store that takes the place of another one when it is finished.
constexpr std::string_view again_ending = ".again";

}  // namespace

const formats::Format* format_of(std::string_view path) {
  if (path.ends_with(again_ending)) path.remove_suffix(again_ending.size());
  const auto found = std::ranges::find_if(formats::all(), [&](const formats::Format& each) {
    return each.store != nullptr && path.ends_with(each.endings.front());
  });
  return found == formats::all().end() ? nullptr : &*found;
}

Result<bool> has_begun(const std::shared_ptr<storage::Target>& target, const std::string& directory) {
  const auto objects = storage::objects_at(target, storage::OpenMode::read_regular)(directory);
  for (const formats::Format& each : formats::all()) {
    if (each.store == nullptr) continue;
    const Result<bool> exists = objects->exists(std::string(each.store->begun_with));
    if (exists.status().error_number() == ENOTDIR) return false;
    if (!exists.is_ok() || *exists) return exists;
  }
  return false;
}

namespace {

using codec::Store;
using codec::StoreOpener;
using storage::File;
using storage::OpenMode;
using storage::Target;

/// True if this build opens stores of the format.
bool opens(const formats::Format& format) {
  return format.store != nullptr && format.store->opener != nullptr;
}

/// Returns the name that a store gets before another store takes its place. POSIX has no call that replaces a
/// directory with files in it. Once the old store has this name, every process takes the new one
/// (*.again) for the store of the name.
std::string old_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return cat(path.substr(0, begin), ".", path.substr(begin), ".replaced");
}

bool is_again(std::string_view path) { return is_store(path) && path.ends_with(again_ending); }

/// Returns the name that the store *.again takes over when it is finished.
std::string first_name(const std::string& path) {
  return is_again(path) ? path.substr(0, path.size() - again_ending.size()) : path;
}

std::string again_name(const std::string& path) { return path + std::string(again_ending); }

class StoreTarget final : public storage::ForwardingTarget {
 public:
  /// `below` also has the small files beside stores that lie among whole objects.
  explicit StoreTarget(const std::shared_ptr<Target>& below)
      : ForwardingTarget(below), objects_(storage::objects_at(below)) {
    for (const formats::Format& each : formats::all()) {
      if (opens(each)) openers_.emplace(&each, each.store->opener(objects_));
    }
  }

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override {
    const StoreOpener* const opener = opener_of(path);
    if (opener == nullptr) return below_->open(path, mode, permissions);
    if (!storage::only_reads(mode)) TR_TRY(end_rename(first_name(path), *opener));
    const Result<std::string> directory = directory_of(path);
    TR_TRY(directory.status());
    Result<std::unique_ptr<Store>> store = (*opener)(*directory, mode);
    TR_TRY(store.status());
    return std::unique_ptr<File>(std::move(*store));
  }

  std::optional<std::string> system_name(const std::string& path) override {
    return opener_of(path) == nullptr ? below_->system_name(path) : std::nullopt;
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (opener_of(from) == nullptr && opener_of(to) == nullptr) return below_->rename(from, to);
    if (!is_again(from) || first_name(from) != to)
      return {Code::unsupported, cat("rename ", from, " to ", to, ": only ", to, ".again takes this name")};
    if (!storage::is_of_files(to)) {
      TR_TRY(check_removable(to));
      return moving(to).move(from, to);
    }
    const Result<bool> between = is_between(to);
    TR_TRY(between.status());
    const StoreOpener& opener = *opener_of(from);
    TR_TRY(end_rename(to, opener));
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
    return *exists ? end_rename(to, opener) : below_->rename(from, to);
  }

  Status remove(const std::string& path) override {
    const StoreOpener* const opener = opener_of(path);
    if (opener == nullptr) return below_->remove(path);
    TR_TRY(end_rename(first_name(path), *opener));
    return remove_store(path, *opener);
  }

  Result<bool> exists(const std::string& path) override {
    if (opener_of(path) == nullptr) return below_->exists(path);
    const Result<std::string> directory = directory_of(path);
    TR_TRY(directory.status());
    return objects_(*directory)->is_made();
  }

  Status copy(const std::string& from, Bytes size, const std::string& to) override {
    const StoreOpener* const opener = opener_of(from);
    if (opener == nullptr) return Target::copy(from, size, to);
    // A rename between the two names may have been interrupted.
    TR_TRY(end_rename(first_name(from), *opener));
    TR_TRY(end_rename(first_name(to), *opener));
    Result<std::unique_ptr<Store>> source = (*opener)(from, OpenMode::read);
    TR_TRY(source.status());
    return (*source)->copy_to(to, size);
  }

  Status check_removable(const std::string& path) override {
    const StoreOpener* const opener = opener_of(path);
    if (opener == nullptr) return below_->check_removable(path);
    const Result<bool> exists = this->exists(path);
    TR_TRY(exists.status());
    if (!*exists) return {};
    const Result<std::string> directory = directory_of(path);
    TR_TRY(directory.status());
    Result<std::unique_ptr<Store>> store = (*opener)(*directory, OpenMode::read);
    TR_TRY(store.status());
    return (*store)->check_own();
  }

 private:
  /// Returns what opens the store with this name, or null if a file has the name, or the store is of a
  /// format that this build cannot open.
  [[nodiscard]] const StoreOpener* opener_of(std::string_view path) const {
    const auto found = openers_.find(format_of(path));
    return found == openers_.end() ? nullptr : &found->second;
  }

  /// Returns what moves a store among whole objects to the name `path`.
  [[nodiscard]] Moving moving(const std::string& path) const {
    return {objects_, *opener_of(path), format_of(path)->store->begun_with};
  }

  /// True if a rename to this name has begun and is not finished. The store is a directory.
  Result<bool> is_between(const std::string& path) {
    const Result<bool> exists = below_->exists(path);
    if (!exists.is_ok() || *exists) return exists.is_ok() ? Result<bool>(false) : exists;
    const Result<bool> has_old = below_->exists(old_name(path));
    if (!has_old.is_ok() || !*has_old) return has_old;
    return below_->exists(again_name(path));
  }

  /// Returns the directory of the store with this name. During a rename the new store already counts under
  /// the final name, so *.zarr.again leads to a directory that does not exist.
  Result<std::string> directory_of(const std::string& path) {
    const std::string first = first_name(path);
    if (!storage::is_of_files(path)) return moving(path).place_of(path, again_name(first), first);
    const Result<bool> between = is_between(first);
    TR_TRY(between.status());
    if (!*between) return path;
    return is_again(path) ? path + ".gone" : again_name(first);
  }

  /// Finishes a rename to the store with this name, if one has begun. `opener` opens stores of its format.
  Status end_rename(const std::string& path, const StoreOpener& opener) {
    if (!storage::is_of_files(path)) return moving(path).end(again_name(path), path);
    const Result<bool> between = is_between(path);
    TR_TRY(between.status());
    if (*between) TR_TRY(below_->rename(again_name(path), path));
    for (const std::string& name : {path, old_name(path)}) {
      const Result<bool> exists = below_->exists(name);
      TR_TRY(exists.status());
      if (!*exists) return {};
    }
    // Make the names durable before removing the old objects.
    TR_TRY(below_->sync_directory_of(path));
    Status removed = remove_store(old_name(path), opener);
    if (removed.is_ok()) removed = below_->sync_directory_of(path);
    // The old store is not needed any more, so a failure is only logged. The next writer here tries again.
    const std::lock_guard guard(mutex_);
    if (!removed.is_ok() && warned_.insert(path).second)
      log(LogLevel::warn, cat(old_name(path), ": was replaced, and is still there: ", removed.text()));
    return {};
  }

  Status remove_store(const std::string& directory, const StoreOpener& opener) {
    Result<std::unique_ptr<Store>> store = opener(directory, OpenMode::existing);
    TR_TRY(store.status());
    return (*store)->remove();
  }

  const storage::ObjectsAt objects_;
  std::map<const formats::Format*, StoreOpener> openers_;
  std::mutex mutex_;
  std::set<std::string> warned_;  // stores whose replaced store is still there
};

}  // namespace

std::shared_ptr<Target> with_stores(std::shared_ptr<Target> below) {
  const bool any = std::ranges::any_of(formats::all(), opens);
  return any ? std::make_shared<StoreTarget>(storage::with_object_files(std::move(below))) : below;
}

}  // namespace tailrace::stores
