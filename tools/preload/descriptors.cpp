// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>

#include "preload.hpp"

using namespace tailrace::run;

namespace {

/// Notes that `to` is a duplicate of `from` now, and no longer what it was before. Returns `to`, or -1 with
/// errno.
int duplicated(int from, int to) {
  if (to < 0 || in_borrowed_memory()) return to;
  if (to >= most_descriptors) {
    if (!is_shared(from)) return to;
    syscall(SYS_close, to);
    return fail(EMFILE);
  }
  const std::uint32_t description = description_of(from);
  if (description != nobody && description_of(to) == description) return to;
  // As dup2 does, this hides an error of the file that loses its descriptor.
  if (is_shared(to)) (void)remove_descriptor(to);
  if (description != nobody) add_descriptor(to, description);
  return to;
}

int set_flags(std::uint32_t number, int flags) {
  constexpr int settable = O_APPEND | O_NONBLOCK | O_NOATIME;
  std::atomic<int>& now = arena().descriptions[number].flags;
  now = (now & ~settable) | (flags & settable);
  return 0;
}

int control(Real<int(int, int, ...)>& real, int descriptor, int command, void* argument) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) {
    const int answer = real(descriptor, command, argument);
    if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && answer >= 0 && is_shared(answer) &&
        !in_borrowed_memory())
      (void)remove_descriptor(answer);
    return answer;
  }
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
      return duplicated(descriptor, real(descriptor, command, argument));
    case F_GETFD:
    case F_SETFD:
      return real(descriptor, command, argument);
    case F_GETFL:
      return arena().descriptions[number].flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY | O_CLOEXEC);
    case F_SETFL:
      return set_flags(number, static_cast<int>(reinterpret_cast<std::intptr_t>(argument)));
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      return lock_range(descriptor, command, static_cast<struct flock*>(argument));
    default:
      return fail(EINVAL);
  }
}

}  // namespace

TR_CATCH(int, close, (int descriptor)) {
  if (is_shared(descriptor)) return result_of(close_shared(descriptor));
  // A program that closes all descriptors must not close the connection to the keeper.
  if (descriptor >= 0 && descriptor == keeper_descriptor() && !in_borrowed_memory()) return fail(EBADF);
  return real_close(descriptor);
}

TR_ALSO(int, __close, close, (int descriptor));

TR_CATCH(int, dup, (int descriptor)) { return duplicated(descriptor, real_dup(descriptor)); }

TR_CATCH(int, dup3, (int from, int to, int flags)) {
  if (to >= 0 && to == keeper_descriptor() && from != to && !in_borrowed_memory()) move_keeper_descriptor();
  return duplicated(from, real_dup3(from, to, flags));
}

TR_CATCH(int, dup2, (int from, int to)) {
  if (to >= 0 && to == keeper_descriptor() && from != to && !in_borrowed_memory()) move_keeper_descriptor();
  return from == to ? real_dup2(from, to) : duplicated(from, real_dup2(from, to));
}

TR_ALSO(int, __dup2, dup2, (int from, int to));

TR_CATCH(int, fcntl, (int descriptor, int command, ...)) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(real_fcntl, descriptor, command, argument);
}
TR_ALSO(int, __fcntl, fcntl, (int descriptor, int command, ...));
TR_CATCH(int, fcntl64, (int descriptor, int command, ...)) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(real_fcntl64, descriptor, command, argument);
}

TR_CATCH(int, close_range, (unsigned first, unsigned last, int flags)) {
  constexpr int on_exec = 4;  // CLOSE_RANGE_CLOEXEC
  if (in_borrowed_memory() || (flags & on_exec) != 0) return real_close_range(first, last, flags);
  for (unsigned each = first; each <= last && each < most_descriptors; ++each)
    if (is_shared(static_cast<int>(each))) (void)close_shared(static_cast<int>(each));
  const auto ours = static_cast<unsigned>(keeper_descriptor());
  if (keeper_descriptor() < 0 || ours < first || ours > last) return real_close_range(first, last, flags);
  int answer = ours > first ? real_close_range(first, ours - 1, flags) : 0;
  if (answer == 0 && ours < last) answer = real_close_range(ours + 1, last, flags);
  return answer;
}
TR_CATCH(void, closefrom, (int first)) {
  (void)tr_close_range(first < 0 ? 0 : static_cast<unsigned>(first), ~0U, 0);
}
