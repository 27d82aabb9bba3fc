// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdio>
#include <cstdlib>

namespace bench {

/// Ends the program with a message.
[[noreturn]] inline void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "bench: %s: %s\n", what, why);
  std::exit(1);
}

}  // namespace bench
