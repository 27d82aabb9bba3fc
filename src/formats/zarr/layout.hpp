// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/cf/json.hpp"
#include "formats/cf/model.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::zarr {

/// The data type whose elements are texts of fixed length, as zarr-python names it (NumPy's "S").
inline constexpr std::string_view text_type = "null_terminated_bytes";

/// The number of steps in a chunk of times. It is large because readers fetch all chunks of times to open a
/// store.
inline constexpr Index steps_in_chunk = 1024;
/// The bytes before the metadata in a head: their length and the number of steps, both big-endian.
inline constexpr Bytes frame_bytes = 16;
/// The offset of the number of steps in a head.
inline constexpr Bytes steps_offset = 8;

/// Returns the room for a compressed chunk of `raw` bytes. A method of compression that may need more is
/// refused.
[[nodiscard]] constexpr Bytes most_compressed(Bytes raw) { return raw + raw / 64 + 64; }
/// Returns the size of the index of a shard with so many chunks.
[[nodiscard]] constexpr Bytes index_bytes(Index chunks) { return 16 * chunks + 4; }

/// The metadata of a group without steps, as a stream writes them when it begins a store, and the places of
/// the group's objects. The pipeline sees a store as one file: the head, and then one step after the other,
/// all of the same size. Each object has its place in that file (docs/formats/zarr.md).
class Layout {
 public:
  struct Array {
    std::string name;
    std::size_t dimensions = 0;
    cf::Type type = cf::Type::float64;
    bool has_steps = false;
    Index in_chunk = 0;  // number of steps in an object; 0: each step is an object of its own
    Bytes begin = 0;     // offset in a step, or in the head if the array has no steps
    Bytes size = 0;      // the room of the array there
    Bytes index = 0;     // size of the index behind the chunks of a shard; 0: no shards
    std::size_t text = 0, text_length = 0;  // where the group's metadata have the array's

    /// Returns the name of the object that holds chunk `number`, counted along the steps.
    [[nodiscard]] std::string object(std::int64_t number) const;
  };

  /// Makes the layout from the metadata of a group. Code::corrupt if no stream begins a store with these
  /// metadata, and Code::argument if a step would be too large.
  static Result<Layout> of(std::string group);

  [[nodiscard]] const std::vector<Array>& arrays() const { return arrays_; }
  /// Returns the array with this name, which must exist.
  [[nodiscard]] const Array& array(const std::string& name) const { return arrays_[by_name_.at(name)]; }
  /// Returns the array with this name, or null.
  [[nodiscard]] const Array* find(const std::string& name) const;
  /// Returns the array to whose room this byte of the head belongs, or null.
  [[nodiscard]] const Array* in_head(Bytes offset) const { return at(of_head_, offset); }
  /// Returns the array to whose room this byte of a step belongs, or null.
  [[nodiscard]] const Array* in_step(Bytes offset) const { return at(of_step_, offset); }
  /// True if the group has steps; a stream all of whose fields have no time has none.
  [[nodiscard]] bool has_steps() const { return has_steps_; }
  /// Returns the array of the steps' times. Only if has_steps().
  [[nodiscard]] const Array& times() const { return arrays_.front(); }
  [[nodiscard]] Bytes head() const { return head_; }
  [[nodiscard]] Bytes step() const { return step_; }
  /// Returns the text of the group's zarr.json with so many steps.
  [[nodiscard]] std::string group_text(std::int64_t steps) const;
  /// Returns the text of the array's zarr.json with so many steps.
  [[nodiscard]] std::string array_text(const Array& array, std::int64_t steps) const;
  /// Returns the first bytes of a head: the frame, and the metadata without steps.
  [[nodiscard]] ByteVector head_begin(std::int64_t steps) const;
  /// Returns the number of steps that a text of the group's zarr.json states. Another program may have
  /// changed the text.
  [[nodiscard]] Result<std::int64_t> steps_in(std::string_view group) const;

 private:
  Layout() = default;
  [[nodiscard]] const Array* at(const std::vector<std::size_t>& of, Bytes offset) const;
  Status add(const std::string& name, const cf::Json& array, const std::string& steps_name);

  std::string text_;
  std::vector<Array> arrays_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::size_t> of_head_, of_step_;  // numbers of arrays, in the order of their bytes
  Bytes head_ = 0;
  Bytes step_ = 0;
  bool has_steps_ = true;
};

}  // namespace tailrace::zarr
