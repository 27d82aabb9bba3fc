// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

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
  virtual int mkdir(const char* path, mode_t mode);
};

}  // namespace tailrace::storage
