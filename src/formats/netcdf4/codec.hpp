// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>

#include "formats/cf/grid.hpp"
#include "formats/codec/codec.hpp"
#include "formats/codec/options.hpp"
#include "formats/netcdf4/chunks.hpp"
#include "formats/netcdf4/head.hpp"

namespace tailrace::netcdf4 {

/// Makes the codec of NetCDF-4 files. Returns Code::unsupported if the HDF5 library of this process is not
/// the one with which Tailrace was built.
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);
/// Makes the codec of a file from its head. Code::corrupt and Code::unsupported as from decode_head, and
/// Code::unsupported as from `make`.
Result<std::unique_ptr<codec::Codec>> reopen(std::span<const std::byte> head);
/// Returns Code::state if records of a stream with the head `now` cannot follow the records of a file with
/// the head `own`.
Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now);

/// The form of a field's records in a file that Tailrace wrote. The file need not be finished.
struct RecordsOfField {
  RecordShape record;  // of a field without time: its shape, size of elements and fill value alone
  ElementType type = ElementType::f32;
  cf::Grid grid;
  /// The values of a field without time, big-endian, level by level: their place in the file, and their
  /// bytes. 0: the field has time, or no values.
  Bytes values_at = 0, values_length = 0;
};
/// Returns the form of the records of all fields from the head of a file. Needs no HDF5 library.
/// Code::corrupt and Code::unsupported as from decode_head.
Result<std::vector<RecordsOfField>> fields_in(std::span<const std::byte> head);

inline codec::FormatOptions options() { return codec::options_of_chunked_variables(); }

}  // namespace tailrace::netcdf4
