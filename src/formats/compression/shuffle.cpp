// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/compression/shuffle.hpp"

#include <algorithm>

namespace tailrace::compression {

namespace {

template <std::size_t size>
void shuffle_all(std::span<const std::byte> elements, std::byte* out) {
  const std::size_t count = elements.size() / size;
  for (std::size_t byte = 0; byte < size; ++byte) {
    const std::byte* from = elements.data() + byte;
    for (std::size_t i = 0; i < count; ++i) *out++ = from[i * size];
  }
}

}  // namespace

void shuffle(std::span<const std::byte> elements, Bytes element_size, ByteVector& out) {
  out.resize(elements.size());
  if (element_size == 2) return shuffle_all<2>(elements, out.data());
  if (element_size == 4) return shuffle_all<4>(elements, out.data());
  if (element_size == 8) return shuffle_all<8>(elements, out.data());
  std::ranges::copy(elements, out.begin());
}

void unshuffle(std::span<const std::byte> shuffled, Bytes element_size, ByteVector& out) {
  const auto size = static_cast<std::size_t>(element_size);
  const std::size_t count = shuffled.size() / size;
  out.resize(shuffled.size());
  for (std::size_t byte = 0; byte < size; ++byte) {
    const std::byte* const from = shuffled.data() + byte * count;
    std::byte* const to = out.data() + byte;
    for (std::size_t i = 0; i < count; ++i) to[i * size] = from[i];
  }
  std::ranges::copy(shuffled.subspan(count * size), out.begin() + static_cast<std::ptrdiff_t>(count * size));
}

}  // namespace tailrace::compression
