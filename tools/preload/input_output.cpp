// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.hpp"

using namespace tailrace::run;

namespace {

ssize_t read_one(int descriptor, void* to, size_t bytes, off_t offset, bool at_position) {
  const iovec part = {to, bytes};
  return read_shared(descriptor, &part, 1, offset, at_position);
}
ssize_t write_one(int descriptor, const void* from, size_t bytes, off_t offset, bool at_position) {
  const iovec part = {const_cast<void*>(from), bytes};
  return write_shared(descriptor, &part, 1, offset, at_position);
}

}  // namespace

TR_CATCH(ssize_t, read, (int descriptor, void* to, size_t bytes)) {
  if (!is_shared(descriptor)) return real_read(descriptor, to, bytes);
  return read_one(descriptor, to, bytes, 0, true);
}
TR_CATCH(ssize_t, write, (int descriptor, const void* from, size_t bytes)) {
  if (!is_shared(descriptor)) return real_write(descriptor, from, bytes);
  return write_one(descriptor, from, bytes, 0, true);
}
TR_CATCH(ssize_t, pread, (int descriptor, void* to, size_t bytes, off_t offset)) {
  if (!is_shared(descriptor)) return real_pread(descriptor, to, bytes, offset);
  return read_one(descriptor, to, bytes, offset, false);
}
TR_ALSO(ssize_t, pread64, pread, (int descriptor, void* to, size_t bytes, off_t offset));
TR_CATCH(ssize_t, pwrite, (int descriptor, const void* from, size_t bytes, off_t offset)) {
  if (!is_shared(descriptor)) return real_pwrite(descriptor, from, bytes, offset);
  return write_one(descriptor, from, bytes, offset, false);
}
TR_ALSO(ssize_t, pwrite64, pwrite, (int descriptor, const void* from, size_t bytes, off_t offset));
TR_CATCH(ssize_t, readv, (int descriptor, const iovec* parts, int count)) {
  if (!is_shared(descriptor)) return real_readv(descriptor, parts, count);
  return read_shared(descriptor, parts, count, 0, true);
}
TR_CATCH(ssize_t, writev, (int descriptor, const iovec* parts, int count)) {
  if (!is_shared(descriptor)) return real_writev(descriptor, parts, count);
  return write_shared(descriptor, parts, count, 0, true);
}
TR_CATCH(ssize_t, preadv, (int descriptor, const iovec* parts, int count, off_t offset)) {
  if (!is_shared(descriptor)) return real_preadv(descriptor, parts, count, offset);
  return read_shared(descriptor, parts, count, offset, false);
}
TR_ALSO(ssize_t, preadv64, preadv, (int descriptor, const iovec* parts, int count, off_t offset));
TR_CATCH(ssize_t, pwritev, (int descriptor, const iovec* parts, int count, off_t offset)) {
  if (!is_shared(descriptor)) return real_pwritev(descriptor, parts, count, offset);
  return write_shared(descriptor, parts, count, offset, false);
}
TR_ALSO(ssize_t, pwritev64, pwritev, (int descriptor, const iovec* parts, int count, off_t offset));
TR_CATCH(ssize_t, preadv2, (int descriptor, const iovec* parts, int count, off_t offset, int flags)) {
  if (!is_shared(descriptor)) return real_preadv2(descriptor, parts, count, offset, flags);
  if (flags != 0) return fail(EOPNOTSUPP);  // as a file system without RWF_NOWAIT; no flag may be ignored
  return read_shared(descriptor, parts, count, offset, offset == -1);
}
TR_ALSO(ssize_t, preadv64v2, preadv2,
        (int descriptor, const iovec* parts, int count, off_t offset, int flags));
TR_CATCH(ssize_t, pwritev2, (int descriptor, const iovec* parts, int count, off_t offset, int flags)) {
  if (!is_shared(descriptor)) return real_pwritev2(descriptor, parts, count, offset, flags);
  if (flags != 0) return fail(EOPNOTSUPP);  // no flag may be ignored: RWF_SYNC, RWF_APPEND, later ones
  return write_shared(descriptor, parts, count, offset, offset == -1);
}
TR_ALSO(ssize_t, pwritev64v2, pwritev2,
        (int descriptor, const iovec* parts, int count, off_t offset, int flags));

// Older libraries call libc's functions by these names.
TR_ALSO(ssize_t, __read, read, (int descriptor, void* to, size_t bytes));
TR_ALSO(ssize_t, __write, write, (int descriptor, const void* from, size_t bytes));
TR_ALSO(ssize_t, __pread64, pread, (int descriptor, void* to, size_t bytes, off_t offset));
TR_ALSO(ssize_t, __pwrite64, pwrite, (int descriptor, const void* from, size_t bytes, off_t offset));

// Programs that were compiled with _FORTIFY_SOURCE call these functions.
TR_CATCH(ssize_t, __read_chk, (int descriptor, void* to, size_t bytes, size_t room)) {
  if (!is_shared(descriptor) || bytes > room) return real___read_chk(descriptor, to, bytes, room);
  return read_one(descriptor, to, bytes, 0, true);
}
TR_CATCH(ssize_t, __pread_chk, (int descriptor, void* to, size_t bytes, off_t offset, size_t room)) {
  if (!is_shared(descriptor) || bytes > room) return real___pread_chk(descriptor, to, bytes, offset, room);
  return read_one(descriptor, to, bytes, offset, false);
}
TR_ALSO(ssize_t, __pread64_chk, __pread_chk,
        (int descriptor, void* to, size_t bytes, off_t offset, size_t room));

TR_CATCH(off_t, lseek, (int descriptor, off_t offset, int whence)) {
  if (!is_shared(descriptor)) return real_lseek(descriptor, offset, whence);
  return seek_shared(descriptor, offset, whence);
}
TR_ALSO(off_t, lseek64, lseek, (int descriptor, off_t offset, int whence));
TR_ALSO(off_t, __lseek, lseek, (int descriptor, off_t offset, int whence));
TR_CATCH(int, ftruncate, (int descriptor, off_t size)) {
  if (!is_shared(descriptor)) return real_ftruncate(descriptor, size);
  return cut_shared(descriptor, size);
}
TR_ALSO(int, ftruncate64, ftruncate, (int descriptor, off_t size));
TR_CATCH(int, truncate, (const char* path, off_t size)) {
  char full[PATH_MAX];
  if (!matches(AT_FDCWD, path, full)) return real_truncate(path, size);
  const int opened = open_shared(AT_FDCWD, path, full, O_WRONLY, 0);
  if (opened == -2) return real_truncate(path, size);
  if (opened < 0) return -1;
  const int error = cut_shared(opened, size) == 0 ? 0 : errno;
  const int closed = close_shared(opened);
  return result_of(error != 0 ? error : closed);
}
TR_ALSO(int, truncate64, truncate, (const char* path, off_t size));
TR_CATCH(int, fsync, (int descriptor)) {
  if (!is_shared(descriptor)) return real_fsync(descriptor);
  return sync_shared(descriptor);
}
TR_CATCH(int, fdatasync, (int descriptor)) {
  if (!is_shared(descriptor)) return real_fdatasync(descriptor);
  return sync_shared(descriptor);
}
TR_CATCH(int, sync_file_range, (int descriptor, off_t from, off_t bytes, unsigned flags)) {
  if (!is_shared(descriptor)) return real_sync_file_range(descriptor, from, bytes, flags);
  return sync_shared(descriptor);
}
TR_CATCH(int, syncfs, (int descriptor)) {
  if (!is_shared(descriptor)) return real_syncfs(descriptor);
  return sync_shared(descriptor);
}
TR_CATCH(int, posix_fadvise, (int descriptor, off_t from, off_t bytes, int advice)) {
  return is_shared(descriptor) ? 0 : real_posix_fadvise(descriptor, from, bytes, advice);
}
TR_ALSO(int, posix_fadvise64, posix_fadvise, (int descriptor, off_t from, off_t bytes, int advice));
TR_CATCH(ssize_t, readahead, (int descriptor, off_t from, size_t bytes)) {
  return is_shared(descriptor) ? 0 : real_readahead(descriptor, from, bytes);
}

namespace {

int reserve(int descriptor, off_t from, off_t bytes) {
  if (from < 0 || bytes <= 0) return EINVAL;
  if (bytes > most_bytes - from) return EFBIG;
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody || (arena().descriptions[number].flags & O_ACCMODE) == O_RDONLY) return EBADF;
  const std::uint32_t file = arena().descriptions[number].file;
  if (from + bytes > file_limit() && from + bytes > arena().files[file].size) return over_file_limit();
  counters().others.fetch_add(1, std::memory_order_relaxed);
  Request request;
  request.op = Op::reserve;
  request.file = file;
  request.a = from;
  request.b = from + bytes;
  Answer answer;
  return ask(request, answer);
}

}  // namespace

TR_CATCH(int, posix_fallocate, (int descriptor, off_t from, off_t bytes)) {
  return is_shared(descriptor) ? reserve(descriptor, from, bytes)
                               : real_posix_fallocate(descriptor, from, bytes);
}
TR_ALSO(int, posix_fallocate64, posix_fallocate, (int descriptor, off_t from, off_t bytes));
TR_CATCH(int, fallocate, (int descriptor, int mode, off_t from, off_t bytes)) {
  if (!is_shared(descriptor)) return real_fallocate(descriptor, mode, from, bytes);
  return mode == 0 ? result_of(reserve(descriptor, from, bytes)) : fail(EOPNOTSUPP);
}
TR_ALSO(int, fallocate64, fallocate, (int descriptor, int mode, off_t from, off_t bytes));
