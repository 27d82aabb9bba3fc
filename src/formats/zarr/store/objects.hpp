// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/zarr/layout.hpp"
#include "formats/zarr/store/known.hpp"
#include "ground/storage/objects/keyed_objects.hpp"

namespace tailrace::zarr {

/// The objects of one store: its arrays' and their metadata's. It knows their keys and what they hold;
/// storage::KeyedObjects keeps them. All calls are local and block on storage. One thread at a time. Nothing
/// is durable before settle().
class Objects {
 public:
  using Array = Layout::Array;

  Objects(std::unique_ptr<storage::KeyedObjects> keyed, std::shared_ptr<Known> known)
      : keyed_(std::move(keyed)), known_(std::move(known)) {}

  [[nodiscard]] const std::string& directory() const { return keyed_->place(); }
  /// True if the directory of the store is there.
  Result<bool> is_made() { return keyed_->is_made(); }
  /// Makes the directory of the store. The directory around it must exist.
  Status make() { return keyed_->make(); }
  /// Returns the layout with which the store was begun, or null for an empty directory. Code::state for a
  /// directory that no stream has begun.
  Result<std::shared_ptr<const Layout>> load();
  /// Begins the store: writes the metadata, and from the bytes of the head the arrays that do not grow with
  /// the steps.
  Status begin(const Layout& layout, std::span<const std::byte> head);
  /// Returns Code::state if the directory of an array is a link: the files behind it may belong to somebody
  /// else. The store itself may be a link, because the user has named it.
  Status check_no_links(const Layout& layout);
  /// True if all objects exist that begin() writes.
  Result<bool> is_begun(const Layout& layout);
  /// Writes the number of steps into the group's metadata, by one rename.
  Status tell(const Layout& layout, std::int64_t steps);
  /// Returns the number of steps in the group's metadata, or nothing if there is none: other programs may
  /// have changed them.
  Result<std::optional<std::int64_t>> told(const Layout& layout);
  /// Writes the number of steps into the metadata of each array.
  Status tell_arrays(const Layout& layout, std::int64_t steps);

  Status write(const Array& array, std::int64_t number, Bytes offset, storage::Parts parts);
  /// Returns the number of bytes that exist of the object's bytes from `offset` on. The rest of `data`
  /// becomes zeros.
  Result<Bytes> read(const Array& array, std::int64_t number, Bytes offset, std::span<std::byte> data);
  /// Returns the size of an object, or nothing if there is none.
  Result<std::optional<Bytes>> size_of(const Array& array, std::int64_t number);
  /// Returns the numbers of an array's objects, in ascending order.
  Result<std::vector<std::int64_t>> numbers(const Array& array);
  /// Removes the objects of step `step` and all later ones, and the times of these steps.
  Status remove_from(const Layout& layout, std::int64_t step);
  /// Copies the objects of the steps before `step` to another store, which has been begun.
  Status copy_before(const Layout& layout, std::int64_t step, Objects& to);

  /// Returns Code::state if the directory holds anything that no stream has written. `layout` is null for a
  /// store that was not begun.
  Status check_own(const Layout* layout);
  /// Empties the directory. Before it removes the first object, it makes the metadata say that the store has
  /// no steps.
  Status remove_all(const Layout* layout);
  /// Removes the directory, which is empty.
  Status unmake() { return keyed_->unmake(); }

  /// Makes all writes and removals durable. After a failure every later call fails, too.
  Status settle() { return keyed_->sync(); }

 private:
  using Text = storage::KeyedObjects::Text;
  Status put(const std::string& key, const std::string& text);
  /// Puts the objects and empties the list, if it has at least KeyedObjects::most_at_once entries.
  Status put_when_many(std::vector<Text>& texts);
  Status forget_times(const Array& array, std::int64_t steps);

  const std::unique_ptr<storage::KeyedObjects> keyed_;
  const std::shared_ptr<Known> known_;
};

}  // namespace tailrace::zarr
