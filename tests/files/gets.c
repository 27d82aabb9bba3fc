/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* With USE_GETS this must not compile. Without it, it must compile as C99. */
#include <tailrace.h>

int main(void) {
  char line[80];
#ifdef USE_GETS
  return tr_gets(line) == NULL;
#else
  return tr_fgets(line, sizeof line, tr_stdin) == NULL;
#endif
}
