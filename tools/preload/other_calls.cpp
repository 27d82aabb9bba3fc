// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>

#include "preload.hpp"

using namespace tailrace::run;

namespace {

/// Calls a function of libc on the file behind a placeholder, by a lent descriptor.
template <typename F, typename... A>
auto on_file(Real<F>& real, int descriptor, A... arguments) -> decltype(real(descriptor, arguments...)) {
  if (!is_shared(descriptor)) return real(descriptor, arguments...);
  const int lent = lend(descriptor);
  if (lent < 0) return -1;
  counters().others.fetch_add(1, std::memory_order_relaxed);
  const auto answer = real(lent, arguments...);
  const int error = errno;
  syscall(SYS_close, lent);
  errno = error;
  return answer;
}

/// Stores the file before a program sets its times: storing afterwards would change them.
int settle_times(int descriptor) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return 0;
  const std::uint32_t file = arena().descriptions[number].file;
  if (const int error = store_shared(file, false); error != 0) return error;
  arena().files[file].changed_ns = 0;
  return 0;
}

/// Looks for placeholders among the descriptors that have come with a message.
void receive_descriptors(msghdr& message) {
  if (!is_active()) return;
  const int error = errno;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, reinterpret_cast<const char*>(part) + at, sizeof(descriptor));
      receive_descriptor(descriptor);
    }
  }
  errno = error;
}

}  // namespace

TR_CATCH(ssize_t, recvmsg, (int socket, msghdr* message, int flags)) {
  const ssize_t got = real_recvmsg(socket, message, flags);
  if (got >= 0) receive_descriptors(*message);
  return got;
}
TR_CATCH(int, recvmmsg, (int socket, mmsghdr* messages, unsigned count, int flags, timespec* limit)) {
  const int got = real_recvmmsg(socket, messages, count, flags, limit);
  for (int each = 0; each < got; ++each) receive_descriptors(messages[each].msg_hdr);
  return got;
}

TR_CATCH(int, fchmod, (int descriptor, mode_t mode)) { return on_file(real_fchmod, descriptor, mode); }
TR_CATCH(int, fchown, (int descriptor, uid_t user, gid_t group)) {
  return on_file(real_fchown, descriptor, user, group);
}
TR_CATCH(int, futimens, (int descriptor, const timespec* times)) {
  if (const int error = settle_times(descriptor); error != 0) return fail(error);
  return on_file(real_futimens, descriptor, times);
}
TR_CATCH(int, futimes, (int descriptor, const timeval* times)) {
  if (const int error = settle_times(descriptor); error != 0) return fail(error);
  return on_file(real_futimes, descriptor, times);
}
TR_CATCH(int, fstatfs, (int descriptor, struct statfs* status)) {
  return on_file(real_fstatfs, descriptor, status);
}
TR_ALSO(int, fstatfs64, fstatfs, (int descriptor, struct statfs* status));
TR_CATCH(int, fstatvfs, (int descriptor, struct statvfs* status)) {
  return on_file(real_fstatvfs, descriptor, status);
}
TR_ALSO(int, fstatvfs64, fstatvfs, (int descriptor, struct statvfs* status));
TR_CATCH(long, fpathconf, (int descriptor, int name)) { return on_file(real_fpathconf, descriptor, name); }
TR_CATCH(ssize_t, fgetxattr, (int descriptor, const char* name, void* value, size_t size)) {
  return on_file(real_fgetxattr, descriptor, name, value, size);
}
TR_CATCH(ssize_t, flistxattr, (int descriptor, char* list, size_t size)) {
  return on_file(real_flistxattr, descriptor, list, size);
}
TR_CATCH(int, fsetxattr, (int descriptor, const char* name, const void* value, size_t size, int flags)) {
  return on_file(real_fsetxattr, descriptor, name, value, size, flags);
}
TR_CATCH(int, fremovexattr, (int descriptor, const char* name)) {
  return on_file(real_fremovexattr, descriptor, name);
}

TR_CATCH(void*, mmap,
         (void* address, size_t bytes, int protection, int flags, int descriptor, off_t offset)) {
  if ((flags & MAP_ANONYMOUS) != 0 || !is_shared(descriptor))
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset));
  refuse(&Counters::maps_refused, descriptor, "a mapping (mmap)",
         "read and write it, or leave it out of --shared");
  errno = EBADF;
  return MAP_FAILED;
}
TR_ALSO(void*, mmap64, mmap,
        (void* address, size_t bytes, int protection, int flags, int descriptor, off_t offset));

TR_CATCH(int, ioctl, (int descriptor, unsigned long request, ...)) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  // The kernel would make the copy share blocks on storage. After this error programs copy the bytes.
  const bool clones = request == FICLONE || request == FICLONERANGE;
  if (clones &&
      is_shared(static_cast<int>(request == FICLONE ? reinterpret_cast<std::intptr_t>(argument)
                                                    : static_cast<file_clone_range*>(argument)->src_fd)))
    return fail(EOPNOTSUPP);
  if (!is_shared(descriptor)) return real_ioctl(descriptor, request, argument);
  if (clones) return fail(EOPNOTSUPP);
  if (request != FIONREAD) return fail(ENOTTY);
  struct stat status = {};
  if (stat_shared(descriptor, &status) != 0) return -1;
  const off_t left = status.st_size - seek_shared(descriptor, 0, SEEK_CUR);
  *static_cast<int*>(argument) = static_cast<int>(std::clamp<off_t>(left, 0, INT_MAX));
  return 0;
}

TR_CATCH(int, isatty, (int descriptor)) {
  if (!is_shared(descriptor)) return real_isatty(descriptor);
  errno = ENOTTY;
  return 0;
}

namespace {

ssize_t read_any(int descriptor, char* to, size_t bytes, off_t offset, bool at_position) {
  const iovec part = {to, bytes};
  if (is_shared(descriptor)) return read_shared(descriptor, &part, 1, offset, at_position);
  return at_position ? syscall(SYS_read, descriptor, to, bytes)
                     : syscall(SYS_pread64, descriptor, to, bytes, offset);
}
ssize_t write_any(int descriptor, const char* from, size_t bytes, off_t offset, bool at_position) {
  const iovec part = {const_cast<char*>(from), bytes};
  if (is_shared(descriptor)) return write_shared(descriptor, &part, 1, offset, at_position);
  return at_position ? syscall(SYS_write, descriptor, from, bytes)
                     : syscall(SYS_pwrite64, descriptor, from, bytes, offset);
}

/// True if the descriptor was opened with `access` (O_RDONLY or O_WRONLY) or O_RDWR. `flags` becomes its
/// flags.
bool may(int descriptor, int access, int& flags) {
  flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && ((flags & O_ACCMODE) == access || (flags & O_ACCMODE) == O_RDWR);
}

bool is_regular(int descriptor) {
  struct stat status = {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

/// Returns the errno with which the kernel would refuse to copy, or 0. `appending` is the errno for a
/// destination with O_APPEND.
int refusal_of(int from, const off_t* from_offset, int to, int appending) {
  int reading = 0, writing = 0;
  if (!may(from, O_RDONLY, reading) || !may(to, O_WRONLY, writing)) return EBADF;
  if ((from_offset != nullptr && *from_offset < 0) || !is_regular(from)) return EINVAL;
  return (writing & O_APPEND) != 0 ? appending : 0;
}

/// Copies bytes between descriptors, which sendfile and copy_file_range would do inside the kernel. Returns
/// the number of bytes, which may be less than `bytes`, or -1 with errno.
ssize_t copy(int from, off_t* from_offset, int to, off_t* to_offset, size_t bytes) {
  alignas(64) char room[1 << 16];
  const size_t wanted = std::min(bytes, sizeof(room));
  const ssize_t got =
      read_any(from, room, wanted, from_offset != nullptr ? *from_offset : 0, from_offset == nullptr);
  if (got <= 0) return got;
  const ssize_t put = write_any(to, room, static_cast<size_t>(got), to_offset != nullptr ? *to_offset : 0,
                                to_offset == nullptr);
  const ssize_t moved = std::max<ssize_t>(put, 0);
  // The position moves by the bytes that were written, not by those that were read.
  if (from_offset != nullptr) *from_offset += moved;
  if (from_offset == nullptr && moved < got)
    is_shared(from) ? seek_shared(from, moved - got, SEEK_CUR)
                    : syscall(SYS_lseek, from, moved - got, SEEK_CUR);
  if (to_offset != nullptr) *to_offset += moved;
  return put;
}

}  // namespace

TR_CATCH(ssize_t, sendfile, (int to, int from, off_t* offset, size_t bytes)) {
  if (!is_shared(to) && !is_shared(from)) return real_sendfile(to, from, offset, bytes);
  if (const int error = refusal_of(from, offset, to, EINVAL); error != 0) return fail(error);
  return copy(from, offset, to, nullptr, bytes);
}
TR_ALSO(ssize_t, sendfile64, sendfile, (int to, int from, off_t* offset, size_t bytes));
TR_CATCH(ssize_t, copy_file_range,
         (int from, off_t* from_offset, int to, off_t* to_offset, size_t bytes, unsigned flags)) {
  if (!is_shared(to) && !is_shared(from))
    return real_copy_file_range(from, from_offset, to, to_offset, bytes, flags);
  if (flags != 0 || (to_offset != nullptr && *to_offset < 0) || !is_regular(to)) return fail(EINVAL);
  if (const int error = refusal_of(from, from_offset, to, EBADF); error != 0) return fail(error);
  return copy(from, from_offset, to, to_offset, bytes);
}
