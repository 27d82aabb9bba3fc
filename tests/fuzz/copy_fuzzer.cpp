// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// libFuzzer over the readers of checkpoints: ./dev fuzz.
#include <cstdint>

#include "copy_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tailrace::fuzz::read_input(std::as_bytes(std::span(data, size)));
  return 0;
}
