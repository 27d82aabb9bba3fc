// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

namespace tailrace::storage {

/// The system calls under a POSIX file, one method for each. This class makes the real calls. Ring (io_uring)
/// replaces those that carry data. Tests replace them by calls that are interrupted, write short or fail.
/// Every method returns what the call returns, or the negative errno. No method repeats a call: the loops in
/// the callers do that, and tests check them.
class System {
 public:
  virtual ~System() = default;
  virtual int open(const char* path, int flags, mode_t mode);
  virtual ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset);
  virtual ssize_t pread(int descriptor, void* data, std::size_t size, off_t offset);
  virtual int fsync(int descriptor);
  virtual int ftruncate(int descriptor, off_t size);
  virtual int fallocate(int descriptor, int mode, off_t offset, off_t size);
  virtual int close(int descriptor);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
  virtual int rmdir(const char* path);
  virtual int mkdir(const char* path, mode_t mode);
  /// Returns how many descriptors of its own it has.
  [[nodiscard]] virtual int descriptors() const { return 0; }
};

/// The most interruptions in a row after which a call is repeated. Signals do not come that fast, but file
/// systems in user space have been seen to answer EINTR forever.
constexpr int most_interruptions = 10'000;

/// Makes `call`, which returns a negative errno when it fails, and repeats it while signals interrupt it.
/// After `most_interruptions` it returns -EINTR, a failure like any other.
template <typename Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  for (int times = 1; result == -EINTR && times < most_interruptions; ++times) result = call();
  return result;
}

}  // namespace tailrace::storage
