// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "base/bytes.hpp"
#include "cf/model.hpp"

namespace tailrace::zarr {

/// Says how the records of a field become chunks.
struct FieldArray {
  Index levels = 1;
  int deflate = 0;    // level of gzip; 0 = not compressed
  ByteVector fill{};  // one element, big-endian
};

/// Returns the field whose variable has this number, or null.
using FieldOf = std::function<const FieldArray*(std::size_t variable)>;

/// Returns the text of a group's zarr.json, which holds the metadata of all arrays. The arrays have no steps.
std::string group_text(const cf::Contents& contents, const FieldOf& field_of);

}  // namespace tailrace::zarr
