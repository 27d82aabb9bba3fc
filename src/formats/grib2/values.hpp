// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>

#include "formats/grib2/handle.hpp"
#include "formats/grib2/packing.hpp"

namespace tailrace::grib2 {

/// Lets ecCodes encode sections 5 and 7. It keeps and reuses one handle on a grid of no shape: place, time
/// and parameter in a message do not change how its values are packed, so all fields of a packing share the
/// handle. Each thread has one of its own.
class EccodesPacking {
 public:
  /// Appends section 5, `bitmap` as section 6, and section 7. The values are finite and not all equal.
  Status append(const ByteVector& representation, const double* values, Index count, int bits,
                std::span<const std::byte> bitmap, ByteVector& out);

 private:
  Status begin(const ByteVector& representation);

  std::optional<Handle> handle_;
  ByteVector representation_;  // with which the handle was made
};

/// Returns true if our packing gives the octets of this ecCodes. It is tried once a process, on probes in all
/// widths. A packing that does not agree (another version, another rounding) is left to ecCodes.
bool simple_packing_agrees();
bool ccsds_packing_agrees();

}  // namespace tailrace::grib2
