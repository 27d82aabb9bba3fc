// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "formats/codec/codec.hpp"

namespace tailrace::netcdf4 {

/// Returns true if a file of `size` bytes is finished: it begins with a whole superblock of HDF5 as endings
/// have it. That superblock states the size of the file, and the place of the root group behind `data_end`.
/// Needs no HDF5 library.
Result<bool> is_finished(const codec::ReadBytes& read, Bytes data_end, Bytes size);

/// Local. Blocks on storage. Returns the offset of the superblock in an HDF5 file of `size` bytes: 0, or
/// behind a user block of 512, 1024, 2048, ... bytes. Returns nothing if no superblock stands at any of these
/// offsets. Needs no HDF5 library.
Result<std::optional<Bytes>> find_superblock(const codec::ReadBytes& read, Bytes size);

/// Returns the checksum that HDF5 gives its metadata: Bob Jenkins' lookup3, with 0 as the initial value.
[[nodiscard]] std::uint32_t metadata_checksum(std::span<const std::byte> bytes);

}  // namespace tailrace::netcdf4
