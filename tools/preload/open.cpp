// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "../run/placeholder.hpp"
#include "preload.hpp"

namespace tailrace::run {

namespace {

int stat_raw(int descriptor, const char* path, struct stat& status, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, descriptor, path, &status, flags));
}

/// Sets errno to EACCES, and prints why if the user may write the file: without this library the open would
/// succeed.
void explain_no_reading(int directory, const char* path, const char* full) {
  const long written = syscall(SYS_openat, directory, path, O_WRONLY | O_CLOEXEC, 0);
  if (written >= 0) {
    syscall(SYS_close, written);
    say("%s may be written but not read, which is refused: a page is read before parts of it are written",
        full);
  }
  errno = EACCES;
}

/// Hands the file behind the descriptor `real` over to the keeper, and makes `real` a placeholder. So the
/// program gets the lowest number that was free, as POSIX says. Returns `real`, or -1 with errno.
int hand_over(int real, const char* full, int flags) {
  std::uint64_t inode = 0;
  const int placeholder = make_placeholder(inode);
  Request request;
  request.op = Op::open;
  request.a = flags;
  request.b = static_cast<std::int64_t>(inode);
  std::snprintf(request.text, sizeof(request.text), "%s", full);
  Answer answer;
  int error = placeholder < 0 ? errno : real >= most_descriptors ? EMFILE : ask(request, answer, real);
  if (error == 0) {
    syscall(SYS_dup3, placeholder, real, flags & O_CLOEXEC);
    add_descriptor(real, answer.description);
    counters().others.fetch_add(1, std::memory_order_relaxed);
  } else {
    syscall(SYS_close, real);
  }
  if (placeholder >= 0) syscall(SYS_close, placeholder);
  return error == 0 ? real : fail(error);
}

}  // namespace

int open_shared(int directory, const char* path, const char* full, int flags, mode_t mode) {
  struct stat status = {};
  constexpr int not_ours = O_PATH | O_DIRECTORY | (O_TMPFILE & ~O_DIRECTORY);
  if ((flags & not_ours) != 0) return -2;
  if (stat_raw(directory, path, status, 0) == 0 && !S_ISREG(status.st_mode)) return -2;
  if (in_borrowed_memory()) {
    say("%s is opened between vfork and exec, which is refused: open it before, or after exec", full);
    return fail(EAGAIN);
  }
  if (const int error = connect_to_keeper(); error != 0) return fail(error);
  // With O_TRUNC, Linux cuts the file even if it is opened for reading only: so the keeper must be able to
  // write.
  const int access = (flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY ? O_RDONLY : O_RDWR;
  const int kept = flags & (O_CREAT | O_EXCL | O_NOFOLLOW | O_NOATIME);
  const long real = syscall(SYS_openat, directory, path, access | kept | O_CLOEXEC, mode);
  if (real < 0) {
    if (errno == EACCES && (flags & O_ACCMODE) == O_WRONLY) explain_no_reading(directory, path, full);
    return -1;
  }
  if (stat_raw(static_cast<int>(real), "", status, AT_EMPTY_PATH) != 0 || !S_ISREG(status.st_mode)) {
    syscall(SYS_close, real);
    return -2;
  }
  return hand_over(static_cast<int>(real), full, flags);
}

int reopen_shared(int descriptor, int flags) {
  const int lent = lend(descriptor);
  if (lent < 0) return -1;
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", lent);
  char full[PATH_MAX];
  const long length = syscall(SYS_readlinkat, AT_FDCWD, path, full, sizeof(full) - 1);
  full[length > 0 ? length : 0] = '\0';
  const int access = (flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY ? O_RDONLY : O_RDWR;
  const long real = syscall(SYS_openat, AT_FDCWD, path, access | O_CLOEXEC, 0);
  const int error = errno;
  syscall(SYS_close, lent);
  return real < 0 ? fail(error) : hand_over(static_cast<int>(real), full, flags);
}

namespace {

int open_any(Real<int(int, const char*, int, ...)>& real, int directory, const char* path, int flags,
             mode_t mode) {
  char full[PATH_MAX];
  if (matches(directory, path, full)) {
    const int opened = open_shared(directory, path, full, flags, mode);
    if (opened != -2) return opened;
  } else if (const int named = named_placeholder(path); named >= 0) {
    return reopen_shared(named, flags);
  }
  const int opened = real(directory, path, flags, mode);
  // The table still has this number: the program has closed the placeholder by a system call of its own.
  if (opened >= 0 && is_shared(opened) && !in_borrowed_memory()) (void)remove_descriptor(opened);
  return opened;
}

bool takes_mode(int flags) { return (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0; }

}  // namespace

}  // namespace tailrace::run

using namespace tailrace::run;

TR_CATCH(int, openat, (int directory, const char* path, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_any(real_openat, directory, path, flags, mode);
}
TR_ALSO(int, openat64, openat, (int directory, const char* path, int flags, ...));

TR_CATCH(int, open, (const char* path, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_any(real_openat, AT_FDCWD, path, flags, mode);
}
TR_ALSO(int, open64, open, (const char* path, int flags, ...));
// Older libraries call libc's functions by these names.
TR_ALSO(int, __open, open, (const char* path, int flags, ...));
TR_ALSO(int, __open64, open, (const char* path, int flags, ...));

TR_CATCH(int, creat, (const char* path, mode_t mode)) {
  return open_any(real_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
TR_ALSO(int, creat64, creat, (const char* path, mode_t mode));

TR_CATCH(int, __open_2, (const char* path, int flags)) {
  return open_any(real_openat, AT_FDCWD, path, flags, 0);
}
TR_ALSO(int, __open64_2, __open_2, (const char* path, int flags));

TR_CATCH(int, __openat_2, (int directory, const char* path, int flags)) {
  return open_any(real_openat, directory, path, flags, 0);
}
TR_ALSO(int, __openat64_2, __openat_2, (int directory, const char* path, int flags));
