// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A library that tests preload into a program. statfs tells that all files lie on the file system whose
// number (f_type, in hexadecimal) the variable TEST_FILE_SYSTEM has. The test then checks what the program
// does there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/statfs.h>

typedef int (*statfs_function)(const char*, struct statfs*);

int statfs(const char* path, struct statfs* told) {
  const int result = ((statfs_function)dlsym(RTLD_NEXT, "statfs"))(path, told);
  const char* type = getenv("TEST_FILE_SYSTEM");
  if (result == 0 && type != NULL) told->f_type = (__typeof__(told->f_type))strtoul(type, NULL, 16);
  return result;
}
