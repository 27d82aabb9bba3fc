// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "base/types.hpp"
#include "storage/identity.hpp"

namespace tailrace::storage {

using Parts = std::span<const std::span<const std::byte>>;
Bytes bytes_in(Parts parts);

enum class OpenMode {
  read,
  read_regular /* as read; ENOENT, at once, if what has the name is a pipe, a device or a directory */,
  create /* new or truncated, read-write */,
  keep /* new or as it is, read-write */,
  existing /* read-write; the file must exist */,
  // For names that nobody but the library gives to anything. Others who may write to the directory can know
  // them, and put a link to any file there: it is not followed.
  anew /* new, read-write: what has the name, a link too, loses it before */,
  own /* as keep; ELOOP if the name is a link */,
  own_existing /* as existing; ELOOP if the name is a link */
};

[[nodiscard]] constexpr bool only_reads(OpenMode mode) {
  return mode == OpenMode::read || mode == OpenMode::read_regular;
}
/// Returns true if a file that is missing is made.
[[nodiscard]] constexpr bool makes(OpenMode mode) {
  return mode == OpenMode::create || mode == OpenMode::keep || mode == OpenMode::anew ||
         mode == OpenMode::own;
}
/// Returns true if the file is empty once it is open.
[[nodiscard]] constexpr bool empties(OpenMode mode) {
  return mode == OpenMode::create || mode == OpenMode::anew;
}

/// What the permissions of a file that is made are taken from; the umask of the process takes its part away.
constexpr unsigned usual_permissions = 0666;

/// Bytes of a file.
struct Range {
  Bytes offset = 0;
  Bytes size = 0;
};

/// Says whose a file is, and who may do what with it.
struct Rights {
  unsigned user = 0;
  unsigned group = 0;
  unsigned permissions = 0;
  bool has_list = false;  // an access control list says more than the permissions
};

/// One open file that accepts bytes at offsets. Methods may be called from several threads at once. A file
/// outlives its target. After close() every method is Code::state.
class File {
 public:
  virtual ~File() = default;
  /// Writes all of `data` at `offset`, or fails. Loops on short writes and EINTR. A failed write may have
  /// left any part of `data` in the file.
  virtual Status write(std::span<const std::byte> data, Bytes offset);
  /// Writes the parts one after another from `offset` on, in one call if the system has one.
  virtual Status write_gathered(Parts parts, Bytes offset) = 0;
  /// Fills `data` from `offset`. Returns the number of bytes read, less than asked only at the end of the
  /// file.
  virtual Result<Bytes> read(std::span<std::byte> data, Bytes offset) = 0;
  /// Calls fsync. A failure is final for this file: it is remembered and returned by every later sync().
  virtual Status sync() = 0;
  /// Hints that the system may begin to write to the device what was written so far. Never fails, and does
  /// not wait for the device.
  virtual void begin_write_back() {}
  /// Returns the first place from `offset` on where bytes may lie that are not zeros of a hole, or one behind
  /// the end of the file if there are none. Returns `offset` itself if storage does not tell.
  virtual Bytes next_data(Bytes offset) { return offset; }
  /// Cuts the file, or extends it with zeros.
  virtual Status truncate(Bytes size) = 0;
  virtual Result<Bytes> size() = 0;
  /// Returns the rights of this file, whatever has its name by now, or nothing if storage knows none.
  virtual std::optional<Rights> rights() { return {}; }
  /// Change them for this file, and never for what somebody has put at its name meanwhile.
  virtual Status set_owner(std::optional<unsigned> /*user*/, unsigned /*group*/) { return {}; }
  virtual Status set_permissions(unsigned /*permissions*/) { return {}; }
  /// Returns false if `path` names another file than this one, or nothing; a link there is another file.
  virtual bool is_named(const std::string& /*path*/) { return true; }
  /// Returns what tells this open file from all others, whatever has its name by now, or zeros if storage
  /// does not know.
  virtual FileNumber number() { return {}; }
  /// Returns true if the file reaches up to `end`, and has the ranges, which lie before it. They are records,
  /// all or none of each step.
  virtual Result<bool> holds(Bytes end, std::span<const Range> ranges);
  /// Returns how many of the process's descriptors it takes while it is open.
  [[nodiscard]] virtual int descriptors() const { return 1; }
  /// Closes the file and checks the result. Further calls are Code::state. The destructor closes without a
  /// check.
  virtual Status close() = 0;
};

struct Space {
  Bytes free = 0;   // what this user may still write, quota aside; the largest number if unknown
  Bytes block = 0;  // preferred size of one write
};

/// Storage with names. Thread-safe. Directories are made only by make_directories(); every other call on a
/// name in a missing directory fails with ENOENT.
class Target {
 public:
  virtual ~Target() = default;
  /// A file that this call makes has `permissions`, less the umask, from its first moment on, as in open(2).
  /// One that is there keeps its own. What is no regular file is refused, and nothing waits for it: pipes,
  /// sockets and devices (ESPIPE), but for /dev/null, and directories (EISDIR).
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                             unsigned permissions) = 0;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) {
    return open(path, mode, usual_permissions);
  }
  /// Atomically gives the file `from` the name `to`, replacing the file that had it. A directory may get a
  /// name that nothing has. Both lie in one directory; otherwise it returns Code::argument, because no system
  /// makes a move between two directories durable as one.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  /// Returns Code::state if the file must be neither emptied nor removed: it is a directory to which another
  /// program has added something.
  virtual Status check_removable(const std::string& /*path*/) { return {}; }
  /// Removes an empty directory.
  virtual Status remove_directory(const std::string& path) = 0;
  /// Makes the file `to` anew (OpenMode::anew) of the first `size` bytes of `from`. The bytes are durable on
  /// return, the name is not. Code::corrupt if `from` is shorter.
  virtual Status copy(const std::string& from, Bytes size, const std::string& to);
  virtual Result<bool> exists(const std::string& path) = 0;
  /// Returns true if the name itself is a link, wherever it leads to.
  virtual Result<bool> is_link(const std::string& /*path*/) { return false; }
  /// Makes the directory and those above it that are missing. They are durable on success.
  virtual Status make_directories(const std::string& path) = 0;
  /// Calls fsync on the directory that holds `path`. Its entries are then durable, removed and renamed ones
  /// too.
  virtual Status sync_directory_of(const std::string& path) = 0;
  /// Calls sync() of all these files, side by side if storage is slow. Returns the first failure in their
  /// order.
  virtual Status sync_files(std::span<File* const> files);
  /// Does the same with sync_directory_of().
  virtual Status sync_directories_of(std::span<const std::string> paths);
  /// Returns the space of the storage that holds `path`. `path` need not exist yet.
  virtual Result<Space> space(const std::string& path) = 0;
  /// Returns the names (not paths) in a directory, sorted.
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  /// Takes an exclusive advisory lock, held until the returned object or its process dies. Does not wait:
  /// returns Code::state naming the holder if the lock is taken, also to readers. `path` is a lock file of
  /// its own, made here and removed with the lock. A file with other contents is refused, never overwritten.
  virtual Result<std::shared_ptr<void>> lock(const std::string& path) = 0;
  /// Takes a share in a lock: lock() fails as long as any process has one. `own` is what lock() of this path
  /// has returned, and becomes the caller's share; nullptr takes another share. Does not wait: returns
  /// Code::state if somebody else has the whole lock, and `own` is lost then. Only the share that was a
  /// lock() removes the lock file, if it is the last one.
  virtual Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) = 0;
};

/// Local, like the functions that follow. Returns the size of a file, or nothing if there is none.
Result<std::optional<Bytes>> size_if_there(Target& target, const std::string& path);
/// Returns Code::corrupt, saying what became of the file, if fewer than `end` bytes lie under its
/// name, or not all of the ranges: something else has cut or removed it. The name is looked up anew because a
/// descriptor stays good for a removed file, and because a network file system asks for the size anew when a
/// file is opened.
Status check_holds(Target& target, const std::string& path, Bytes end, std::span<const Range> ranges = {});
/// Returns true if there was a file to remove. The removal is not durable yet.
Result<bool> remove_if_there(Target& target, const std::string& path);
/// Removes the file if it is there, durably.
Status remove_durably(Target& target, const std::string& path);
/// Makes an empty file. Its name is durable on return.
Status create_empty(Target& target, const std::string& path, OpenMode mode = OpenMode::create);
/// Synchronises a file and its name: the process that wrote them may have been killed before its fsync.
Status make_durable(Target& target, const std::string& path);

std::unique_ptr<Target> posix_target();

/// Writes through io_uring if the kernel grants it. Otherwise, or in a build without liburing, returns
/// Code::unsupported with the reason.
Result<std::shared_ptr<Target>> uring_target();

/// Keeps everything in memory of this process, for unit tests and the simulated world. Each call makes a new,
/// empty target.
std::shared_ptr<Target> memory_target();

/// Returns the target called "posix", "uring" or "memory". Any other name gives Code::settings with the
/// nearest one.
Result<std::shared_ptr<Target>> make_target(std::string_view name);
std::vector<std::string_view> target_names();

struct Throttle {
  double bytes_per_second = 0;  // 0: no limit
  double latency_seconds = 0;   // added to each write and sync
  bool reads = false;           // reads are slowed as writes are
};
/// Slows writes and syncs of `below`, and reads if asked, to a stated rate by sleeping (all files of the
/// target share the rate, as on one disk).
std::shared_ptr<Target> throttled_target(std::shared_ptr<Target> below, Throttle throttle);
/// "50MB/s", "50MB/s,2ms", "50MB/s,reads", "50MB/s,2ms,reads" -> Throttle. Units B, kB, MB, GB (powers of
/// 1000), KiB, MiB, GiB; us, ms, s.
Result<Throttle> parse_throttle(std::string_view text);

}  // namespace tailrace::storage
