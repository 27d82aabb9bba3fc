// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/storage/identity.hpp"
#include "ground/storage/queue/started_write.hpp"
#include "ground/storage/rights.hpp"

namespace tailrace::storage {

using Parts = std::span<const std::span<const std::byte>>;
Bytes bytes_in(Parts parts);

enum class OpenMode {
  read,
  read_regular /* as read, but ENOENT, without waiting, for a pipe, a device or a directory */,
  create /* new or emptied, read-write */,
  keep /* new or as it is, read-write */,
  existing /* read-write; the file must exist */,
  // The last three are for names that only the library gives to files. Other users who may write to the
  // directory can know these names and put a link there. The link must not be followed.
  anew /* new, read-write; a file or link that has the name loses it first */,
  own /* as keep; ELOOP if the name is a link */,
  own_existing /* as existing; ELOOP if the name is a link */
};

[[nodiscard]] constexpr bool only_reads(OpenMode mode) {
  return mode == OpenMode::read || mode == OpenMode::read_regular;
}
/// True if the mode makes a file that is missing.
[[nodiscard]] constexpr bool makes(OpenMode mode) {
  return mode == OpenMode::create || mode == OpenMode::keep || mode == OpenMode::anew ||
         mode == OpenMode::own;
}
/// True if the file is empty once it is open.
[[nodiscard]] constexpr bool empties(OpenMode mode) {
  return mode == OpenMode::create || mode == OpenMode::anew;
}

/// A range of a file's bytes.
struct Range {
  Bytes offset = 0;
  Bytes size = 0;
};

class WriteQueue;

/// One open file that takes bytes at offsets. Several threads may call its methods at once. A file may
/// outlive its target. After close() every method returns Code::state.
class File {
 public:
  virtual ~File() = default;
  /// Writes all of `data` at `offset`, or fails. Repeats short writes and writes interrupted by signals. A
  /// failed write may have left any part of `data` in the file.
  virtual Status write(std::span<const std::byte> data, Bytes offset);
  /// Writes the parts one after another from `offset` on, in one call if the system has one.
  virtual Status write_gathered(Parts parts, Bytes offset) = 0;
  /// Begins a write_gathered(), or makes it if storage cannot go on with it by itself. The bytes must stay as
  /// they are, and the file open, until the write is over; the list of the parts need not. `queue` belongs to
  /// the caller, who uses one for all writes of a file, and outlives them.
  virtual std::unique_ptr<StartedWrite> start_write(Parts parts, Bytes offset, WriteQueue& queue);
  /// Fills `data` from `offset` on. Returns the number of bytes read, which is less than asked only at the
  /// end of the file.
  virtual Result<Bytes> read(std::span<std::byte> data, Bytes offset) = 0;
  /// Makes the file's bytes durable by fsync. A failure is final for this file: every later sync() returns
  /// it.
  virtual Status sync() = 0;
  /// Hints that the system may start to write all bytes so far to the device. Never fails, and does not wait
  /// for the device.
  virtual void begin_write_back() {}
  /// Returns the first place from `offset` on that is not in a hole, or a place behind the end of the file if
  /// there is none. Returns `offset` itself if storage does not tell.
  virtual Bytes next_data(Bytes offset) { return offset; }
  /// Takes room for bytes that no process writes yet, or none: the file stays as it is. Storage without such
  /// a call only looks whether there is room now.
  virtual Status reserve(std::span<const Range> /*ranges*/) { return {}; }
  /// Gives back unused room behind the end of a file that no process writes meanwhile.
  virtual void give_back_room() {}
  /// Cuts the file to `size`, or extends it with zeros.
  virtual Status truncate(Bytes size) = 0;
  virtual Result<Bytes> size() = 0;
  /// Returns the rights of this open file, whatever has its name by now. Nothing: storage has no rights.
  virtual std::optional<Rights> rights() { return {}; }
  /// Change the rights of this open file, and never those of a file that somebody has meanwhile put under its
  /// name.
  virtual Status set_owner(std::optional<unsigned> /*user*/, unsigned /*group*/) { return {}; }
  virtual Status set_permissions(unsigned /*permissions*/) { return {}; }
  /// True if `path` names this file. False if it names another file or nothing; a link counts as another
  /// file.
  virtual bool is_named(const std::string& /*path*/) { return true; }
  /// Returns the numbers that tell this open file from all others, also without its name. Zeros: unknown.
  virtual FileNumber number() { return {}; }
  /// True if the file reaches up to `end` and has the bytes of `ranges`, which lie before `end`. The ranges
  /// are records: of each step all or none.
  virtual Result<bool> holds(Bytes end, std::span<const Range> ranges);
  /// Returns how many descriptors of the process the open file takes.
  [[nodiscard]] virtual int descriptors() const { return 1; }
  /// Closes the file and checks the result. Further calls return Code::state. The destructor closes without a
  /// check.
  virtual Status close() = 0;
};

/// A name leads to one of these. Links are followed.
enum class Kind { nothing, file, directory, other /* a pipe, a socket, a device */ };

struct Space {
  /// Bytes that this user may still write, apart from quotas. The largest number if unknown.
  Bytes free = 0;
  Bytes block = 0;  // preferred size of one write
};

/// Storage that has files under names. Thread-safe. Only make_directories() makes directories: every other
/// call with a name in a missing directory fails with ENOENT.
class Target {
 public:
  virtual ~Target() = default;
  /// Opens a file. A new file has `permissions`, less the umask, from its first moment on, as in open(2). An
  /// existing file keeps its permissions. Other things than regular files are refused without waiting for
  /// them: pipes, sockets and devices except /dev/null (ESPIPE), and directories (EISDIR).
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode,
                                             unsigned permissions) = 0;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) {
    return open(path, mode, usual_permissions);
  }
  /// Gives the file `from` the name `to`, atomically, and replaces a file of that name. A directory can only
  /// get a name that is free. Both names must lie in one directory; otherwise returns Code::argument, because
  /// no system makes a move between two directories durable as one.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;  // EISDIR for a directory
  /// Returns Code::state if the file must not be emptied or removed, because it is a directory to which
  /// another program has added something.
  virtual Status check_removable(const std::string& /*path*/) { return {}; }
  /// Removes an empty directory.
  virtual Status remove_directory(const std::string& path) = 0;
  /// Makes the file `to` (OpenMode::anew) from the first `size` bytes of `from`. On return the bytes are
  /// durable; the name is not. Returns Code::corrupt if `from` is shorter.
  virtual Status copy(const std::string& from, Bytes size, const std::string& to);
  virtual Result<bool> exists(const std::string& path) = 0;
  /// Returns what the name leads to.
  virtual Result<Kind> kind_of(const std::string& path) = 0;
  /// Returns the identity of the file of this name, or an error also if storage does not tell it.
  virtual Result<Identity> identity_of(const std::string& path);
  /// Returns the name to which `path` leads by links, which may be that of nothing.
  virtual std::string behind_links(const std::string& path) { return path; }
  /// True if the name itself is a link, wherever it leads.
  virtual Result<bool> is_link(const std::string& /*path*/) { return false; }
  /// Returns the name by which another library can open the file, or nothing if it is no file of the system.
  [[nodiscard]] virtual std::optional<std::string> system_name(const std::string& /*path*/) { return {}; }
  /// Called before another library writes so many bytes of the file: a throttled target waits, a faulty
  /// fails.
  virtual Status count_write(const std::string& /*path*/, Bytes /*size*/) { return {}; }
  /// Makes the directory and the missing ones above it. On success they are durable.
  virtual Status make_directories(const std::string& path) = 0;
  /// Makes the entries of the directory that holds `path` durable, also removals and renames, by fsync.
  virtual Status sync_directory_of(const std::string& path) = 0;
  /// Calls sync() of all these files, several at a time if storage is slow. Returns the first failure in the
  /// order of `files`. Files of other targets may be among them.
  virtual Status sync_files(std::span<File* const> files);
  /// Calls sync_directory_of() for all these paths in the same way.
  virtual Status sync_directories_of(std::span<const std::string> paths);
  /// Returns the free space of the storage of `path`, which need not exist yet.
  virtual Result<Space> space(const std::string& path) = 0;
  /// Returns the names (not paths) in a directory, sorted.
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  /// Takes an exclusive advisory lock. It is held until the returned object is destroyed or its process ends.
  /// Does not wait: if the lock is taken, returns Code::state and names the holder, also if the caller may
  /// only read the lock file. `path` is a file for this lock only, which this call makes, and which is
  /// removed with the lock. An existing file with other contents is refused, never overwritten.
  virtual Result<std::shared_ptr<void>> lock(const std::string& path) = 0;
  /// Takes a share in a lock. As long as any process has a share, lock() fails. `own` is the result of lock()
  /// for this path, which becomes the caller's share, or nullptr for a further share. Does not wait: returns
  /// Code::state if somebody else has the whole lock; `own` is lost then. The lock file is removed only by
  /// the share that came from lock(), if it is the last one.
  virtual Result<std::shared_ptr<void>> share_lock(const std::string& path, std::shared_ptr<void> own) = 0;
};

/// Local, like all functions below. True if the name leads to a file, and not if storage does not tell.
bool is_file(Target& target, const std::string& path);
/// Returns the size of a file, or nothing if there is no file.
Result<std::optional<Bytes>> size_if_there(Target& target, const std::string& path);
/// Returns Code::corrupt if something else has cut or removed the file: fewer than `end` bytes lie under its
/// name, or not all of the ranges. The text says which. Looks the name up again, because a descriptor stays
/// valid for a removed file, and because a network file system asks for the size only when a file is opened.
Status check_holds(Target& target, const std::string& path, Bytes end, std::span<const Range> ranges = {});
/// Removes the file if it is there, and returns true if it was. The removal is not durable yet.
Result<bool> remove_if_there(Target& target, const std::string& path);
/// Removes the file if it is there. The removal is durable on return.
Status remove_durably(Target& target, const std::string& path);
/// Makes an empty file. Its name is durable on return.
Status create_empty(Target& target, const std::string& path, OpenMode mode = OpenMode::create);
/// Makes the bytes durable that any process has written to the file. For this OpenMode::read is enough, which
/// is for files that this user may not write to.
Status sync_file(Target& target, const std::string& path, OpenMode mode = OpenMode::existing);
/// Makes a file and its name durable: the process that wrote them may have been killed before its fsync.
Status make_durable(Target& target, const std::string& path);

std::unique_ptr<Target> posix_target();

/// Returns a target that writes through io_uring, if the kernel allows it. Otherwise, or in a build without
/// liburing, returns Code::unsupported with the reason.
Result<std::shared_ptr<Target>> uring_target();

/// Returns a new, empty target that keeps everything in memory of this process, for unit tests and the
/// simulated world.
std::shared_ptr<Target> memory_target();

/// A kind of target that can be chosen by name: a row of the table in target.cpp.
struct TargetKind {
  std::string_view name;
  std::string_view use;  // what it is for, as the docs and `tailrace settings` print it
  bool for_programs;     // the setting `target` may name it: all processes find the same files there
  /// The beginning of its names ("memory://"), by which names alone can choose it beside another target.
  /// Empty: its names are those of a file system. The target gets names with the prefix, as users wrote them.
  std::string_view prefix{};
  /// Returns the reason if this build or this machine cannot make it.
  Result<std::shared_ptr<Target>> (*make)();
};
std::span<const TargetKind> target_kinds();
/// Returns a target of the kind with this name. Any other name gives Code::settings with the nearest one.
Result<std::shared_ptr<Target>> make_target(std::string_view name);
/// Returns a target for a program: of the kind with this name, and for the names that have the prefix of
/// another kind for programs, of that kind.
Result<std::shared_ptr<Target>> make_target_of_program(std::string_view name);
/// Returns the target of a program where nobody has chosen one, as in the command `tailrace`.
std::shared_ptr<Target> default_target();

struct Throttle {
  double bytes_per_second = 0;  // 0: no limit
  double latency_seconds = 0;   // added to each write and sync
  bool reads = false;           // slow reads like writes
};
/// Slows writes and syncs of `below` to the given rate by sleeping, and also reads if asked. All files of the
/// target share the rate, as on one disk.
std::shared_ptr<Target> throttled_target(std::shared_ptr<Target> below, Throttle throttle);
/// Reads "50MB/s", "50MB/s,2ms", "50MB/s,reads" or "50MB/s,2ms,reads". Units: B, kB, MB, GB (powers of 1000),
/// KiB, MiB, GiB; us, ms, s.
Result<Throttle> parse_throttle(std::string_view text);

}  // namespace tailrace::storage
