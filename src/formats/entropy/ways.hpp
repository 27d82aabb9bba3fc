// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

// The instructions of each way, for the attribute `target` of the functions that are compiled for it. What
// they inline is compiled for the same instructions. Vectors have 256 bits in both: a block of 32 narrow
// codes is two of them, and sums over vectors of 512 bits took longer. AVX-512 adds comparisons to masks and
// narrower conversions.
#define TAILRACE_ENTROPY_AVX2 "avx2,bmi,bmi2,lzcnt,popcnt"
#if defined(__clang__)
#define TAILRACE_ENTROPY_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,lzcnt,popcnt"
#else
#define TAILRACE_ENTROPY_AVX512 \
  "avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,lzcnt,popcnt,prefer-vector-width=256"
#endif
