// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/entropy/entropy.hpp"

namespace tailrace::entropy {

bool has(Way way) {
#if defined(__x86_64__)
  const auto bits_too = [] {
    return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("lzcnt");
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
