// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/checksum.hpp"

#include "ground/base/checksum_avx2.h"

#define XXH_INLINE_ALL
#include "xxhash/xxhash.h"

namespace tailrace {

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
#ifdef TAILRACE_HAVE_CHECKSUM_AVX2
  if (__builtin_cpu_supports("avx2") != 0) return tailrace_checksum_avx2(bytes.data(), bytes.size(), seed);
#endif
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct Digest::State {
  XXH3_state_t xxh;
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Digest::~Digest() = default;

void Digest::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string Digest::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  std::string out;
  for (const unsigned char byte : canonical.digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace tailrace
