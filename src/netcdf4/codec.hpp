// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>

#include "codec/codec.hpp"
#include "codec/options.hpp"
#include "netcdf4/head.hpp"

namespace tailrace::netcdf4 {

/// Makes the codec of NetCDF-4 files. Returns Code::unsupported if the HDF5 library of this process is not
/// the one with which Tailrace was built.
Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream);
/// Makes the codec of a file from its head.
Result<std::unique_ptr<codec::Codec>> reopen(std::span<const std::byte> head);
/// Returns Code::state if records of a stream with the head `now` cannot follow those of a file with the head
/// `own`.
Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now);

inline codec::FormatOptions options() {
  return {.stream = {{"attributes", {}}, {"compress", {}}},
          .field = {{"attributes", {}},
                    {"accuracy", {}},
                    {"relative_accuracy", {}},
                    {"bits", {}},
                    {"compress", {}},
                    {"chunks", {}}},
          .keys = ""};
}

}  // namespace tailrace::netcdf4
