// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <span>

#include "formats/netcdf4/reader.hpp"

// Decoders of filters of HDF5. Their parameters and the bytes of a chunk may be anything.
namespace tailrace::netcdf4 {

/// Returns Code::unsupported if a dataset's numbers went through a method of scaleoffset that no HDF5 library
/// writes.
Status check_scale_offset(const Filter& filter);
/// Undoes scaleoffset (H5Zscaleoffset.c). `out` has the size of the chunk, whose elements have `element`
/// bytes, and gets them in the byte order of the file.
Status undo_scale_offset(const Filter& filter, Bytes element, std::endian order,
                         std::span<const std::byte> bytes, std::span<std::byte> out);

/// Returns Code::unsupported, naming what this build lacks, if it does not read szip.
Status check_szip();
/// Undoes szip, and returns how many bytes of `out` it gives: elements of `element` bytes.
Result<Bytes> undo_szip(const Filter& filter, Bytes element, std::span<const std::byte> bytes,
                        std::span<std::byte> out);

}  // namespace tailrace::netcdf4
