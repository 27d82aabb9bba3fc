/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Compiled for processors with AVX2, and written in C. As C++ it could emit inline functions that other
 * sources share: the linker might then keep the version with AVX2 for processors that lack it. */
#include "ground/base/checksum_avx2.h"

#define XXH_INLINE_ALL
#include "xxhash/xxhash.h"

uint64_t tailrace_checksum_avx2(const void* data, size_t bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}
