// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/posix.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>
#include <limits>
#include <thread>

#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/storage/gather.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/queue/write_queue.hpp"

namespace tailrace::storage {

namespace {

#ifdef IOV_MAX
constexpr std::size_t most_parts = IOV_MAX;
#else
constexpr std::size_t most_parts = 1024;  // Linux's limit; its headers may lack the name
#endif

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::read:
    case OpenMode::read_regular:
      return O_RDONLY | O_CLOEXEC;
    case OpenMode::create:
      return O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
    case OpenMode::keep:
      return O_RDWR | O_CREAT | O_CLOEXEC;
    case OpenMode::anew:
      return O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    case OpenMode::own:
      return O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    case OpenMode::own_existing:
      return O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    case OpenMode::existing:
      break;
  }
  return O_RDWR | O_CLOEXEC;
}

const char* verb_of(OpenMode mode) { return empties(mode) ? "create" : "open"; }

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// Returns 0 if this may be opened as a file, otherwise the negative errno. /dev/null may be opened, because
/// programs that only time their output write to it.
int check_kind(const struct stat& info, OpenMode mode) {
  struct stat null {};
  const bool is_null =
      S_ISCHR(info.st_mode) && ::stat("/dev/null", &null) == 0 && info.st_rdev == null.st_rdev;
  if (S_ISREG(info.st_mode) || (is_null && mode != OpenMode::read_regular)) return 0;
  if (mode == OpenMode::read_regular) return -ENOENT;
  return S_ISDIR(info.st_mode) ? -EISDIR : -ESPIPE;
}

/// Opens a regular file, or makes it if the mode does so. Looks at the name first: opening a pipe waits for
/// its other end, or gives a waiting writer a reader that goes at once, and opening a device may do anything.
/// O_NONBLOCK guards against something else that takes the file's place after the look.
int open_regular(System& system, const std::string& path, OpenMode mode, unsigned permissions) {
  struct stat info {};
  const bool is_looked_at = mode != OpenMode::anew && ::stat(path.c_str(), &info) == 0;
  if (const int error = is_looked_at ? check_kind(info, mode) : 0; error != 0) return error;
  const auto open = [&](int flags) {
    return uninterrupted([&] { return system.open(path.c_str(), flags, static_cast<mode_t>(permissions)); });
  };
  const int flags = flags_of(mode);
  int descriptor = open(flags | O_NONBLOCK);
  // Another process has a lease on the file (fcntl(2)); only regular files have leases. The second call waits
  // until the lease ends.
  if (descriptor == -EWOULDBLOCK) descriptor = open(flags);
  if (descriptor < 0) return descriptor;
  const int error = ::fstat(descriptor, &info) == 0 ? check_kind(info, mode) : -errno;
  // Takes O_NONBLOCK away again: io_uring does not wait for a file that has it, but fails.
  if (error == 0 && ::fcntl(descriptor, F_SETFL, 0) == 0) return descriptor;
  system.close(descriptor);
  return error != 0 ? error : -EBADF;
}

/// Gives the name to a new file. Gives up after 10 tries, because others who may write to the directory can
/// put something there again and again.
int open_anew(System& system, const std::string& path, unsigned permissions) {
  constexpr int most_tries = 10;
  int descriptor = open_regular(system, path, OpenMode::anew, permissions);
  for (int tries = 1; descriptor == -EEXIST && tries < most_tries; ++tries) {
    const int removed = uninterrupted([&] { return system.unlink(path.c_str()); });
    if (removed < 0 && removed != -ENOENT) return removed;
    descriptor = open_regular(system, path, OpenMode::anew, permissions);
  }
  return descriptor;
}

/// Returns the status for `error` from open_regular().
Status not_opened(const std::string& path, OpenMode mode, int error) {
  const bool is_own = mode == OpenMode::own || mode == OpenMode::own_existing;
  struct stat info {};
  if (error == ESPIPE && ::stat(path.c_str(), &info) == 0) {
    const char* const kind = S_ISFIFO(info.st_mode)   ? "a pipe"
                             : S_ISSOCK(info.st_mode) ? "a socket"
                                                      : "a device";
    return {Code::io,
            cat(verb_of(mode), " ", path, ": it is ", kind,
                ", and only a regular file has bytes at offsets; give the name of a file"),
            error};
  }
  if (error == ELOOP && is_own)
    return {Code::io,
            cat("open ", path, ": it is a link, and somebody else's file may be behind it; remove the link"),
            error};
  return io_error(verb_of(mode), path, error);
}

}  // namespace

PosixFile::PosixFile(std::shared_ptr<System> system, int descriptor, std::string path)
    : system_(std::move(system)), path_(std::move(path)), descriptor_(descriptor) {}

PosixFile::~PosixFile() {
  if (descriptor_ >= 0) system_->close(descriptor_);
}

Status PosixFile::check_open(const char* operation) const {
  if (descriptor_ >= 0) return {};
  return {Code::state, cat(operation, " ", path_, ": the file is closed")};
}

Status PosixFile::write_gathered(Parts parts, Bytes offset) {
  const std::shared_lock guard(open_);
  TR_TRY(check_open("write"));
  Gather gather(parts);
  TR_TRY(check_range("write", path_, offset, gather.left()));
  std::array<iovec, most_parts> room;
  while (gather.left() > 0) {
    const auto batch = gather.next(room);
    const std::int64_t written = uninterrupted(
        [&] { return system_->pwritev(descriptor_, batch.data(), static_cast<int>(batch.size()), offset); });
    // A write that moves nothing and returns no error would otherwise be repeated forever.
    if (written <= 0) {
      const int error = written == 0 ? EIO : static_cast<int>(-written);
      return io_error(cat("write of ", gather.left(), " bytes at offset ", offset, " of"), path_, error);
    }
    gather.advance(written);
    offset += written;
  }
  return {};
}

std::unique_ptr<StartedWrite> PosixFile::start_write(Parts parts, Bytes offset, WriteQueue& queue) {
  const std::shared_lock guard(open_);
  Status status = check_open("write");
  if (status.is_ok()) status = check_range("write", path_, offset, bytes_in(parts));
  if (!status.is_ok()) return ended_write(std::move(status));
  return start_queued_write(descriptor_, path_, parts, offset, queue);
}

Result<Bytes> PosixFile::read(std::span<std::byte> data, Bytes offset) {
  const std::shared_lock guard(open_);
  TR_TRY(check_open("read"));
  TR_TRY(check_range("read", path_, offset, static_cast<Bytes>(data.size())));
  Bytes done = 0;
  while (!data.empty()) {
    const std::size_t size = std::min(data.size(), static_cast<std::size_t>(largest_call));
    const std::int64_t got =
        uninterrupted([&] { return system_->pread(descriptor_, data.data(), size, offset + done); });
    if (got < 0) {
      return io_error(cat("read of ", data.size(), " bytes at offset ", offset + done, " of"), path_,
                      static_cast<int>(-got));
    }
    if (got == 0) break;
    data = data.subspan(static_cast<std::size_t>(got));
    done += got;
  }
  return done;
}

Status PosixFile::sync() {
  const std::shared_lock guard(open_);
  TR_TRY(check_open("sync"));
  const std::lock_guard one(sync_mutex_);
  // When a write-back fails, the kernel marks the pages clean. A second fsync would succeed and prove
  // nothing.
  if (!sync_failure_.is_ok()) return sync_failure_;
  const int result = uninterrupted([&] { return system_->fsync(descriptor_); });
  if (result < 0) sync_failure_ = io_error("fsync", path_, -result);
  return sync_failure_;
}

void PosixFile::begin_write_back() {
  const std::shared_lock guard(open_);
  if (descriptor_ >= 0) ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);  // 0 bytes: to the end
}

/// lseek moves the descriptor's position. No other call uses the position.
Bytes PosixFile::next_data(Bytes offset) {
  const std::shared_lock guard(open_);
  if (descriptor_ < 0) return offset;
  const off_t at = ::lseek(descriptor_, offset, SEEK_DATA);
  if (at >= offset) return at;
  return errno == ENXIO ? std::numeric_limits<Bytes>::max() : offset;
}

Status PosixFile::reserve(std::span<const Range> ranges) {
  const std::shared_lock guard(open_);
  TR_TRY(check_open("reserve"));
  for (const Range& each : ranges) TR_TRY(check_range("reserve", path_, each.offset, each.size));
  Bytes size = 0;
  for (const Range& each : ranges) size += each.size;
  int result = 0;
  for (std::size_t i = 0; i < ranges.size() && result == 0; ++i) {
    if (ranges[i].size == 0) continue;
    result = uninterrupted([&] {
      return system_->fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, ranges[i].offset, ranges[i].size);
    });
  }
  if (result == 0) return {};
  const bool is_full = result == -ENOSPC || result == -EDQUOT;
  if (is_full) {
    // fallocate(2) may have taken a part of the last range as well (ext4): a full disk would stay full.
    give_back();
    return io_error(cat("room for ", counted(size, "byte"), " of"), path_, -result);
  }
  struct statvfs info {};
  // NFS before 4.2, GPFS, older Lustre and some FUSE file systems have no such call, and may not tell
  // their size either.
  if (::fstatvfs(descriptor_, &info) != 0 || info.f_blocks == 0) return {};
  if (static_cast<Bytes>(info.f_bavail) * static_cast<Bytes>(info.f_frsize) >= size) return {};
  return io_error(cat("room for ", counted(size, "byte"), " of"), path_, ENOSPC);
}

void PosixFile::give_back_room() {
  const std::shared_lock guard(open_);
  if (descriptor_ >= 0) give_back();
}

/// Only ftruncate(2) frees what ext4 has allocated behind the end of a file. It is called where this node
/// alone knows the file's size: a network's file system may tell an older size, and the call would cut bytes.
void PosixFile::give_back() const {
  constexpr std::array<unsigned long, 5> of_this_node = {0xEF53 /* ext4 */, 0x58465342 /* XFS */,
                                                         0x9123683E /* btrfs */, 0x01021994 /* tmpfs */,
                                                         0x794C7630 /* overlayfs */};
  struct statfs system {};
  struct stat info {};
  if (::fstatfs(descriptor_, &system) != 0 || ::fstat(descriptor_, &info) != 0) return;
  if (std::ranges::find(of_this_node, static_cast<unsigned long>(system.f_type)) == of_this_node.end())
    return;
  static_cast<void>(uninterrupted([&] { return ::ftruncate(descriptor_, info.st_size) == 0 ? 0 : -errno; }));
}

Status PosixFile::truncate(Bytes size) {
  const std::shared_lock guard(open_);
  TR_TRY(check_open("truncate"));
  TR_TRY(check_range("truncate", path_, size, 0));
  const int result = uninterrupted([&] { return system_->ftruncate(descriptor_, size); });
  return result < 0 ? io_error(cat("truncate to ", size, " bytes of"), path_, -result) : Status();
}

Result<Bytes> PosixFile::size() {
  const std::shared_lock guard(open_);
  TR_TRY(check_open("size"));
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return io_error("size of", path_, errno);
  return Bytes{info.st_size};
}

std::optional<Rights> PosixFile::rights() {
  const std::shared_lock guard(open_);
  struct stat info {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) return {};
  const bool has_list = ::fgetxattr(descriptor_, "system.posix_acl_access", nullptr, 0) > 0;
  return Rights{info.st_uid, info.st_gid, info.st_mode & 07777, has_list};
}

Status PosixFile::set_owner(std::optional<unsigned> user, unsigned group) {
  const std::shared_lock guard(open_);
  TR_TRY(check_open("chown"));
  const uid_t owner = user ? *user : static_cast<uid_t>(-1);
  return ::fchown(descriptor_, owner, group) == 0 ? Status() : io_error("chown", path_, errno);
}

Status PosixFile::set_permissions(unsigned permissions) {
  const std::shared_lock guard(open_);
  TR_TRY(check_open("chmod"));
  return ::fchmod(descriptor_, permissions) == 0 ? Status() : io_error("chmod", path_, errno);
}

bool PosixFile::is_named(const std::string& path) {
  const std::shared_lock guard(open_);
  struct stat own {
  }, named{};
  if (descriptor_ < 0 || ::fstat(descriptor_, &own) != 0 || ::lstat(path.c_str(), &named) != 0) return false;
  return own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

FileNumber PosixFile::number() {
  const std::shared_lock guard(open_);
  struct stat info {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) return {};
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)};
}

Status PosixFile::close() {
  const std::lock_guard guard(open_);
  TR_TRY(check_open("close"));
  const int result = system_->close(descriptor_);
  descriptor_ = -1;
  // Linux has released the descriptor even if close was interrupted. Closing it again could close another
  // file.
  return result < 0 && result != -EINTR ? io_error("close", path_, -result) : Status();
}

PosixTarget::PosixTarget(std::shared_ptr<System> system)
    : PosixTarget(system, [system] { return Result<std::shared_ptr<System>>(system); }) {}

PosixTarget::PosixTarget(std::shared_ptr<System> system, PerFile per_file)
    : system_(std::move(system)), per_file_(std::move(per_file)) {}

Result<std::unique_ptr<File>> PosixTarget::open(const std::string& path, OpenMode mode,
                                                unsigned permissions) {
  auto carrier = per_file_();
  if (!carrier.is_ok()) return carrier.status().in(cat(verb_of(mode), " ", path));
  const int descriptor = mode == OpenMode::anew ? open_anew(*system_, path, permissions)
                                                : open_regular(*system_, path, mode, permissions);
  if (descriptor < 0) {
    const Status status = not_opened(path, mode, -descriptor);
    return makes(mode) ? with_missing_directory(status, path) : status;
  }
  return std::unique_ptr<File>(std::make_unique<PosixFile>(*carrier, descriptor, path));
}

Status PosixTarget::rename(const std::string& from, const std::string& to) {
  TR_TRY(check_one_directory(from, to));
  const int result = uninterrupted([&] { return system_->rename(from.c_str(), to.c_str()); });
  return result < 0 ? io_error("rename", cat(from, " to ", to), -result) : Status();
}

Status PosixTarget::remove(const std::string& path) {
  const int result = uninterrupted([&] { return system_->unlink(path.c_str()); });
  return result < 0 ? io_error("remove", path, -result) : Status();
}

Status PosixTarget::remove_directory(const std::string& path) {
  const int result = uninterrupted([&] { return system_->rmdir(path.c_str()); });
  return result < 0 ? io_error("remove directory", path, -result) : Status();
}

Result<bool> PosixTarget::exists(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return io_error("look up", path, errno);
}

Result<Kind> PosixTarget::kind_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISREG(info.st_mode)) return Kind::file;
    return S_ISDIR(info.st_mode) ? Kind::directory : Kind::other;
  }
  if (errno == ENOENT || errno == ENOTDIR) return Kind::nothing;
  return io_error("look up", path, errno);
}

Result<Identity> PosixTarget::identity_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return io_error("stat", path, errno);
  const auto nanoseconds = [](const timespec& time) {
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  };
  return Identity{static_cast<Bytes>(info.st_size), nanoseconds(info.st_mtim), nanoseconds(info.st_ctim),
                  static_cast<std::uint64_t>(info.st_ino)};
}

std::string PosixTarget::behind_links(const std::string& path) {
  constexpr int most_links = 40;  // Linux follows no more, path_resolution(7)
  std::filesystem::path name = path;
  std::error_code unknown;
  for (int links = 0; links < most_links && std::filesystem::is_symlink(name, unknown); ++links) {
    const std::filesystem::path to = std::filesystem::read_symlink(name, unknown);
    if (unknown) break;
    name = name.parent_path() / to;  // if `to` is absolute, the result is `to`
  }
  return name.string();
}

Result<bool> PosixTarget::is_link(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) return S_ISLNK(info.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return io_error("look up", path, errno);
}

/// Errors name the whole path, because the user may not know which of its directories was missing.
Status PosixTarget::make_directories(const std::string& path) {
  const std::string tidy = tidy_path(path);
  // Other threads rely on a directory that they find. So its entry is made durable before another thread
  // looks.
  std::unique_lock one(directories_mutex_);
  const Status made = make_each_directory(tidy);
  one.unlock();
  if (made.is_ok()) return {};
  const std::string text =
      made.error_number() == ENOTDIR
          ? cat("directory ", tidy, " cannot be made (", made.text(),
                "): what has that name is not a directory; move it away, or name another directory")
          : cat("directory ", tidy, " does not exist and cannot be made (", made.text(), "): `mkdir -p ",
                tidy, "` where that is allowed, or name another directory");
  return {made.code(), text, made.error_number()};
}

Status PosixTarget::make_each_directory(const std::string& tidy) {
  if (is_directory(tidy)) return {};
  const std::string parent = parent_of(tidy);
  if (parent != tidy) TR_TRY(make_each_directory(parent));
  const int result = uninterrupted([&] { return system_->mkdir(tidy.c_str(), 0777); });
  // Another process may have made it after the look.
  if (result == -EEXIST && is_directory(tidy)) return {};
  if (result < 0) return io_error("make directory", tidy, result == -EEXIST ? ENOTDIR : -result);
  return sync_directory(parent);
}

Status PosixTarget::sync_directory_of(const std::string& path) {
  return sync_directory(parent_of(tidy_path(path)));
}

namespace {

/// Threads that are joined at the end of the scope, even after an exception: a std::thread that is not joined
/// ends the program.
struct Joined {
  std::vector<std::thread> threads;
  ~Joined() {
    for (std::thread& each : threads) each.join();
  }
};

/// Makes `count` calls, on several threads if they turn out to be slow, and returns the first failure in
/// their order. The journal of a file system commits simultaneous calls at once: fsync of 50 new files on
/// ext4 took 90 ms one by one, and 12 ms on 8 threads. Where a call is fast, as in memory, threads would cost
/// more than they gain. If no thread can be started, the caller makes all calls.
Status side_by_side(std::size_t count, const std::function<Status(std::size_t)>& call) {
  constexpr std::size_t most_threads = 8;
  constexpr std::chrono::microseconds slow(200);
  // Made now: a thread that runs out of memory could not make this status, and copying it never throws.
  const Status no_memory(Code::memory, "out of memory");
  std::vector<Status> made(count);
  std::atomic<std::size_t> next = 0;
  const auto make = [&](std::size_t i) noexcept {
    try {
      made[i] = call(i);
    } catch (const std::bad_alloc&) {
      made[i] = no_memory;
    }
  };
  const auto work = [&]() noexcept {
    for (std::size_t i = next++; i < count; i = next++) make(i);
  };
  {
    Joined joined;
    joined.threads.reserve(most_threads);
    for (std::size_t i = next++; i < count; i = next++) {
      const auto begin = std::chrono::steady_clock::now();
      make(i);
      if (std::chrono::steady_clock::now() - begin < slow || !joined.threads.empty()) continue;
      while (joined.threads.size() + 1 < std::min(most_threads, count - i)) {
        // A reference fits into the std::function itself, so memory is taken only inside start_thread().
        Result<std::thread> started = start_thread(std::ref(work));
        if (!started.is_ok()) break;
        joined.threads.push_back(std::move(*started));
      }
    }
  }
  Status status;
  for (const Status& each : made) status = first_cause(status, each);
  return status;
}

}  // namespace

Status PosixTarget::sync_files(std::span<File* const> files) {
  return guarded([&] { return side_by_side(files.size(), [&](std::size_t i) { return files[i]->sync(); }); });
}

Status PosixTarget::sync_directories_of(std::span<const std::string> paths) {
  return guarded(
      [&] { return side_by_side(paths.size(), [&](std::size_t i) { return sync_directory_of(paths[i]); }); });
}

Status PosixTarget::sync_directory(const std::string& directory) {
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  const int descriptor = uninterrupted([&] { return system_->open(directory.c_str(), flags, 0); });
  if (descriptor < 0) return io_error("open directory", directory, -descriptor);
  const int synced = uninterrupted([&] { return system_->fsync(descriptor); });
  const int closed = system_->close(descriptor);
  if (synced < 0) return io_error("fsync directory", directory, -synced);
  if (closed < 0 && closed != -EINTR) return io_error("close directory", directory, -closed);
  return {};
}

Result<Space> PosixTarget::space(const std::string& path) {
  std::string place = tidy_path(path);
  struct statvfs info {};
  for (;;) {
    const int result = uninterrupted([&] { return ::statvfs(place.c_str(), &info) == 0 ? 0 : -errno; });
    if (result == 0) break;
    const std::string parent = parent_of(place);
    if ((result != -ENOENT && result != -ENOTDIR) || parent == place)
      return io_error("space of", path, -result);
    place = parent;
  }
  const auto block = static_cast<Bytes>(info.f_bsize);
  // Some FUSE file systems report 0 blocks in total: they do not tell their size. Unknown does not mean full.
  if (info.f_blocks == 0) return Space{std::numeric_limits<Bytes>::max(), block};
  return Space{static_cast<Bytes>(info.f_bavail) * static_cast<Bytes>(info.f_frsize), block};
}

Result<std::vector<std::string>> PosixTarget::list(const std::string& directory) {
  const std::string tidy = tidy_path(directory);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(tidy.c_str()), ::closedir);
  if (!stream) return io_error("list", tidy, errno);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return io_error("list", tidy, errno);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::shared_ptr<void>> PosixTarget::lock(const std::string& path) { return lock_file(system_, path); }

Result<std::shared_ptr<void>> PosixTarget::share_lock(const std::string& path, std::shared_ptr<void> own) {
  return share_lock_file(system_, path, own);
}

std::unique_ptr<Target> posix_target() { return std::make_unique<PosixTarget>(std::make_shared<System>()); }

}  // namespace tailrace::storage
