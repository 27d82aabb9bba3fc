// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "arena.hpp"

namespace tailrace::run {

enum class Holding { goes_on, is_stopped, has_ended };

/// Finds out whether the thread that has a lock is stopped (by SIGSTOP, Ctrl-Z or a debugger) or has ended.
/// Makes system calls, because the preloaded library may stand in front of libc's functions.
inline Holding holding_of(const Arena& arena, Holder holder) {
  const std::uint32_t process = process_of(holder);
  // The epoch first: after exec, a thread of the new program may have the number of the thread that has
  // ended.
  if (process < most_processes && (arena.processes[process].epoch.load() & 0xFFFFFU) != epoch_of(holder))
    return Holding::has_ended;
  const int before = errno;
  char path[64], text[512] = {};
  std::snprintf(path, sizeof(path), "/proc/%u/stat", thread_of(holder));
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  Holding found = file < 0 && errno == ENOENT ? Holding::has_ended : Holding::goes_on;
  if (file >= 0) {
    if (syscall(SYS_read, file, text, sizeof(text) - 1) < 0 && errno == ESRCH) found = Holding::has_ended;
    syscall(SYS_close, file);
  }
  // "PID (NAME) STATE ...", where a name may have brackets (proc(5)).
  const char* const end = std::strrchr(text, ')');
  const char state = end != nullptr && end[1] == ' ' ? end[2] : '\0';
  if (state == 'Z' || state == 'X') found = Holding::has_ended;
  // A stopped keeper loses no lock: all wait for it, since no process can do its work.
  if ((state == 'T' || state == 't') && process != keeper_process) found = Holding::is_stopped;
  errno = before;
  return found;
}

}  // namespace tailrace::run
