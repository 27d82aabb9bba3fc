// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.hpp"
#include "storage/posix.hpp"

namespace tailrace::storage {

namespace {

// flock and not a file whose existence is the lock: the kernel drops it with the last descriptor, so kill -9
// leaves at most a stale file, which locks nobody out. And not POSIX record locks: those vanish when the
// process closes any other descriptor of the same file.
constexpr std::string_view signature = "tailrace lock: ";

std::string own_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return cat("host ", std::string_view(host.data()), " pid ", static_cast<std::int64_t>(::getpid()));
}

/// An open lock file; releases in its destructor.
class Lock {
 public:
  Lock(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    // A forked child shares the descriptor: the name is still its parent's, and so is the lock until both let
    // go.
    if (owner_ == ::getpid()) ::unlink(path_.c_str());
    ::close(descriptor_);
  }

  /// Code::state if another holds it. False if the name has moved on to another file since it was opened.
  Result<bool> take();
  /// Puts our name into the file, if there is room for it. From then on the file is removed with the lock.
  Status sign();

 private:
  Result<std::string> contents() const;

  const int descriptor_;
  const std::string path_;
  pid_t owner_ = -1;
};

Result<std::string> Lock::contents() const {
  std::array<char, 512> buffer{};
  const ssize_t size = ::pread(descriptor_, buffer.data(), buffer.size(), 0);
  if (size < 0) return io_error("read lock", path_, errno);
  std::string text(buffer.data(), static_cast<std::size_t>(size));
  if (!text.empty() && !text.starts_with(signature)) {
    return Status(Code::argument, cat("lock ", path_,
                                      ": the file exists and is no lock file; it is left untouched, "
                                      "choose another name or remove it"));
  }
  return text;
}

Result<bool> Lock::take() {
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return io_error("lock", path_, errno);
    const auto text = contents();
    if (!text.is_ok()) return text.status();
    // Between its flock and its signature a holder has no name yet.
    const std::string holder = text->size() > signature.size()
                                   ? text->substr(signature.size(), text->find('\n') - signature.size())
                                   : "a process that has just started";
    return Status(Code::state, cat("lock ", path_, ": held by ", holder,
                                   "; wait until it ends or stop it (the lock vanishes with its process)"));
  }
  // The last holder removed the name after we opened it: this lock is on a file that nobody else will find.
  struct stat named {
  }, opened{};
  if (::fstat(descriptor_, &opened) != 0) return io_error("lock", path_, errno);
  if (::stat(path_.c_str(), &named) != 0)
    return errno == ENOENT ? Result<bool>(false) : io_error("lock", path_, errno);
  return named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

Status Lock::sign() {
  const auto before = contents();
  if (!before.is_ok()) return before.status();
  owner_ = ::getpid();
  const std::string text = cat(signature, own_name(), "\n");
  if (::ftruncate(descriptor_, 0) != 0) return io_error("sign lock", path_, errno);
  const ssize_t written = ::pwrite(descriptor_, text.data(), text.size(), 0);
  if (written == static_cast<ssize_t>(text.size())) return {};
  const int failure = written < 0 ? errno : ENOSPC;
  // The name only tells others who it is. On a full disk a checkpoint must still be loaded.
  if ((failure == ENOSPC || failure == EDQUOT) && ::ftruncate(descriptor_, 0) == 0) return {};
  return io_error("sign lock", path_, failure);
}

}  // namespace

Result<std::shared_ptr<void>> lock_file(const std::string& path) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EINTR) continue;
    if (descriptor < 0) return io_error("lock", path, errno);
    const auto lock = std::make_shared<Lock>(descriptor, path);
    const auto taken = lock->take();
    if (!taken.is_ok()) return taken.status();
    if (!*taken) continue;
    TR_TRY(lock->sign());
    return std::shared_ptr<void>(lock);
  }
}

}  // namespace tailrace::storage
