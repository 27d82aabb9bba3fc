// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "formats/codec/store.hpp"
#include "formats/zarr/layout.hpp"
#include "formats/zarr/store/objects.hpp"
#include "ground/storage/objects/keyed_objects.hpp"

namespace tailrace::zarr {

/// A store of Zarr as one file, whose bytes are those of Layout. Bytes of a step that no object holds
/// read as zeros. A caller may write the head only as a whole, or only the number of steps in it. The
/// functions of storage::File block on storage and are thread-safe.
class StoreFile final : public codec::Store {
 public:
  /// Returns what opens stores by their places. The stores that it opens share one Known.
  static codec::StoreOpener opener(storage::ObjectsAt objects);
  /// Opens the store in a directory, or makes an empty store if `mode` makes files.
  static Result<std::unique_ptr<StoreFile>> open(const storage::ObjectsAt& objects,
                                                 std::shared_ptr<Known> known, std::string directory,
                                                 storage::OpenMode mode);

  Status write_gathered(storage::Parts parts, Bytes offset) override;
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override;
  Status sync() override;
  Status truncate(Bytes size) override;
  Result<Bytes> size() override;
  Result<bool> holds(Bytes end, std::span<const storage::Range> ranges) override;
  Status close() override;

  Status copy_to(const std::string& directory, Bytes size) override;
  Status check_own() override { return objects_.check_own(layout_.get()); }
  Status remove() override;

 private:
  StoreFile(const storage::ObjectsAt& objects, std::shared_ptr<Known> known, std::string directory,
            storage::OpenMode mode)
      : at_(objects),
        known_(known),
        objects_(objects(std::move(directory)), std::move(known)),
        writes_(!storage::only_reads(mode)) {}

  /// The part of an object that begins at an offset of the row.
  struct Piece {
    const Layout::Array* array = nullptr;
    std::int64_t number = 0;  // of the object among those of the array
    Bytes offset = 0;         // in the object
    Bytes size = 0;           // up to the end of the array's bytes in the head or step
  };

  [[nodiscard]] Status check_open(const char* operation) const;
  [[nodiscard]] Piece piece_at(Bytes offset) const;
  Status write_head(std::span<const std::byte> head);
  Result<bool> has_step(std::int64_t step);
  Result<std::int64_t> steps_with_times(std::int64_t chunk);
  Result<std::int64_t> steps_there();
  Status copy_before(Bytes size, StoreFile& to);
  Result<Bytes> end_for(Bytes offset, Bytes size);

  std::mutex mutex_;
  const storage::ObjectsAt at_;
  const std::shared_ptr<Known> known_;
  Objects objects_;
  const bool writes_;
  bool is_closed_ = false;
  std::shared_ptr<const Layout> layout_;  // null: the store has no head yet
  std::optional<Bytes> end_;              // end of the row, for a store that is only read
  /// The number of steps written here, if it is not yet in the metadata of the arrays.
  std::optional<std::int64_t> told_;
};

}  // namespace tailrace::zarr
