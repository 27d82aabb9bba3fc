// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../run/packet.hpp"
#include "preload.hpp"

namespace tailrace::run {

std::atomic<Arena*> shared_arena{nullptr};

namespace {

pthread_mutex_t client_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
std::atomic<int> keeper_socket{-1};
Counters* process_counters = nullptr;
Counters counters_of_nobody;
// This process as the holder of locks, without a thread, and the number of this thread.
std::atomic<Holder> this_process{holder_of(unknown_process, 0, 0)};
__attribute__((tls_model("initial-exec"))) __thread std::uint32_t this_thread = 0;
bool is_busy = false;  // a request is on its way: a signal handler must not send another one meanwhile

void lock_client() { pthread_mutex_lock(&client_lock); }
void unlock_client() { pthread_mutex_unlock(&client_lock); }

// The functions here make system calls: in libc's functions threads may be cancelled, and this library has
// taken the place of some.
long close_raw(int descriptor) { return syscall(SYS_close, descriptor); }

bool send_request(const Request& request, int sent) {
  Packet packet(&request, offsetof(Request, text) + std::strlen(request.text) + 1, sent);
  for (;;) {
    if (syscall(SYS_sendmsg, keeper_socket.load(), packet.message(), MSG_NOSIGNAL) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

bool receive_answer(Answer& answer, int* lent) {
  Packet packet(&answer, sizeof(answer));
  long got = 0;
  do {
    got = syscall(SYS_recvmsg, keeper_socket.load(), packet.message(), MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<long>(sizeof(answer))) return false;
  const int descriptor = packet.descriptor();
  if (lent != nullptr) {
    *lent = descriptor;
  } else if (descriptor >= 0) {
    close_raw(descriptor);
  }
  return true;
}

/// Moves a descriptor to a high number, which programs do not choose themselves. Returns the number.
int move_up(int descriptor) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return descriptor;
  const long highest = limit.rlim_cur > 60000 ? 60000 : static_cast<long>(limit.rlim_cur);
  for (long from = highest - 16; from > 2; from /= 2) {
    const long moved = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, from);
    if (moved < 0) continue;
    close_raw(descriptor);
    return static_cast<int>(moved);
  }
  return descriptor;
}

int open_socket() {
  if (!is_active()) return ENOTCONN;
  const char* const name = socket_name();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(name);
  if (length + 1 > sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path + 1, name, length);  // behind a 0: such a name is in no directory, unix(7)
  const long descriptor = syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  keeper_socket = move_up(static_cast<int>(descriptor));
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  ucred who = {};
  socklen_t length_of_who = sizeof(who);
  const bool is_there = syscall(SYS_connect, keeper_socket.load(), &address, bytes) == 0 &&
                        getsockopt(keeper_socket, SOL_SOCKET, SO_PEERCRED, &who, &length_of_who) == 0;
  // A process of another user that has taken this name would see what the program writes.
  const bool is_ours = is_there && who.uid == geteuid();
  if (is_ours && who.pid != 0) return 0;
  if (is_there && !is_ours)
    say("the keeper %s is of user %u (process %d): it gets nothing", name, who.uid, who.pid);
  const int error = is_ours ? EXDEV : is_there ? EPERM : errno;
  forget_connection();
  return error;
}

int say_hello() {
  Request request;
  request.op = Op::hello;
  const char* const first = std::getenv(hello_variable);
  request.a = first != nullptr && std::atol(first) == getpid() ? 1 : 0;
  Answer answer;
  int memory = -1;
  if (!send_request(request, -1) || !receive_answer(answer, &memory)) return EIO;
  if (answer.error == 0 && shared_arena.load() == nullptr) {
    void* const base =
        mmap(nullptr, answer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
    if (base == MAP_FAILED) {
      answer.error = errno;
    } else {
      shared_arena.store(static_cast<Arena*>(base), std::memory_order_release);
    }
  }
  if (memory >= 0) close_raw(memory);
  if (answer.error == 0) {
    process_counters = &arena().processes[answer.process];
    this_process = holder_of(answer.process, process_counters->epoch, 0);
  }
  return answer.error;
}

}  // namespace

void say(const char* format, ...) {
  char line[1024];
  int length = std::snprintf(line, sizeof(line),
                             "tailrace run: %s (process %d): ", program_invocation_short_name, getpid());
  va_list arguments;
  va_start(arguments, format);
  length +=
      std::vsnprintf(line + length, sizeof(line) - static_cast<std::size_t>(length) - 1, format, arguments);
  va_end(arguments);
  if (length > static_cast<int>(sizeof(line)) - 2) length = static_cast<int>(sizeof(line)) - 2;
  line[length++] = '\n';
  (void)syscall(SYS_write, 2, line, length);
}

void begin_client() {
  // A new lock: the old one may be locked by a thread of the parent, which does not exist in the child.
  const pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  client_lock = fresh;
  is_busy = false;
  this_thread = 0;
  this_process = holder_of(unknown_process, 0, 0);
  forget_connection();
}

Holder self() {
  if (this_thread == 0) this_thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return this_process.load(std::memory_order_relaxed) | this_thread;
}

int keeper_descriptor() { return keeper_socket.load(std::memory_order_relaxed); }

void move_keeper_descriptor() {
  lock_client();
  const int before = keeper_socket;
  const long moved = syscall(SYS_fcntl, before, F_DUPFD_CLOEXEC, before + 1);
  if (moved >= 0) {
    keeper_socket = static_cast<int>(moved);
    close_raw(before);
  }
  unlock_client();
}

void forget_connection() {
  if (keeper_socket >= 0) close_raw(keeper_socket);
  keeper_socket = -1;
  process_counters = nullptr;
}

Counters& counters() { return process_counters != nullptr ? *process_counters : counters_of_nobody; }

int connect_to_keeper() {
  lock_client();
  int error = 0;
  if (keeper_socket < 0) {
    error = open_socket();
    if (error == 0) error = say_hello();
    if (error != 0) {
      forget_connection();
      if (error == EXDEV)
        say("the keeper of this run is in another PID namespace (container), whose programs cannot share "
            "files with those of this one: calls fail with EIO");
      else
        say("the keeper of this run does not answer: %s", std::strerror(error));
      error = EIO;
    }
  }
  unlock_client();
  return error;
}

int ask(const Request& request, Answer& answer, int sent, int* lent) {
  // A child of vfork or of the system call clone would send over its parent's connection.
  if (in_borrowed_memory()) return ENOTSUP;
  lock_client();
  if (is_busy) {
    unlock_client();
    return EDEADLK;
  }
  int error = connect_to_keeper();
  if (error == 0) {
    is_busy = true;
    const bool answered = send_request(request, sent) && receive_answer(answer, lent);
    is_busy = false;
    error = answered ? answer.error : EIO;
    if (!answered) say("the keeper of this run has ended: what it had not stored is lost");
  }
  unlock_client();
  return error;
}

int lend(int descriptor) {
  const std::uint32_t description = description_of(descriptor);
  if (description == nobody) return fail(EBADF);
  Request request;
  request.op = Op::lend;
  request.file = arena().descriptions[description].file;
  Answer answer;
  int lent = -1;
  if (const int error = ask(request, answer, -1, &lent); error != 0) return fail(error);
  return lent >= 0 ? lent : fail(EMFILE);
}

void refuse(std::atomic<std::uint64_t> Counters::*kind, int descriptor, const char* what,
            const char* instead) {
  if ((counters().*kind).fetch_add(1, std::memory_order_relaxed) != 0) return;
  char path[PATH_MAX] = "a shared file";
  const int lent = descriptor >= 0 ? lend(descriptor) : -1;
  if (lent >= 0) {
    char link[64];
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", lent);
    const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
    if (length > 0) path[length] = '\0';
    close_raw(lent);
  }
  say("%s of %.512s is refused: %s", what, path, instead);
}

}  // namespace tailrace::run
