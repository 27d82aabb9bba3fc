// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "preload.hpp"

namespace tailrace::run {

std::atomic<std::uint32_t> descriptor_table[most_descriptors];

namespace {

/// By description: how many descriptors of this process it has.
std::atomic<std::int32_t> descriptors_of[most_descriptions];
std::atomic<pid_t> owner{0};

/// Tells the keeper that this process has inherited a placeholder. Returns false if the keeper does not know
/// it.
bool attach(int descriptor, std::uint64_t inode) {
  Request request;
  request.op = Op::attach;
  request.b = static_cast<std::int64_t>(inode);
  Answer answer;
  if (ask(request, answer) != 0) return false;
  add_descriptor(descriptor, answer.description);
  return true;
}

/// Runs in a child of fork. The child has the descriptors of its parent, but needs a connection of its own,
/// over which it tells the keeper of them.
void begin_child() {
  owner = getpid();
  begin_client();
  forget_locks();
  for (int descriptor = 0; descriptor < most_descriptors; ++descriptor) {
    const std::uint32_t description = description_of(descriptor);
    if (description == nobody) continue;
    Request request;
    request.op = Op::attach;
    request.b = static_cast<std::int64_t>(arena().descriptions[description].inode.load());
    Answer answer;
    if (ask(request, answer) == 0) continue;
    descriptor_table[descriptor] = 0;
    say("descriptor %d was lost in fork", descriptor);
  }
}

}  // namespace

bool in_borrowed_memory() {
  // The constructor of another library may run before this library's.
  if (owner.load(std::memory_order_relaxed) == 0) begin_process();
  return getpid() != owner.load(std::memory_order_relaxed);
}

void add_descriptor(int descriptor, std::uint32_t description) {
  descriptors_of[description].fetch_add(1);
  descriptor_table[descriptor].store(description + 1, std::memory_order_release);
  if (descriptor <= 2) follow_standard(descriptor);
}

int remove_descriptor(int descriptor) {
  const std::uint32_t description = descriptor_table[descriptor].exchange(0) - 1;
  if (descriptor <= 2) follow_standard(descriptor);
  if (description == nobody) return 0;
  release_locks(arena().descriptions[description].file);
  if (descriptors_of[description].fetch_sub(1) > 1) return 0;
  Request request;
  request.op = Op::close;
  request.file = description;
  Answer answer;
  return ask(request, answer);
}

int close_shared(int descriptor) {
  const int error = in_borrowed_memory() ? 0 : remove_descriptor(descriptor);
  if (syscall(SYS_close, descriptor) != 0 && error == 0) return errno;
  return error;
}

/// Finds out whether an inherited descriptor is a placeholder, and attaches it. Returns false if the keeper
/// has forgotten its file.
static bool take_up(int descriptor) {
  struct stat status = {};
  if (syscall(SYS_newfstatat, descriptor, "", &status, AT_EMPTY_PATH) != 0 || !S_ISSOCK(status.st_mode))
    return true;
  const long flags = syscall(SYS_fcntl, descriptor, F_GETFL);
  return flags < 0 || (flags & O_PATH) == 0 || attach(descriptor, status.st_ino);
}

void receive_descriptor(int descriptor) {
  if (descriptor < 0 || in_borrowed_memory()) return;
  // The table still has this number: the program has closed the placeholder by a system call of its own.
  if (is_shared(descriptor)) (void)remove_descriptor(descriptor);
  if (descriptor >= most_descriptors || take_up(descriptor)) return;
  say("the file of descriptor %d, which came over a socket, is not known any more: calls on it fail with "
      "EBADF",
      descriptor);
}

/// Finds the placeholders among the descriptors that this program has inherited.
static void inherit() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    const int descriptor = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || descriptor >= most_descriptors || is_shared(descriptor)) continue;
    if (take_up(descriptor)) continue;
    say("the file of the inherited descriptor %d is not known any more: calls on it fail with EBADF",
        descriptor);
  }
  closedir(directory);
}

void begin_process() {
  if (owner.load() != 0) return;
  owner = getpid();
  if (!is_active()) return;
  // No handler takes this library's lock before fork. Otherwise a deadlock is possible: a thread in
  // fflush(NULL) has a lock of libc that fork takes next, and waits for this library's lock.
  pthread_atfork(nullptr, nullptr, begin_child);
  const char* const first = std::getenv(hello_variable);
  if (first != nullptr && std::atol(first) == getpid()) (void)connect_to_keeper();
  inherit();
}

}  // namespace tailrace::run

namespace {
__attribute__((constructor)) void begin() { tailrace::run::begin_process(); }
}  // namespace
