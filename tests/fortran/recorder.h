// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The parts of the recorder share this.
#ifndef TAILRACE_TESTS_RECORDER_H
#define TAILRACE_TESTS_RECORDER_H

#include <tailrace.h>

struct tr_layout {
  int ndims;
  tr_index shape[8], halo[8];
};

// By element type.
extern const int element_bytes[10];

// Starts the line of a call, and adds to it.
void begin(const char* name);
void say(const char* format, ...);
void say_indices(const char* name, int count, const tr_index* values);
// TR_OK, or an error if RECORDER_REFUSE names the call.
int verdict(const char* name);
// The text of an error that the recorder finds itself.
int refuse(int code, const char* text);

#endif
