// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "formats/cf/chunking.hpp"
#include "formats/cf/model.hpp"
#include "formats/cf/quantise.hpp"
#include "formats/compression/compression.hpp"
#include "ground/base/bytes.hpp"

namespace tailrace::zarr {

/// How the records of a field become chunks of an array.
struct FieldArray {
  Index levels = 1;
  cf::Chunking chunking{};  // of one level
  compression::Compression compression{};
  cf::Quantisation quantisation{};
  std::optional<double> missing{};
  ByteVector fill{};  // one element, big-endian

  [[nodiscard]] bool is_compressed() const { return compression.method != compression::Method::none; }
  /// Returns true if an object is a shard with several chunks: levels, or parts of levels.
  [[nodiscard]] bool is_sharded() const { return levels > 1 || chunking.count() > 1; }
};

/// Returns the field whose variable has this number, or null.
using FieldOf = std::function<const FieldArray*(std::size_t variable)>;

/// Returns the text of a group's zarr.json, which also holds the metadata of all arrays. The number of steps
/// is 0.
std::string group_text(const cf::Contents& contents, const FieldOf& field_of);

}  // namespace tailrace::zarr
