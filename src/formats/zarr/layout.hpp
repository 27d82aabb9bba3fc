// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/cf/json.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::zarr {

/// Arrays of times hold so many steps in a chunk: readers fetch all of them to open a store.
inline constexpr Index steps_in_chunk = 1024;
/// The bytes before the metadata in a head: their length and the number of steps, both big-endian.
inline constexpr Bytes frame_bytes = 16;
/// The steps' place in a head.
inline constexpr Bytes steps_offset = 8;

/// Returns the most bytes that a chunk of `raw` bytes may have behind any compression.
[[nodiscard]] constexpr Bytes most_compressed(Bytes raw) { return raw + raw / 64 + 64; }
/// Returns the size of a shard's index.
[[nodiscard]] constexpr Bytes index_bytes(Index chunks) { return 16 * chunks + 4; }

/// The metadata of a group as a stream begins it, without steps, and the place of each of its objects in one
/// row of bytes: the head, and then one step after the other, all of the same size (docs/formats/zarr.md).
class Layout {
 public:
  struct Array {
    std::string name;
    std::size_t dimensions = 0;
    bool has_steps = false;
    Index in_chunk = 0;  // number of steps in an object; 0: each step is an object of its own
    Bytes begin = 0;     // in the head, or in a step
    Bytes size = 0;      // the room of the array there
    Bytes index = 0;     // size of what stands behind the chunks of a shard
    std::size_t text = 0, text_length = 0;  // its metadata in those of the group

    /// Returns the name of the object that holds chunk `number` along the steps.
    [[nodiscard]] std::string object(std::int64_t number) const;
  };

  /// Reads the metadata of a group. Code::corrupt if no stream can have begun a store with them.
  static Result<Layout> of(std::string group);

  [[nodiscard]] const std::vector<Array>& arrays() const { return arrays_; }
  /// Returns the array of a name that is there.
  [[nodiscard]] const Array& array(const std::string& name) const { return arrays_[by_name_.at(name)]; }
  /// Returns the array of a name, or null.
  [[nodiscard]] const Array* find(const std::string& name) const;
  /// Returns the array whose room in the head, or in a step, this byte belongs to; null if there is none.
  [[nodiscard]] const Array* in_head(Bytes offset) const { return at(of_head_, offset); }
  [[nodiscard]] const Array* in_step(Bytes offset) const { return at(of_step_, offset); }
  /// Returns the array of the steps' times.
  [[nodiscard]] const Array& times() const { return arrays_.front(); }
  [[nodiscard]] Bytes head() const { return head_; }
  [[nodiscard]] Bytes step() const { return step_; }
  /// Returns the text of zarr.json of the group, or of one array, with so many steps.
  [[nodiscard]] std::string group_text(std::int64_t steps) const;
  [[nodiscard]] std::string array_text(const Array& array, std::int64_t steps) const;
  /// Returns the first bytes of a head: the frame, and the metadata without steps.
  [[nodiscard]] ByteVector head_begin(std::int64_t steps) const;
  /// Returns the number of steps that zarr.json of the group tells of, whoever has changed it meanwhile.
  [[nodiscard]] Result<std::int64_t> steps_in(std::string_view group) const;

 private:
  Layout() = default;
  [[nodiscard]] const Array* at(const std::vector<std::size_t>& of, Bytes offset) const;
  Status add(const std::string& name, const cf::Json& array, const std::string& steps_name);

  std::string text_;
  std::vector<Array> arrays_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::size_t> of_head_, of_step_;  // numbers of arrays, the one with the first bytes first
  Bytes head_ = 0;
  Bytes step_ = 0;
};

}  // namespace tailrace::zarr
