/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* With USE_GETS, USE_C_GETS or USE_WIDE this must not compile. Without them, it must compile as C99. */
#if defined USE_C_GETS || defined USE_WIDE
#include <tailrace/stdio.h>
#else
#include <tailrace.h>
#endif

int main(void) {
  char line[80];
#if defined USE_GETS
  return tr_gets(line) == NULL;
#elif defined USE_C_GETS
  return gets(line) == NULL;
#elif defined USE_WIDE
  return tr_fgets(line, sizeof line, tr_stdin) == NULL || wprintf(L"a line of each rank\n") < 0;
#else
  return tr_fgets(line, sizeof line, tr_stdin) == NULL;
#endif
}
