/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A library that is preloaded into runs whose files are compared. In each run std::random_device of libstdc++
 * counts from the same number, and C's time() stands still: so run numbers and times of saves are the same.
 */
#include <time.h>

unsigned int next_random(void* device) __asm__("_ZNSt13random_device9_M_getvalEv");

unsigned int next_random(void* device) {
  static unsigned int next = 0x1234567U;
  (void)device;
  return next = next * 1664525U + 1013904223U;
}

time_t time(time_t* now) {
  if (now) *now = 1780000000;
  return 1780000000;
}
