// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "preload.hpp"

namespace tailrace::run {

void correct(struct stat& status) {
  if (!S_ISREG(status.st_mode)) return;
  // Between vfork and exec no connection may be made: its descriptor would be the child's, and the memory in
  // which its number is noted the parent's.
  if (in_borrowed_memory() ? shared_arena.load() == nullptr : connect_to_keeper() != 0) return;
  const std::uint32_t number = arena().find_file(status.st_dev, status.st_ino);
  if (number == nobody) return;
  const File& file = arena().files[number];
  status.st_size = file.size;
  const std::int64_t changed_ns = file.changed_ns;
  const timespec changed = {changed_ns / 1'000'000'000, changed_ns % 1'000'000'000};
  if (changed.tv_sec < status.st_mtim.tv_sec ||
      (changed.tv_sec == status.st_mtim.tv_sec && changed.tv_nsec <= status.st_mtim.tv_nsec))
    return;
  status.st_mtim = changed;
  status.st_ctim = changed;
  // A program that sees fewer blocks would think that the file has holes.
  status.st_blocks = std::max<blkcnt_t>(status.st_blocks, (status.st_size + 511) / 512);
}

int stat_shared(int descriptor, struct stat* status) {
  const int lent = lend(descriptor);
  if (lent < 0) return -1;
  const long failed = syscall(SYS_newfstatat, lent, "", status, AT_EMPTY_PATH);
  const int error = errno;
  syscall(SYS_close, lent);
  if (failed != 0) return fail(error);
  counters().others.fetch_add(1, std::memory_order_relaxed);
  correct(*status);
  return 0;
}

namespace {

int stat_any(int directory, const char* path, struct stat* status, int flags) {
  if (path != nullptr && path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0 && is_shared(directory))
    return stat_shared(directory, status);
  if (syscall(SYS_newfstatat, directory, path, status, flags) != 0) return -1;
  char full[PATH_MAX];
  if (S_ISREG(status->st_mode) && matches(directory, path, full)) correct(*status);
  return 0;
}

int fstat_any(int descriptor, struct stat* status) {
  if (is_shared(descriptor)) return stat_shared(descriptor, status);
  return static_cast<int>(syscall(SYS_newfstatat, descriptor, "", status, AT_EMPTY_PATH));
}

/// Copies the size and times of `known` to `status`.
void correct_statx(const struct stat& known, struct statx* status) {
  status->stx_size = static_cast<std::uint64_t>(known.st_size);
  status->stx_blocks = static_cast<std::uint64_t>(known.st_blocks);
  status->stx_mtime.tv_sec = known.st_mtim.tv_sec;
  status->stx_mtime.tv_nsec = static_cast<std::uint32_t>(known.st_mtim.tv_nsec);
  status->stx_ctime.tv_sec = known.st_ctim.tv_sec;
  status->stx_ctime.tv_nsec = static_cast<std::uint32_t>(known.st_ctim.tv_nsec);
}

}  // namespace

}  // namespace tailrace::run

using namespace tailrace::run;

TR_CATCH(int, stat, (const char* path, struct stat* status)) { return stat_any(AT_FDCWD, path, status, 0); }
TR_ALSO(int, stat64, stat, (const char* path, struct stat* status));
TR_CATCH(int, lstat, (const char* path, struct stat* status)) {
  return stat_any(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
TR_ALSO(int, lstat64, lstat, (const char* path, struct stat* status));
TR_CATCH(int, fstat, (int descriptor, struct stat* status)) { return fstat_any(descriptor, status); }
TR_ALSO(int, fstat64, fstat, (int descriptor, struct stat* status));
TR_CATCH(int, fstatat, (int directory, const char* path, struct stat* status, int flags)) {
  return stat_any(directory, path, status, flags);
}
TR_ALSO(int, fstatat64, fstatat, (int directory, const char* path, struct stat* status, int flags));

// Programs that were linked with a glibc before 2.33 call these functions. The first argument is a version of
// the structure; on 64-bit systems there is only one.
TR_CATCH(int, __xstat, (int, const char* path, struct stat* status)) {
  return stat_any(AT_FDCWD, path, status, 0);
}
TR_ALSO(int, __xstat64, __xstat, (int, const char* path, struct stat* status));
TR_CATCH(int, __lxstat, (int, const char* path, struct stat* status)) {
  return stat_any(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
TR_ALSO(int, __lxstat64, __lxstat, (int, const char* path, struct stat* status));
TR_CATCH(int, __fxstat, (int, int descriptor, struct stat* status)) { return fstat_any(descriptor, status); }
TR_ALSO(int, __fxstat64, __fxstat, (int, int descriptor, struct stat* status));
TR_CATCH(int, __fxstatat, (int, int directory, const char* path, struct stat* status, int flags)) {
  return stat_any(directory, path, status, flags);
}
TR_ALSO(int, __fxstatat64, __fxstatat,
        (int, int directory, const char* path, struct stat* status, int flags));

TR_CATCH(int, statx, (int directory, const char* path, int flags, unsigned mask, struct statx* status)) {
  char full[PATH_MAX];
  struct stat known = {};
  if (path != nullptr && path[0] == '\0' && is_shared(directory)) {
    const int lent = lend(directory);
    if (lent < 0) return -1;
    const int answer = real_statx(lent, path, flags, mask, status);
    const int error = errno;
    syscall(SYS_close, lent);
    if (answer != 0) return fail(error);
    if (stat_shared(directory, &known) == 0) correct_statx(known, status);
    return 0;
  }
  const int answer = real_statx(directory, path, flags, mask, status);
  if (answer == 0 && S_ISREG(status->stx_mode) && matches(directory, path, full) &&
      stat_any(directory, path, &known, flags & AT_SYMLINK_NOFOLLOW) == 0)
    correct_statx(known, status);
  return answer;
}
