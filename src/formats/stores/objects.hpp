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

/// The objects of one store, which are files of a directory. All calls are local and block on storage. One
/// thread at a time. Nothing is durable before settle().
class Objects {
 public:
  using Array = zarr::Layout::Array;

  /// The most descriptors that stay open until settle(), in all stores of the target together.
  static constexpr int most_open = 256;
  /// The number of files that are made durable together, if there are very many.
  static constexpr std::size_t most_at_once = 64;

  Objects(std::shared_ptr<storage::Target> below, std::shared_ptr<Known> known, std::string directory)
      : below_(std::move(below)), known_(std::move(known)), directory_(std::move(directory)) {}

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] storage::Target& below() const { return *below_; }
  /// Makes the directory of the store. The directory around it must exist.
  Status make();
  /// Returns the layout with which the store was begun, or null for an empty directory. Code::state for a
  /// directory that no stream has begun.
  Result<std::shared_ptr<const zarr::Layout>> load();
  /// Begins the store: writes the metadata, and from the bytes of the head the arrays that do not grow with
  /// the steps.
  Status begin(const zarr::Layout& layout, std::span<const std::byte> head);
  /// Returns Code::state if the directory of an array is a link: the files behind it may belong to somebody
  /// else. The store itself may be a link, because the user has named it.
  Status check_no_links(const zarr::Layout& layout);
  /// True if all objects exist that begin() writes.
  Result<bool> is_begun(const zarr::Layout& layout);
  /// Writes the number of steps into the group's metadata, by one rename.
  Status tell(const zarr::Layout& layout, std::int64_t steps);
  /// Returns the number of steps in the group's metadata, or nothing if there is none: other programs may
  /// have changed them.
  Result<std::optional<std::int64_t>> told(const zarr::Layout& layout);
  /// Writes the number of steps into the metadata of each array.
  Status tell_arrays(const zarr::Layout& layout, std::int64_t steps);

  Status write(const Array& array, std::int64_t number, Bytes offset, storage::Parts parts);
  /// Returns the number of bytes that exist of the object's bytes from `offset` on. The rest of `data`
  /// becomes zeros.
  Result<Bytes> read(const Array& array, std::int64_t number, Bytes offset, std::span<std::byte> data);
  /// Returns the size of an object, or nothing if there is none.
  Result<std::optional<Bytes>> size_of(const Array& array, std::int64_t number);
  /// Returns the numbers of an array's objects, in ascending order.
  Result<std::vector<std::int64_t>> numbers(const Array& array);
  /// Removes the objects of step `step` and all later ones, and the times of these steps.
  Status remove_from(const zarr::Layout& layout, std::int64_t step);
  /// Copies the objects of the steps before `step` to another store, which has been begun.
  Status copy_before(const zarr::Layout& layout, std::int64_t step, Objects& to);

  /// Returns Code::state if the directory holds anything that no stream has written. `layout` is null for a
  /// store that was not begun.
  Status check_own(const zarr::Layout* layout);
  /// Empties the directory. Before it removes the first object, it makes the metadata say that the store has
  /// no steps.
  Status remove_all(const zarr::Layout* layout);

  /// Makes all writes and removals durable. After a failure every later call fails, too.
  Status settle();

 private:
  [[nodiscard]] std::string path_of(const std::string& object) const { return directory_ + "/" + object; }
  struct Text {
    std::string object, text;
  };
  Status replace(std::span<const Text> texts);
  Status replace(const std::string& object, const std::string& text);
  /// Replaces the objects and empties the list, if it has at least `most_at_once` entries.
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
    /// Number of the last write to the object, counted over the store.
    std::int64_t number = 0;
  };
  void sync_and_close(const std::map<std::string, Written>& all);

  const std::shared_ptr<storage::Target> below_;
  const std::shared_ptr<Known> known_;
  const std::string directory_;
  // The last descriptor of each object with bytes that are not durable yet. While a descriptor is open, the
  // system reports a failed write-back to the next fsync.
  std::map<std::string, Written> written_;
  std::int64_t writes_ = 0;
  std::set<std::string> names_;  // objects whose names, or whose removals, are not durable yet
  Status failure_;
};

}  // namespace tailrace::stores
