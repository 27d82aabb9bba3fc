// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "formats/stores/known.hpp"
#include "formats/zarr/layout.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::stores {

/// The objects of one store, as files of a directory. One thread at a time. Nothing is durable before
/// settle().
class Objects {
 public:
  using Array = zarr::Layout::Array;

  /// Descriptors beyond so many, in all stores of the target together, do not stay open until settle().
  static constexpr int most_open = 256;
  /// So many files are made durable at once where there are very many.
  static constexpr std::size_t most_at_once = 64;

  Objects(std::shared_ptr<storage::Target> below, std::shared_ptr<Known> known, std::string directory)
      : below_(std::move(below)), known_(std::move(known)), directory_(std::move(directory)) {}

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] storage::Target& below() const { return *below_; }
  /// Makes the directory, if it lies in one that is there.
  Status make();
  /// Returns what the store was begun with, or null for an empty directory. Code::state for a directory that
  /// no stream has begun.
  Result<std::shared_ptr<const zarr::Layout>> load();
  /// Begins the store: writes the metadata, and the arrays that have no steps from the bytes of the head.
  Status begin(const zarr::Layout& layout, std::span<const std::byte> head);
  /// Returns Code::state if the directory of an array is a link: somebody else's files may be behind it. The
  /// store's own name may be a link: the user has given it.
  Status check_no_links(const zarr::Layout& layout);
  /// Returns true if all is there that begin() writes.
  Result<bool> is_begun(const zarr::Layout& layout);
  /// Makes the group's metadata tell of so many steps, in one rename.
  Status tell(const zarr::Layout& layout, std::int64_t steps);
  /// Returns the number of steps that the group's metadata tell of, or nothing if they tell none: other
  /// programs may have changed them.
  Result<std::optional<std::int64_t>> told(const zarr::Layout& layout);
  /// Makes each array's own metadata tell of so many steps.
  Status tell_arrays(const zarr::Layout& layout, std::int64_t steps);

  Status write(const Array& array, std::int64_t number, Bytes offset, storage::Parts parts);
  /// Returns how many of the bytes there are. The others become zeros.
  Result<Bytes> read(const Array& array, std::int64_t number, Bytes offset, std::span<std::byte> data);
  /// Returns the size of an object, or nothing if there is none.
  Result<std::optional<Bytes>> size_of(const Array& array, std::int64_t number);
  /// Returns the numbers of an array's objects, ascending.
  Result<std::vector<std::int64_t>> numbers(const Array& array);
  /// Removes the objects of steps from this one on, and times from there.
  Status remove_from(const zarr::Layout& layout, std::int64_t step);
  /// Copies the objects of the steps before this one to another store, which has been begun.
  Status copy_before(const zarr::Layout& layout, std::int64_t step, Objects& to);

  /// Returns Code::state if the directory holds anything that no stream has written.
  Status check_own(const zarr::Layout* layout);
  /// Empties the directory. Readers see a store without steps before the first object goes.
  Status remove_all(const zarr::Layout* layout);

  /// Makes everything durable that was written or removed. A failure is final.
  Status settle();

 private:
  [[nodiscard]] std::string path_of(const std::string& object) const { return directory_ + "/" + object; }
  struct Text {
    std::string object, text;
  };
  Status replace(std::span<const Text> texts);
  Status replace(const std::string& object, const std::string& text);
  /// Replaces the objects and empties the list, if it has become long.
  Status replace_when_many(std::vector<Text>& texts);
  Status unless_removed(const std::string& path, const Status& status);
  void keep_open(const std::string& path, std::unique_ptr<storage::File> file);
  Status settle_names();
  Status forget_times(const Array& array, std::int64_t steps);
  void close_oldest();

  struct Written {
    Written(std::unique_ptr<storage::File> opened, Known& known)
        : file(std::move(opened)), counted(known, file->descriptors()) {}
    std::unique_ptr<storage::File> file;
    Known::Descriptors counted;
    std::int64_t number = 0;  // of the last write among those of the store
  };
  void sync_and_close(const std::map<std::string, Written>& all);

  const std::shared_ptr<storage::Target> below_;
  const std::shared_ptr<Known> known_;
  const std::string directory_;
  // The last descriptor of each object with bytes that are not durable yet. While one is open, the system
  // tells a failed write-back to the next fsync.
  std::map<std::string, Written> written_;
  std::int64_t writes_ = 0;
  std::set<std::string> names_;  // objects whose names, or whose removals, are not durable yet
  Status failure_;
};

}  // namespace tailrace::stores
