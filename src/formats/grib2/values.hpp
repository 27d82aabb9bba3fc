// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>

#include "formats/grib2/handle.hpp"
#include "formats/grib2/packing.hpp"

namespace tailrace::grib2 {

/// Lets ecCodes encode sections 5 and 7. All fields of a packing share one handle, on an unstructured grid:
/// grid, time and parameter of a message do not change how its values are packed. Each thread has an object
/// of its own.
class EccodesPacking {
 public:
  /// Appends section 5, `bitmap` as section 6, and section 7. The values must be finite, and not all equal.
  Status append(const ByteVector& representation, const double* values, Index count, int bits,
                std::span<const std::byte> bitmap, ByteVector& out);

 private:
  Status begin(const ByteVector& representation);

  std::optional<Handle> handle_;
  ByteVector representation_;  // the section 5 with which the handle was made
};

/// Returns true if simple packing of this library gives the same octets as this process's ecCodes. Compares
/// them once in a process, on probes of all widths. If they differ (another version, another rounding), the
/// codec leaves the packing to ecCodes.
bool simple_packing_agrees();
/// Returns true if CCSDS packing of this library gives the same octets as ecCodes, likewise.
bool ccsds_packing_agrees();

}  // namespace tailrace::grib2
