// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

namespace bench {

/// Returns the seconds on a clock that all processes of this machine share.
double wall();
/// Returns the seconds that the calling thread has computed, in user and in kernel mode.
double thread_cpu();
double process_cpu();

/// The time of a piece of work.
struct Span {
  double wall = 0;
  double cpu = 0;
};

template <typename Work>
Span timed(Work&& work) {
  const double wall_before = wall(), cpu_before = thread_cpu();
  work();
  return {wall() - wall_before, thread_cpu() - cpu_before};
}

/// Binds the calling thread, and the threads that it will start, to the n-th of the cores that this process
/// may use (counted round). Returns false if the system does not allow it.
bool pin_to_core(int n);

}  // namespace bench
