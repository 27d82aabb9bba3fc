// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "support/crash.hpp"

namespace tailrace::storage {

using Writes = CrashPolicy::Writes;
using Entries = CrashPolicy::Entries;
inline constexpr Writes every_writes[] = {Writes::dropped, Writes::kept, Writes::torn, Writes::garbage};
inline constexpr Entries every_entries[] = {Entries::lost, Entries::kept, Entries::some};

/// Calls `check` on the state of `disk` after a loss of power, in every way and for `seeds` seeds each.
template <typename Check>
void after_every_crash(const CrashTarget& disk, std::uint64_t seeds, Check&& check) {
  for (const Writes writes : every_writes) {
    for (const Entries entries : every_entries) {
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        SCOPED_TRACE(testing::Message() << "writes " << static_cast<int>(writes) << " entries "
                                        << static_cast<int>(entries) << " seed " << seed);
        check(*disk.crash({writes, entries}, seed));
      }
    }
  }
}

}  // namespace tailrace::storage
