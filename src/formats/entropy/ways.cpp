// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/entropy/entropy.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tailrace::entropy {

#if defined(__x86_64__)

namespace {

/// Clang 14 has no name for this in __builtin_cpu_supports. A processor without LZCNT executes it as BSR,
/// which counts otherwise.
bool has_lzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_LZCNT) != 0;
}

}  // namespace

#endif

bool has(Way way) {
#if defined(__x86_64__)
  const auto bits_too = [] {
    return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt") && has_lzcnt();
  };
  if (way == Way::avx2) return __builtin_cpu_supports("avx2") && bits_too();
  if (way == Way::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && has(Way::avx2);
#endif
  return way == Way::portable;
}

Way best_way() {
  static const Way best = has(Way::avx512) ? Way::avx512 : has(Way::avx2) ? Way::avx2 : Way::portable;
  return best;
}

}  // namespace tailrace::entropy
