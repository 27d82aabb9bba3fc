// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <optional>
#include <string>

#include "formats/cf/found.hpp"
#include "formats/cf/json.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

// Undoes the filters of numcodecs that change a chunk's elements. A writer applies them before it turns the
// elements into bytes.
namespace tailrace::zarr {

/// One filter that a writer has applied to a chunk's elements. A reader undoes it.
struct Filter {
  enum class Kind {
    delta, /* each element was stored as the difference from the one before it */
    scale, /* x was stored as (x - offset) * scale, rounded */
    cast,  /* the elements were stored as another type; rounding is not undone */
  };
  Kind kind = Kind::cast;
  cf::Number stored = cf::Number::none;   // type of the elements behind the filter, as stored
  cf::Number decoded = cf::Number::none;  // type of the elements before the filter
  double scale = 1, offset = 0;
};

/// The type and byte order of elements between two filters.
struct Elements {
  cf::Number type = cf::Number::none;
  std::optional<std::endian> endian;  // none: the filters do not tell it, or the type has no byte order
};

/// Reads the configuration of a filter that a writer has applied to elements of the type `now`. Sets `now` to
/// the type behind the filter. Returns nothing if no filter of elements has this name, and Code::unsupported
/// if the filter is for other elements. Throws what the JSON library throws.
Result<std::optional<Filter>> read_filter(const std::string& name, const cf::Json& configuration,
                                          Elements& now);

/// Undoes the filter: returns the elements as they were before it. Both arrays are in the host's byte order.
ByteVector undo(const Filter& filter, const ByteVector& stored);

}  // namespace tailrace::zarr
