// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Runs libFuzzer on one of the functions that read inputs. CMake gives the function's name: ./dev fuzz --what
// ...
#include <cstdint>

#include "copy_input.hpp"
#include "inputs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tailrace::fuzz::TAILRACE_INPUT(std::as_bytes(std::span(data, size)));
  return 0;
}
