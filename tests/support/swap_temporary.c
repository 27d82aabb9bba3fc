// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A library that tests preload into a program. As soon as the program has made a temporary file NAME.tmp-...,
// the library puts a link to "victim" in its place, as any user who may write to the directory could. The
// test then checks that the program has written to the file that it has made, and not to "victim".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

typedef int (*open_function)(const char*, int, ...);

static int open_and_swap(const char* name, const char* path, int flags, mode_t mode) {
  const int descriptor = ((open_function)dlsym(RTLD_NEXT, name))(path, flags, mode);
  if (descriptor >= 0 && (flags & O_EXCL) != 0 && strstr(path, ".tmp-") != NULL && unlink(path) == 0) {
    if (symlink("victim", path) != 0) _exit(99);
  }
  return descriptor;
}

static mode_t mode_in(va_list list, int flags) { return (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0; }

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_in(list, flags);
  va_end(list);
  return open_and_swap("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_in(list, flags);
  va_end(list);
  return open_and_swap("open64", path, flags, mode);
}
