// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>

#include "formats/grib2/handle.hpp"
#include "formats/grib2/packing.hpp"

namespace tailrace::grib2::edition1 {

/// Lets ecCodes pack values in second order (grid_second_order): the codes of simple packing, in groups, by
/// the differences of their differences. All fields share one handle: the rest of a message does not change
/// how its values are packed. Each thread has an object of its own.
class SecondOrder {
 public:
  /// Appends section 4, up to the last octet that holds something, and D to the head at `start`. Returns the
  /// number of its bits that hold something. Returns 0, and appends nothing, if ecCodes
  /// does not pack these values in second order (too few, or its codes are all equal), or less exactly than
  /// `scaling` says, or into more octets than simple packing (noise). The values must be finite.
  Result<Bytes> append(const double* values, Index count, const Scaling& scaling, std::size_t start,
                       ByteVector& out);

 private:
  Status begin();

  std::optional<Handle> handle_;
};

}  // namespace tailrace::grib2::edition1
