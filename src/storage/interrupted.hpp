// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cerrno>

namespace tailrace::storage {

/// A call that was interrupted so often in a row will not get through. Signals do not come that fast, but
/// file systems in user space have been seen to answer EINTR for good.
constexpr int most_interruptions = 10'000;

/// Repeats `call`, which returns a negative errno when it fails, while a signal interrupts it. After too many
/// interruptions -EINTR is a failure like any other.
template <typename Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  for (int times = 1; result == -EINTR && times < most_interruptions; ++times) result = call();
  return result;
}

}  // namespace tailrace::storage
