// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "clocks.hpp"

#include <sched.h>
#include <time.h>

namespace bench {

namespace {

double read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The cores of the process when it started: pinning must not make the list shorter.
const cpu_set_t& own_cores() {
  static const cpu_set_t cores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  return cores;
}

}  // namespace

double wall() { return read_clock(CLOCK_MONOTONIC); }
double thread_cpu() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
double process_cpu() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

bool pin_to_core(int n) {
  const cpu_set_t& cores = own_cores();
  const int count = CPU_COUNT(&cores);
  if (count == 0) return false;
  int left = n % count;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return ::sched_setaffinity(0, sizeof one, &one) == 0;
  }
  return false;
}

}  // namespace bench
