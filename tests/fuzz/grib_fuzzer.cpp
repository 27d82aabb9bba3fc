// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// libFuzzer over the reader of GRIB files: ./dev fuzz --what grib.
#include <cstdint>

#include "grib_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tailrace::fuzz::read_grib_input(std::as_bytes(std::span(data, size)));
  return 0;
}
