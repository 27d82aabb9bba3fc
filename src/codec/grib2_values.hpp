// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>

#include "codec/grib2_handle.hpp"
#include "codec/grib2_packing.hpp"

namespace tailrace::codec::grib2 {

/// Lets ecCodes encode sections 5 and 7. One handle on a grid of no shape is kept and reused: what a message
/// says about place, time and parameter does not change how its values are packed, so that all fields of a
/// packing share it. One per thread.
class EccodesPacking {
 public:
  /// Appends sections 5, `bitmap` as section 6, and 7. The values are finite and not all equal.
  Status append(const ByteVector& representation, const double* values, Index count, int bits,
                std::span<const std::byte> bitmap, ByteVector& out);

 private:
  Status begin(const ByteVector& representation);

  std::optional<Handle> handle_;
  ByteVector representation_;  // that the handle was made with
};

/// Whether our packing gives the octets of this ecCodes: asked once a process, of probes in all widths. A
/// packing that does not (another version, another rounding) is left to ecCodes.
bool simple_packing_agrees();
bool ccsds_packing_agrees();

}  // namespace tailrace::codec::grib2
