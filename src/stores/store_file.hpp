// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "storage/target.hpp"
#include "zarr/layout.hpp"

namespace tailrace::stores {

/// The objects of a store as one file. Bytes of a step that no object holds read as zeros. A head is written
/// whole, or the number of steps in it alone: both replace zarr.json in one rename.
class StoreFile final : public storage::File {
 public:
  /// Opens the store in a directory, or begins an empty one there.
  static Result<std::unique_ptr<StoreFile>> open(std::shared_ptr<storage::Target> below,
                                                 std::string directory, storage::OpenMode mode);

  Status write_gathered(storage::Parts parts, Bytes offset) override;
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override;
  Status sync() override;
  Status truncate(Bytes size) override;
  Result<Bytes> size() override;
  Result<bool> holds(Bytes end) override;
  Status close() override;

  /// Returns none for a store that has no head yet.
  [[nodiscard]] const std::optional<zarr::Layout>& layout() const { return layout_; }
  /// Makes `to`, an empty store, a durable copy of the first steps.
  Status copy_to(StoreFile& to, std::int64_t steps);
  /// Removes all objects. The metadata go last: without them nobody knows whose objects these are.
  Status remove_all();

 private:
  StoreFile(std::shared_ptr<storage::Target> below, std::string directory, storage::OpenMode mode)
      : below_(std::move(below)),
        directory_(std::move(directory)),
        writes_(mode != storage::OpenMode::read && mode != storage::OpenMode::read_regular) {}

  struct Piece {
    const zarr::Layout::Array* array = nullptr;
    std::int64_t number = 0;  // of the object, along the steps
    Bytes offset = 0;         // in the object
    Bytes size = 0;           // up to the end of the array's room
  };

  [[nodiscard]] std::string path_of(const std::string& object) const { return directory_ + "/" + object; }
  [[nodiscard]] Status check_open(const char* operation) const;
  Status load();
  [[nodiscard]] Piece piece_at(Bytes offset) const;
  Status write_piece(const Piece& piece, storage::Parts parts);
  Status write_head(std::span<const std::byte> head);
  Status write_steps(std::span<const std::byte> count);
  Status replace(const std::string& path, const std::string& text);
  Status settle_metadata();
  Status settle_objects();
  Result<Bytes> read_piece(const Piece& piece, std::span<std::byte> data);
  Result<bool> has_step(std::int64_t step);
  /// Returns the numbers of an array's objects, ascending.
  Result<std::vector<std::int64_t>> numbers(const zarr::Layout::Array& array);
  Result<std::int64_t> steps_with_times(std::int64_t chunk);
  Result<std::int64_t> steps_there();
  Status forget_times(const zarr::Layout::Array& array, std::int64_t steps);

  const std::shared_ptr<storage::Target> below_;
  const std::string directory_;
  const bool writes_;
  std::mutex mutex_;
  bool is_closed_ = false;
  std::optional<zarr::Layout> layout_;
  bool knows_end_ = false;
  Bytes end_ = 0;                  // of a store that is only read
  bool has_written_ = false;       // objects of steps
  std::set<std::string> written_;  // objects whose bytes are not durable yet
  std::set<std::string> entries_;  // objects whose names, or whose removals, are not durable yet
  Status sync_failure_;
};

}  // namespace tailrace::stores
