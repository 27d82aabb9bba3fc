// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <span>

#include "formats/netcdf4/reader.hpp"

// Decoders of filters of HDF5. Files of any writer are read, so parameters and bytes of a chunk may be
// damaged.
namespace tailrace::netcdf4 {

/// Returns Code::unsupported if a dataset went through a method of scaleoffset that is not read. For reals
/// only the method with a number of decimals is read; no HDF5 library writes another one.
Status check_scale_offset(const Filter& filter);
/// Undoes scaleoffset (H5Zscaleoffset.c). `out` has the size of the chunk. It gets the elements, of `element`
/// bytes each, in the byte order `order` of the file. Code::corrupt if parameters or bytes contradict one
/// another.
Status undo_scale_offset(const Filter& filter, Bytes element, std::endian order,
                         std::span<const std::byte> bytes, std::span<std::byte> out);

/// Returns Code::unsupported if this build does not read szip. The error names the library to install.
Status check_szip();
/// Undoes szip. Fills the front of `out` with elements of `element` bytes, and returns the number of bytes.
/// Code::corrupt if parameters or bytes contradict one another.
Result<Bytes> undo_szip(const Filter& filter, Bytes element, std::span<const std::byte> bytes,
                        std::span<std::byte> out);

}  // namespace tailrace::netcdf4
