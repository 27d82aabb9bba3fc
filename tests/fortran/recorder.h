// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// What the sources of the recorder share.
#ifndef TAILRACE_TESTS_RECORDER_H
#define TAILRACE_TESTS_RECORDER_H

#include <tailrace.h>

struct tr_layout {
  int ndims;
  tr_index shape[8], halo[8];
};

// By element type: the bytes of an element.
extern const int element_bytes[13];

// begin() starts the line of a call; the other two append to it.
void begin(const char* name);
void say(const char* format, ...);
void say_indices(const char* name, int count, const tr_index* values);
// Returns TR_OK, or an error if RECORDER_REFUSE names the call.
int verdict(const char* name);
// Sets the text of an error that the recorder itself has found, and returns its code.
int refuse(int code, const char* text);

#endif
