// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A library that tests preload into a program. fsync of a directory fails, and fsync of a file works: the
// names that the program gives to files may be lost with the power. The test then checks that the program
// does not report such a file as written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int (*fsync_function)(int);

int fsync(int descriptor) {
  struct stat info;
  if (fstat(descriptor, &info) == 0 && S_ISDIR(info.st_mode)) {
    errno = EIO;
    return -1;
  }
  return ((fsync_function)dlsym(RTLD_NEXT, "fsync"))(descriptor);
}
