// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "ground/base/text.hpp"
#include "ground/storage/posix.hpp"

namespace tailrace::storage {

namespace {

// The lock is a flock, not the existence of a file. The kernel releases a flock with the last descriptor, so
// after kill -9 there is at most a stale file, which locks nobody out. POSIX record locks are not used: they
// vanish when the process closes any other descriptor of the same file.
constexpr std::string_view signature = "tailrace lock: ";

std::string own_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return cat("host ", std::string_view(host.data()), " pid ", static_cast<std::int64_t>(::getpid()));
}

/// Returns the signature and name in the text, without zeros at the end. After a loss of power a file may
/// have its size but lack its bytes, or the last of them, and then reads as zeros.
std::string_view signed_part(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\0') + 1);
}

/// An open lock file. The destructor releases the lock.
class Lock {
 public:
  Lock(std::shared_ptr<System> system, int descriptor, std::string path)
      : system_(std::move(system)), descriptor_(descriptor), path_(std::move(path)) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    // A forked child shares the descriptor: the name still belongs to its parent, and the lock lasts until
    // both have closed it. As long as others have shares, the name must stay, because a new file of this name
    // would lock nobody out.
    if (owner_ == ::getpid() && (!is_shared_ || try_lock(LOCK_EX) == 0))
      uninterrupted([&] { return system_->unlink(path_.c_str()); });
    ::close(descriptor_);
  }

  /// Takes the lock. Returns Code::state if another process holds it. Returns false if the name now belongs
  /// to another file than the one that was opened.
  Result<bool> take(int kind) {
    int locked = try_lock(kind);
    // A process that looks at a lock file left by another user holds the lock for a moment.
    for (int tries = 0; locked == -EWOULDBLOCK && tries < 5; ++tries) {
      ::usleep(2000);
      locked = try_lock(kind);
    }
    if (locked != 0) {
      if (locked != -EWOULDBLOCK) return io_error("lock", path_, -locked);
      const auto text = contents();
      if (!text.is_ok()) return text.status();
      // Between its flock and its signature a holder has no name yet.
      const std::string holder = text->size() > signature.size()
                                     ? text->substr(signature.size(), text->find('\n') - signature.size())
                                     : "a process that has just started";
      if (holder == own_name())
        return Status(Code::state, cat("lock ", path_, ": held by this process itself, ", holder,
                                       "; close what it has open under this name first"));
      return Status(Code::state, cat("lock ", path_, ": held by ", holder,
                                     "; wait until it ends or stop it (the lock vanishes with its process)"));
    }
    // The last holder may have removed the name after this process opened it. The lock would then be on a
    // file that nobody else finds.
    struct stat named {
    }, opened{};
    if (::fstat(descriptor_, &opened) != 0) return io_error("lock", path_, errno);
    if (::stat(path_.c_str(), &named) != 0)
      return errno == ENOENT ? Result<bool>(false) : io_error("lock", path_, errno);
    return named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
  }

  /// Turns the lock into a share. The kernel releases the one lock before it takes the other (flock(2)), so
  /// somebody else may take it in between.
  Status share() {
    is_shared_ = true;
    const Result<bool> taken = take(LOCK_SH);
    if (taken.is_ok() && *taken) return {};
    owner_ = -1;
    return taken.is_ok() ? Status(Code::state, cat("lock ", path_, ": its file was replaced meanwhile"))
                         : taken.status();
  }

  /// Writes this process's name into the file, if there is room for it. From then on the file is removed with
  /// the lock.
  Status sign() {
    const auto before = contents();
    if (!before.is_ok()) return before.status();
    owner_ = ::getpid();
    const std::string text = cat(signature, own_name(), "\n");
    if (const int emptied = truncate(); emptied != 0) return io_error("sign lock", path_, -emptied);
    iovec part{const_cast<char*>(text.data()), text.size()};
    const ssize_t written = uninterrupted([&] { return system_->pwritev(descriptor_, &part, 1, 0); });
    if (written == static_cast<ssize_t>(text.size())) return {};
    const int failure = written < 0 ? static_cast<int>(-written) : ENOSPC;
    // The name only tells others who the holder is. A full disk must not keep a checkpoint from being loaded.
    if ((failure == ENOSPC || failure == EDQUOT) && truncate() == 0) return {};
    return io_error("sign lock", path_, failure);
  }

  /// Returns the text in the file, or Code::argument if the file is no lock file.
  Result<std::string> contents() const {
    std::array<char, 512> buffer{};
    const ssize_t size =
        uninterrupted([&] { return system_->pread(descriptor_, buffer.data(), buffer.size(), 0); });
    if (size < 0) return io_error("read lock", path_, static_cast<int>(-size));
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0) return io_error("read lock", path_, errno);
    const std::string_view text = signed_part({buffer.data(), static_cast<std::size_t>(size)});
    const bool torn = signature.starts_with(text) && info.st_size <= static_cast<off_t>(buffer.size());
    if (!torn && !text.starts_with(signature)) {
      return Status(Code::argument, cat("lock ", path_,
                                        ": the file exists and is no lock file; it is left untouched, "
                                        "choose another name or remove it"));
    }
    return std::string(text);
  }

 private:
  [[nodiscard]] int try_lock(int kind) const {
    return uninterrupted([&] { return ::flock(descriptor_, kind | LOCK_NB) == 0 ? 0 : -errno; });
  }

  [[nodiscard]] int truncate() const {
    return uninterrupted([&] { return system_->ftruncate(descriptor_, 0); });
  }

  const std::shared_ptr<System> system_;
  const int descriptor_;
  const std::string path_;
  pid_t owner_ = -1;
  bool is_shared_ = false;
};

/// Looks at a lock file that could not be opened for writing, because it belongs to another user. Returns
/// Code::state if somebody holds the lock. If nobody does, removes the file, if the directory allows it, and
/// returns OK. Otherwise returns the error of opening.
Status look_at_lock_of_another(const std::shared_ptr<System>& system, const std::string& path, int error) {
  Status why = io_error("lock", path, error);
  if (error != EACCES && error != EPERM && error != EROFS) return why;
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int descriptor = uninterrupted([&] { return system->open(path.c_str(), flags, 0); });
  if (descriptor < 0) return why;
  Lock other(system, descriptor, path);
  // Tries the exclusive lock, because a share could be had while the holder has a share. NFS grants no
  // exclusive lock on a file open for reading only: there this look tells nothing of holders.
  const Result<bool> taken = other.take(LOCK_EX);
  if (taken.status().code() == Code::state) return taken.status();
  if (!taken.is_ok()) return why;
  if (!*taken) return {};
  const Result<std::string> text = other.contents();
  if (!text.is_ok()) return why;
  return uninterrupted([&] { return system->unlink(path.c_str()); }) == 0 ? Status() : why;
}

/// Opens the lock file and takes the lock. Repeats this until the lock is on the file that has the name.
Result<std::shared_ptr<Lock>> take_lock(const std::shared_ptr<System>& system, const std::string& path,
                                        int kind) {
  // O_NOFOLLOW: everybody can know the name of the lock file, and if it were a link, signing would overwrite
  // the file behind it.
  constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  for (;;) {
    const int descriptor = uninterrupted([&] { return system->open(path.c_str(), flags, 0666); });
    if (descriptor == -ELOOP)
      return Status(Code::io, cat("lock ", path, ": it is a link, and a lock is a file; remove the link"),
                    ELOOP);
    if (descriptor < 0) {
      TR_TRY(look_at_lock_of_another(system, path, -descriptor));
      continue;
    }
    auto lock = std::make_shared<Lock>(system, descriptor, path);
    const Result<bool> taken = lock->take(kind);
    TR_TRY(taken.status());
    if (*taken) return lock;
  }
}

}  // namespace

Result<std::shared_ptr<void>> lock_file(const std::shared_ptr<System>& system, const std::string& path) {
  const Result<std::shared_ptr<Lock>> lock = take_lock(system, path, LOCK_EX);
  TR_TRY(lock.status());
  TR_TRY((*lock)->sign());
  return std::shared_ptr<void>(*lock);
}

Result<std::shared_ptr<void>> share_lock_file(const std::shared_ptr<System>& system, const std::string& path,
                                              const std::shared_ptr<void>& own) {
  if (own != nullptr) {
    TR_TRY(std::static_pointer_cast<Lock>(own)->share());
    return own;
  }
  const Result<std::shared_ptr<Lock>> lock = take_lock(system, path, LOCK_SH);
  TR_TRY(lock.status());
  return std::shared_ptr<void>(*lock);
}

}  // namespace tailrace::storage
