// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

namespace tailrace::run {

/// Returns a placeholder, or -1 with errno: a descriptor with which the kernel does nothing (O_PATH of a
/// socket that is closed). Reading, writing and mapping it fail with EBADF, opening it again through /proc
/// with ENXIO. `inode` becomes its inode number, which its duplicates and heirs have, too: so they are
/// recognised. Makes system calls, because the preloaded library may stand in front of libc's functions.
inline int make_placeholder(std::uint64_t& inode) {
  const long socket = syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%ld", socket);
  const long placeholder = syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
  const int error = errno;
  struct stat status = {};
  if (placeholder >= 0) (void)syscall(SYS_newfstatat, placeholder, "", &status, AT_EMPTY_PATH);
  inode = status.st_ino;
  (void)syscall(SYS_close, socket);
  errno = error;
  return static_cast<int>(placeholder);
}

}  // namespace tailrace::run
