// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Locks on shared files are locks of the kernel on the files themselves. The keeper opens the file once for
// each description that has locks, and once for each process that has locks of the process (POSIX). It lends
// the program a descriptor, and the program makes the system call that locks. So waits, signals and locks of
// programs outside of the group work as always.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.hpp"

namespace tailrace::run {

namespace {

/// By file: this process has had locks of the process on it.
std::atomic<bool> is_locked[most_files];

/// Returns a lent descriptor on which to lock, or -1 with errno.
int lend_lock(int descriptor, bool is_of_process) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  Request request;
  request.op = Op::lend_lock;
  request.file = number;
  request.a = is_of_process ? 1 : 0;
  Answer answer;
  int lent = -1;
  const int error = ask(request, answer, -1, &lent);
  if (error == 0 && lent >= 0) {
    if (is_of_process) is_locked[arena().descriptions[number].file] = true;
    return lent;
  }
  const bool is_asked = error != EDEADLK && error != EIO && error != ENOTSUP && error != EBADF;
  if (is_asked)
    refuse(&Counters::locks_refused, descriptor, "a lock", "the keeper cannot open the file once more");
  return fail(is_asked ? ENOLCK : error);
}

int close_lent(int lent, long answer) {
  const int error = errno;
  syscall(SYS_close, lent);
  errno = error;
  return static_cast<int>(answer);
}

/// Makes `range` begin at an offset from the file's begin. The kernel cannot do it: the lent descriptor has
/// another position, and the file on storage another size.
int make_absolute(const Description& description, struct flock& range) {
  std::int64_t base = 0;
  if (range.l_whence == SEEK_CUR) base = description.offset;
  if (range.l_whence == SEEK_END) base = arena().files[description.file].size;
  if (range.l_whence != SEEK_SET && range.l_whence != SEEK_CUR && range.l_whence != SEEK_END) return EINVAL;
  if (__builtin_add_overflow(base, range.l_start, &range.l_start)) return EOVERFLOW;
  range.l_whence = SEEK_SET;
  return range.l_start < 0 ? EINVAL : 0;
}

}  // namespace

int lock_range(int descriptor, int command, struct flock* wanted) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  const Description& description = arena().descriptions[number];
  const bool is_of_process = command == F_SETLK || command == F_SETLKW || command == F_GETLK;
  const bool asks = command == F_GETLK || command == F_OFD_GETLK;
  const int access = description.flags & O_ACCMODE;
  if (!asks && wanted->l_type == F_RDLCK && access == O_WRONLY) return fail(EBADF);
  if (!asks && wanted->l_type == F_WRLCK && access == O_RDONLY) return fail(EBADF);
  struct flock range = *wanted;
  if (const int error = make_absolute(description, range); error != 0) return fail(error);
  if (is_of_process) range.l_pid = 0;
  const int lent = lend_lock(descriptor, is_of_process);
  if (lent < 0) return -1;
  const bool waits = command == F_SETLKW || command == F_OFD_SETLKW;
  const int used = asks ? F_OFD_GETLK : waits ? F_OFD_SETLKW : F_OFD_SETLK;
  const int answer = close_lent(lent, syscall(SYS_fcntl, lent, used, &range));
  if (answer != 0 || !asks) return answer;
  if (range.l_type == F_UNLCK) {
    wanted->l_type = F_UNLCK;
  } else {
    *wanted = range;
  }
  return 0;
}

int lock_whole(int descriptor, int operation) {
  const int lent = lend_lock(descriptor, false);
  return lent < 0 ? -1 : close_lent(lent, syscall(SYS_flock, lent, operation));
}

void release_locks(std::uint32_t file) {
  if (file >= most_files || !is_locked[file].exchange(false)) return;
  Request request;
  request.op = Op::unlock;
  request.file = file;
  Answer answer;
  (void)ask(request, answer);
}

void forget_locks() {
  for (std::atomic<bool>& each : is_locked) each = false;
}

}  // namespace tailrace::run

using namespace tailrace::run;

TR_CATCH(int, flock, (int descriptor, int operation)) {
  return is_shared(descriptor) ? lock_whole(descriptor, operation) : real_flock(descriptor, operation);
}
TR_CATCH(int, lockf, (int descriptor, int command, off_t bytes)) {
  if (!is_shared(descriptor)) return real_lockf(descriptor, command, bytes);
  struct flock range = {};
  range.l_whence = SEEK_CUR;
  range.l_len = bytes;
  range.l_type = command == F_ULOCK ? F_UNLCK : command == F_TEST ? F_RDLCK : F_WRLCK;
  if (command == F_TEST) {
    if (lock_range(descriptor, F_GETLK, &range) != 0) return -1;
    return range.l_type == F_UNLCK ? 0 : fail(EACCES);
  }
  if (command != F_ULOCK && command != F_LOCK && command != F_TLOCK) return fail(EINVAL);
  return lock_range(descriptor, command == F_LOCK ? F_SETLKW : F_SETLK, &range);
}
TR_ALSO(int, lockf64, lockf, (int descriptor, int command, off_t bytes));
