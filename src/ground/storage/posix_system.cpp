// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/posix_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace tailrace::storage {

namespace {

template <typename T>
T or_errno(T result) {
  return result < 0 ? static_cast<T>(-errno) : result;
}

}  // namespace

int System::open(const char* path, int flags, mode_t mode) { return or_errno(::open(path, flags, mode)); }

ssize_t System::pwritev(int descriptor, const iovec* parts, int count, off_t offset) {
  return or_errno(::pwritev(descriptor, parts, count, offset));
}

ssize_t System::pread(int descriptor, void* data, std::size_t size, off_t offset) {
  return or_errno(::pread(descriptor, data, size, offset));
}

int System::fsync(int descriptor) { return or_errno(::fsync(descriptor)); }
int System::ftruncate(int descriptor, off_t size) { return or_errno(::ftruncate(descriptor, size)); }
int System::fallocate(int descriptor, int mode, off_t offset, off_t size) {
  return or_errno(::fallocate(descriptor, mode, offset, size));
}
int System::close(int descriptor) { return or_errno(::close(descriptor)); }
int System::rename(const char* from, const char* to) { return or_errno(::rename(from, to)); }
int System::unlink(const char* path) { return or_errno(::unlink(path)); }
int System::rmdir(const char* path) { return or_errno(::rmdir(path)); }
int System::mkdir(const char* path, mode_t mode) { return or_errno(::mkdir(path, mode)); }

}  // namespace tailrace::storage
