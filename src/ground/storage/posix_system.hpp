// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

namespace tailrace::storage {

/// The system calls under a POSIX file, one method each. This class makes the real ones. io_uring replaces
/// those that carry data; tests replace them by ones that are interrupted, write short or fail. Every method
/// returns what the call returns, or the negative errno. None retries, because the loops above are what has
/// to be right.
class System {
 public:
  virtual ~System() = default;
  virtual int open(const char* path, int flags, mode_t mode);
  virtual ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset);
  virtual ssize_t pread(int descriptor, void* data, std::size_t size, off_t offset);
  virtual int fsync(int descriptor);
  virtual int ftruncate(int descriptor, off_t size);
  virtual int close(int descriptor);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
  virtual int rmdir(const char* path);
  virtual int mkdir(const char* path, mode_t mode);
  /// Returns how many descriptors it has of its own.
  [[nodiscard]] virtual int descriptors() const { return 0; }
};

/// A call that was interrupted so often in a row will not get through. Signals do not come that fast, but
/// file systems in user space have been seen to answer EINTR for good.
constexpr int most_interruptions = 10'000;

/// Repeats `call`, which returns a negative errno when it fails, while a signal interrupts it. After too many
/// interruptions -EINTR is a failure like any other.
template <typename Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  for (int times = 1; result == -EINTR && times < most_interruptions; ++times) result = call();
  return result;
}

}  // namespace tailrace::storage
