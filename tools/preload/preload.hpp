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

/// The library that `tailrace run` preloads into programs. Its functions take the place of libc's functions
/// on files. It must work in any program, before main and in threads. So it needs libc alone, throws nothing,
/// and allocates memory only where libc does so, too (streams, printed text, listing descriptors).
namespace tailrace::run {

/// The function of libc whose place a function of this library takes.
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

/// Defines a function that takes the place of libc's function `name`. In the sources it is called tr_NAME,
/// since headers of libc declare `name` itself in several ways. `real_NAME` calls libc's function.
#define TR_CATCH(result, name, parameters)                                                      \
  extern "C" __attribute__((visibility("default"))) result tr_##name parameters __asm__(#name); \
  [[maybe_unused]] static ::tailrace::run::Real<result parameters> real_##name{#name};          \
  extern "C" result tr_##name parameters
/// Gives such a function a second name of libc, such as read and __read, or pread and pread64.
#define TR_ALSO(result, other, name, parameters) \
  extern "C" __attribute__((visibility("default"), alias(#name))) result tr_##other parameters __asm__(#other)

// table.cpp: which descriptors of this process are placeholders.
constexpr int most_descriptors = 1 << 16;
/// By descriptor: one more than the number of its description, or 0 if it is no placeholder.
extern std::atomic<std::uint32_t> descriptor_table[most_descriptors];
/// Returns the description behind a placeholder, or `nobody` for any other descriptor.
inline std::uint32_t description_of(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= static_cast<unsigned>(most_descriptors)) return nobody;
  return descriptor_table[descriptor].load(std::memory_order_acquire) - 1;
}
inline bool is_shared(int descriptor) { return description_of(descriptor) != nobody; }
/// Notes that `descriptor` is a placeholder of the description.
void add_descriptor(int descriptor, std::uint32_t description);
/// Closes a placeholder. Returns 0 or an errno. Closing the last descriptor of a file stores the file, so the
/// errno may be one of storage.
int close_shared(int descriptor);
/// Forgets a placeholder that was closed, or whose number is that of another file now. Returns 0 or an errno,
/// as close_shared().
int remove_descriptor(int descriptor);
/// Finds out whether a descriptor that has come over a socket (SCM_RIGHTS) is a placeholder, and notes it.
void receive_descriptor(int descriptor);
/// True in a child of vfork before exec: its memory is the parent's, and its descriptors are its own.
bool in_borrowed_memory();
/// Starts the library in this process, unless that was done before.
void begin_process();

// client.cpp: the connection to the keeper.
extern std::atomic<Arena*> shared_arena;
inline Arena& arena() { return *shared_arena.load(std::memory_order_acquire); }
/// Sends a request to the keeper, and waits for its answer. Returns 0, the errno or error of wire.hpp in the
/// answer, or EDEADLK in a signal handler that has interrupted another request, ENOTSUP in a child of vfork,
/// EIO if there is no keeper. `sent` is a descriptor that goes with the request, or -1. `lent` becomes the
/// descriptor that came with the answer, or -1.
int ask(const Request& request, Answer& answer, int sent = -1, int* lent = nullptr);
/// Connects to the keeper, unless that was done before. Returns 0; or EIO, after a line that says why.
int connect_to_keeper();
/// Returns the descriptor of the connection, or -1. A program that closes all descriptors must not close it.
int keeper_descriptor();
/// Gives the connection another descriptor, because the program takes this number for another file.
void move_keeper_descriptor();
void forget_connection();
/// Begins again in a child of fork, which needs a connection of its own.
void begin_client();
Counters& counters();
/// Returns this thread as the holder of locks.
Holder self();
/// Prints a line on standard error.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
/// Counts a refused call, and prints the first one of its kind in this process.
void refuse(std::atomic<std::uint64_t> Counters::*kind, int descriptor, const char* what,
            const char* instead);
/// Returns a descriptor of the file on storage behind a placeholder, or -1 with errno. It is for calls that
/// neither read nor write the file; the caller closes it.
int lend(int descriptor);

// match.cpp: which names are of shared files.
/// True if the environment has the variables of `tailrace run`.
bool is_active();
/// Returns the name of the keeper's socket, if is_active().
const char* socket_name();
/// True if --shared names the path. Writes the absolute path to `full` (PATH_MAX bytes).
bool matches(int directory, const char* path, char* full);
/// Returns the descriptor that a path such as /dev/stdout or /proc/self/fd/3 names, if it is a placeholder,
/// or -1.
int named_placeholder(const char* path);

// open.cpp
/// Opens a file that --shared names, under the name that the program gives. `full`, which matches() has made
/// of this name, is for messages only: it has no ".." any more, and may lead to another file if the name goes
/// through a symbolic link. Returns a placeholder, or -1 with errno, or -2 if the call is left to libc: if it
/// does not open a regular file for reading or writing.
int open_shared(int directory, const char* path, const char* full, int flags, mode_t mode);
/// Opens the file behind a placeholder again. Returns a new placeholder, or -1 with errno.
int reopen_shared(int descriptor, int flags);

// data.cpp: results and errno as from the system calls.
ssize_t read_shared(int descriptor, const iovec* parts, int count, off_t offset, bool at_position);
ssize_t write_shared(int descriptor, const iovec* parts, int count, off_t offset, bool at_position);
off_t seek_shared(int descriptor, off_t offset, int whence);
int cut_shared(int descriptor, off_t size);
int sync_shared(int descriptor);
/// Has the keeper store the changed pages of a file, and synchronise it if wanted. Waits for storage. Returns
/// 0 or an errno.
int store_shared(std::uint32_t file, bool is_synchronised);

// locks.cpp: results and errno as from fcntl and flock.
int lock_range(int descriptor, int command, struct flock* wanted);
int lock_whole(int descriptor, int operation);
/// Ends all locks of this process on the file, because the process closes a descriptor of it, as POSIX says.
void release_locks(std::uint32_t file);
/// In a child of fork: forgets the parent's locks, which the child does not have.
void forget_locks();

// file_limit.cpp: the limit on the size of files (RLIMIT_FSIZE).
/// Returns the most bytes that a file of this process may have.
std::int64_t file_limit();
/// Makes file_limit() ask the system again, because the limit may have changed.
void forget_file_limit();
/// Sends this thread SIGXFSZ, as the kernel does for a write beyond the limit. Returns EFBIG.
int over_file_limit();

// stat.cpp
/// Replaces the size and times that storage has by those that the arena has, if the file is open in the
/// group.
void correct(struct stat& status);
int stat_shared(int descriptor, struct stat* status);

// stdio.cpp
/// Puts a stream of this library in the place of stdin, stdout or stderr once its descriptor is a
/// placeholder, and libc's stream back once it is none.
void follow_standard(int descriptor);

inline int fail(int error) {
  errno = error;
  return -1;
}
/// Returns 0 if `error` is 0, and otherwise -1 with errno.
inline int result_of(int error) { return error == 0 ? 0 : fail(error); }

}  // namespace tailrace::run
