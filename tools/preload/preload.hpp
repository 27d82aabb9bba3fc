// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "../run/arena.hpp"
#include "../run/wire.hpp"

/// The library that `tailrace run` preloads. It stands in front of libc's calls on files. It must work in any
/// program, before main and in threads: it needs libc alone, throws nothing, and allocates memory only where
/// libc does (streams, printed text, listing descriptors).
namespace tailrace::run {

/// A function of libc that ours stands in front of.
template <typename F>
struct Real {
  const char* name;
  std::atomic<F*> found{nullptr};
  F* get() {
    F* function = found.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
      found.store(function, std::memory_order_relaxed);
    }
    return function;
  }
  template <typename... A>
  auto operator()(A... arguments) {
    return get()(arguments...);
  }
};

/// Defines libc's function `name`, under a name of our own: the headers declare the other in several ways.
#define TR_CATCH(result, name, parameters)                                                      \
  extern "C" __attribute__((visibility("default"))) result tr_##name parameters __asm__(#name); \
  [[maybe_unused]] static ::tailrace::run::Real<result parameters> real_##name{#name};          \
  extern "C" result tr_##name parameters
/// Gives the function a second name, as the 64-bit functions have.
#define TR_ALSO(result, other, name, parameters) \
  extern "C" __attribute__((visibility("default"), alias(#name))) result tr_##other parameters __asm__(#other)

// ---- table.cpp: which descriptors of this process are placeholders ----
constexpr int most_descriptors = 1 << 16;
extern std::atomic<std::uint32_t> descriptor_table[most_descriptors];
/// Returns the description behind a placeholder, or nobody.
inline std::uint32_t description_of(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= static_cast<unsigned>(most_descriptors)) return nobody;
  return descriptor_table[descriptor].load(std::memory_order_acquire) - 1;
}
inline bool is_shared(int descriptor) { return description_of(descriptor) != nobody; }
void add_descriptor(int descriptor, std::uint32_t description);
/// Closes a placeholder. Returns 0 or an errno: the last one of a file stores it.
int close_shared(int descriptor);
/// Forgets a placeholder whose number has got another meaning.
int remove_descriptor(int descriptor);
bool has_shared();
/// A descriptor has come over a socket (SCM_RIGHTS): it may be a placeholder.
void receive_descriptor(int descriptor);
/// Returns true between vfork and exec: memory is the parent's, and descriptors are the child's own.
bool in_borrowed_memory();
void begin_process();

// ---- client.cpp: the keeper ----
extern std::atomic<Arena*> shared_arena;
inline Arena& arena() { return *shared_arena.load(std::memory_order_acquire); }
/// Asks the keeper, and waits for its answer. Returns 0 or an errno: EDEADLK in a signal handler that has
/// interrupted another request, ENOTSUP in a child of vfork, EIO if there is no keeper. `sent` is a
/// descriptor that goes with the request, or -1; `lent` becomes the one that came with the answer, or -1.
int ask(const Request& request, Answer& answer, int sent = -1, int* lent = nullptr);
/// Returns 0, or EIO after a line that says why.
int connect_to_keeper();
/// The number of our own descriptor, or -1. Programs that close everything must not close it.
int keeper_descriptor();
void move_keeper_descriptor();
void forget_connection();
/// In a child of fork, which needs a connection of its own.
void begin_client();
Counters& counters();
/// This thread, as locks name it.
Holder self();
/// Prints a line on standard error.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
/// Counts a refused call, and prints the first one of its kind in this process.
void refuse(std::atomic<std::uint64_t> Counters::*kind, int descriptor, const char* what,
            const char* instead);
/// Returns a descriptor of the file itself, for calls that neither read nor write it, or -1 with errno.
int lend(int descriptor);

// ---- match.cpp ----
bool is_active();
/// The name of the keeper's socket, if this is active.
const char* socket_name();
/// Returns true if the path is one of those that --shared names, and writes it to `full` (PATH_MAX bytes).
bool matches(int directory, const char* path, char* full);
/// Returns the descriptor that a path like /dev/stdout or /proc/self/fd/3 names if it is a placeholder, or
/// -1.
int named_placeholder(const char* path);

// ---- open.cpp ----
/// Opens the file by the name that the program gives. `full`, which matches() has made of it, is for
/// messages: without ".." it may be another file, behind a symbolic link. Returns a descriptor, -1 with
/// errno, or -2 if the path is not ours after all.
int open_shared(int directory, const char* path, const char* full, int flags, mode_t mode);
/// Opens the file behind a placeholder anew.
int reopen_shared(int descriptor, int flags);

// ---- data.cpp: as the system calls, with errno ----
ssize_t read_shared(int descriptor, const iovec* parts, int count, off_t offset, bool at_position);
ssize_t write_shared(int descriptor, const iovec* parts, int count, off_t offset, bool at_position);
off_t seek_shared(int descriptor, off_t offset, int whence);
int cut_shared(int descriptor, off_t size);
int sync_shared(int descriptor);
/// Stores what has changed of a file. Returns 0 or an errno.
int store_shared(std::uint32_t file, bool is_synchronised);

// ---- locks.cpp: as fcntl and flock, with errno ----
int lock_range(int descriptor, int command, struct flock* wanted);
int lock_whole(int descriptor, int operation);
/// A descriptor of the file is closed: locks of this process on it end, as POSIX says.
void release_locks(std::uint32_t file);
/// In a child of fork, which has none of its parent's.
void forget_locks();

// ---- file_limit.cpp ----
/// Returns the most bytes that a file of this process may have.
std::int64_t file_limit();
/// Somebody may have changed it.
void forget_file_limit();
/// Sends the signal that belongs to it. Returns EFBIG.
int over_file_limit();

// ---- stat.cpp ----
/// Puts the size and times that the run knows in place of those of storage.
void correct(struct stat& status);
int stat_shared(int descriptor, struct stat* status);

// ---- stdio.cpp ----
/// Descriptor 0, 1 or 2 has become a placeholder, or is one no longer.
void follow_standard(int descriptor);

inline int fail(int error) {
  errno = error;
  return -1;
}
/// Returns `error` as calls do that return 0 or -1.
inline int result_of(int error) { return error == 0 ? 0 : fail(error); }

}  // namespace tailrace::run
