// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/cf/json.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

// The filters of numcodecs that change the elements of a chunk before bytes are made of them.
namespace tailrace::zarr {

/// One filter through which a chunk's elements went when they were stored, and which a reader undoes.
struct Filter {
  enum class Kind {
    delta, /* each element was stored as the difference from the one before it */
    scale, /* x was stored as (x - offset) * scale, rounded */
    cast,  /* the elements were stored as another type; rounding is not undone */
  };
  Kind kind = Kind::cast;
  cf::Number stored = cf::Number::none;  // the type of the elements that the filter made
  cf::Number decoded = cf::Number::none;
  double scale = 1, offset = 0;
};

/// The type and byte order of elements between two filters.
struct Elements {
  cf::Number type = cf::Number::none;
  std::optional<std::endian> endian;  // none: the order is not the filters' affair, or the type has none
};

/// Reads the filter of this name, which was given elements of the type `now`, and changes that to what it
/// made of them. Nothing if the name is none of a filter of elements. Code::unsupported if the filter is for
/// other elements. Throws what the JSON library throws.
Result<std::optional<Filter>> read_filter(const std::string& name, const cf::Json& configuration,
                                          Elements& now);

/// Returns the filter's elements as they were before it. Both have the host's byte order.
ByteVector undo(const Filter& filter, const ByteVector& stored);

}  // namespace tailrace::zarr
