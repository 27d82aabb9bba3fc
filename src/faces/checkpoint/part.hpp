// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "engine/arrays/array.hpp"
#include "faces/checkpoint/compression.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::checkpoint {

/// One item of a save, on one rank.
struct SaveItem {
  ItemInfo info;
  arrays::Owned owned;
  const std::byte* data = nullptr;   // the caller's array
  std::shared_ptr<const void> keep;  // holds memory of the library until the save has ended
};

/// Returns the status of a save that was given up for a newer one. No other failure has this status:
/// is_given_up() tells it from failures of the same code.
Status given_up();
bool is_given_up(const Status& status);

/// One rank's part of a save, and the place of its bytes. The size of a part depends on its items alone, not
/// on compression, so that every rank's place is known before anything is written.
class Part {
 public:
  Part(const SaveId& id, int part, int parts, const std::vector<SaveItem>& items, Compression compression);

  /// Gives the part another run and generation. Call it before anything is written.
  void name(const SaveId& id) { table_.id = id; }
  /// Returns the bytes of the packed elements, which a capture takes.
  [[nodiscard]] Bytes data_bytes() const { return data_bytes_; }
  [[nodiscard]] Bytes bytes() const { return data_bytes_ + table_bytes_ + Footer::size; }

  /// Copies the elements of all items to their offsets in `image`, of data_bytes().
  void capture(const std::vector<SaveItem>& items, std::byte* image) const;
  /// Writes the elements, from `image` or, if that is nullptr, from the caller's arrays, to the part's place
  /// `at`. Ends early with given_up() once `cancelled`.
  Status write_data(storage::File& file, Bytes at, const std::vector<SaveItem>& items, const std::byte* image,
                    const std::atomic<bool>& cancelled);
  /// Writes the table and footer that make the part whole. Call it only after write_data() has succeeded.
  Status write_table(storage::File& file, Bytes at) const;

 private:
  Compression compression_;
  Table table_;
  std::vector<std::size_t> sources_;  // for each of the table's items, its number among the caller's items
  Bytes data_bytes_ = 0;
  Bytes table_bytes_ = 0;
};

}  // namespace tailrace::checkpoint
