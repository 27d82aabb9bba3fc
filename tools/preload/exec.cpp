// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Functions by which programs start other programs. They work as libc's do. A line is printed if this library
// cannot be preloaded into the other program.
#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../run/program_file.hpp"
#include "preload.hpp"

using namespace tailrace::run;

namespace {

std::atomic<bool> has_told{false};  // in this process

/// Prints a line if this library cannot be preloaded into a program, for the first such program of the group.
/// Between vfork and exec a process that has not mapped the arena cannot ask the keeper for it, and does not
/// know whether the line was printed: then each such process prints it for the first such program that it
/// starts.
void look_at_program(const char* path) {
  const int error = errno;
  char program[PATH_MAX];
  const char* const why = is_active() && path != nullptr ? obstacle_in(path, program) : nullptr;
  if (why != nullptr && !has_told.exchange(true)) {
    if (!in_borrowed_memory()) (void)connect_to_keeper();
    Arena* const known = shared_arena.load(std::memory_order_acquire);
    if (known == nullptr || !known->has_told_of_programs.exchange(true))
      say("%.512s %s. It sees matching files as storage has them", program, why);
  }
  errno = error;
}

/// Looks for the program in PATH, as execvp does, and then does as look_at_program().
void look_at_command(const char* name) {
  if (!is_active() || name == nullptr) return;
  if (std::strchr(name, '/') != nullptr) return look_at_program(name);
  const char* rest = std::getenv("PATH");
  if (rest == nullptr) rest = "/bin:/usr/bin";
  for (bool is_last = false; !is_last;) {
    const std::size_t length = std::strcspn(rest, ":");
    char path[PATH_MAX];
    std::snprintf(path, sizeof(path), "%.*s%s%s", static_cast<int>(length), rest, length == 0 ? "./" : "/",
                  name);
    if (syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0) return look_at_program(path);
    is_last = rest[length] == '\0';
    rest += length + 1;
  }
}

}  // namespace

TR_CATCH(int, execve, (const char* path, char* const* arguments, char* const* environment)) {
  look_at_program(path);
  return real_execve(path, arguments, environment);
}
TR_CATCH(int, execv, (const char* path, char* const* arguments)) {
  look_at_program(path);
  return real_execv(path, arguments);
}
TR_CATCH(int, execvp, (const char* name, char* const* arguments)) {
  look_at_command(name);
  return real_execvp(name, arguments);
}
TR_CATCH(int, execvpe, (const char* name, char* const* arguments, char* const* environment)) {
  look_at_command(name);
  return real_execvpe(name, arguments, environment);
}
TR_CATCH(int, fexecve, (int descriptor, char* const* arguments, char* const* environment)) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
  look_at_program(path);
  return real_fexecve(descriptor, arguments, environment);
}

TR_CATCH(int, posix_spawn,
         (pid_t * process, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment)) {
  look_at_program(path);
  return real_posix_spawn(process, path, actions, attributes, arguments, environment);
}
TR_CATCH(int, posix_spawnp,
         (pid_t * process, const char* name, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment)) {
  look_at_command(name);
  return real_posix_spawnp(process, name, actions, attributes, arguments, environment);
}

namespace {

/// Makes a list, which ends with nullptr, of the arguments of execl and similar functions. The list lies on
/// the stack, because a child may call these functions after vfork.
#define TR_LIST_OF(list, first, arguments)                                                \
  va_list arguments;                                                                      \
  va_start(arguments, first);                                                             \
  va_list counting;                                                                       \
  va_copy(counting, arguments);                                                           \
  std::size_t count = (first) == nullptr ? 0 : 1;                                         \
  while (count > 0 && va_arg(counting, char*) != nullptr) ++count;                        \
  va_end(counting);                                                                       \
  char** const list = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  list[0] = const_cast<char*>(first);                                                     \
  for (std::size_t each = 1; each <= count; ++each) list[each] = va_arg(arguments, char*)

}  // namespace

TR_CATCH(int, execl, (const char* path, const char* first, ...)) {
  TR_LIST_OF(list, first, arguments);
  va_end(arguments);
  return tr_execv(path, list);
}
TR_CATCH(int, execlp, (const char* name, const char* first, ...)) {
  TR_LIST_OF(list, first, arguments);
  va_end(arguments);
  return tr_execvp(name, list);
}
TR_CATCH(int, execle, (const char* path, const char* first, ...)) {
  TR_LIST_OF(list, first, arguments);
  char* const* const environment = va_arg(arguments, char* const*);
  va_end(arguments);
  return tr_execve(path, list, environment);
}
