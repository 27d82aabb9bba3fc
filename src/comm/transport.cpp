// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "comm/transport.hpp"

#include <sched.h>

#include <ctime>

namespace tailrace::comm {

void Transport::idle(std::int64_t nanoseconds, const std::string&) { give_core_away(nanoseconds); }

void give_core_away(std::int64_t nanoseconds) {
  if (nanoseconds == 0) {
    ::sched_yield();
    return;
  }
  const timespec time{0, static_cast<long>(nanoseconds)};
  ::nanosleep(&time, nullptr);
}

}  // namespace tailrace::comm
