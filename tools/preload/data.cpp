// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "../run/holding.hpp"
#include "preload.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tailrace::run {

namespace {

/// A lease: the lock on a file's size or a description's position, and the right to set it. A process that is
/// stopped loses both to the next process that wants them. When it goes on, it finds that out before it
/// writes the next page, and when it sets the value.
class Lease {
 public:
  Lease(ProcessLock& lock, FencedValue& value, bool wanted) : lock_(lock), value_(value), wanted_(wanted) {
    if (wanted) error = take();
  }
  ~Lease() {
    if (wanted_ && error == 0) (void)lock_.unlock(self());
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  [[nodiscard]] bool is_held() const { return !wanted_ || value_.generation() == generation_; }
  /// Set the value, or make it at least `to`. Return false, and do nothing, if another process has taken the
  /// lease.
  bool set(std::int64_t value) { return value_.set_in(generation_, value); }
  bool raise(std::int64_t to) { return value_.raise_in(generation_, to); }

 private:
  int take() {
    const auto is_stuck = [](Holder holder, int) { return holding_of(arena(), holder) != Holding::goes_on; };
    int failed = 0;
    Holder holder = 0;
    do {
      failed = lock_.lock(self(), is_stuck, holder);
    } while (failed == ESTALE && !lock_.take_from(holder, self()));
    if (failed == ESTALE) value_.fence();
    generation_ = value_.generation();
    return failed == ESTALE ? 0 : failed;
  }
  ProcessLock& lock_;
  FencedValue& value_;
  bool wanted_;
  std::uint32_t generation_ = 0;

 public:
  int error = 0;
};

std::int64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Makes this process's page tables for a frame in one call: a fault for each 4 KiB costs more than the
/// copies.
void touch(std::uint32_t number) {
  static std::atomic<std::atomic<std::uint64_t>*> bitmap{nullptr};
  std::atomic<std::uint64_t>* bits = bitmap.load(std::memory_order_acquire);
  if (bits == nullptr) {
    void* const fresh =
        mmap(nullptr, arena().frames / 8 + 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return;
    if (bitmap.compare_exchange_strong(bits, static_cast<std::atomic<std::uint64_t>*>(fresh))) {
      bits = static_cast<std::atomic<std::uint64_t>*>(fresh);
    } else {
      munmap(fresh, arena().frames / 8 + 8);
    }
  }
  const std::uint64_t bit = std::uint64_t{1} << (number % 64);
  if ((bits[number / 64].load(std::memory_order_relaxed) & bit) != 0) return;
  bits[number / 64].fetch_or(bit, std::memory_order_relaxed);
  const int before = errno;
  (void)madvise(arena().bytes_of(number), arena().page_bytes, MADV_POPULATE_WRITE);
  errno = before;
}

void wait_a_little() {
  const timespec while_ = {0, ProcessLock::wait_ns};
  const int before = errno;
  (void)syscall(SYS_nanosleep, &while_, nullptr);
  errno = before;
}

struct Span {
  std::uint64_t page;
  std::uint32_t from;
  std::uint32_t bytes;
};
Span span_at(std::int64_t offset, std::size_t bytes) {
  const std::uint64_t page_bytes = arena().page_bytes;
  const auto from = static_cast<std::uint32_t>(static_cast<std::uint64_t>(offset) & (page_bytes - 1));
  return {static_cast<std::uint64_t>(offset) >> arena().page_shift, from,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, page_bytes - from))};
}

/// Locks the frame of a page. If need be, the keeper first brings the bytes in, and with `is_written` makes
/// room for them on storage. Returns 0 or an errno.
int lock_page(std::uint32_t file, const Span& span, bool is_written, std::uint32_t& number) {
  const std::uint64_t key = key_of(file, span.page);
  const std::uint32_t end = span.from + span.bytes;
  constexpr int longest = 50;  // waits of ProcessLock: a copy takes much less, also on a busy node
  const auto is_stuck = [](Holder holder, int waits) {
    return waits >= longest || holding_of(arena(), holder) != Holding::goes_on;
  };
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    number = arena().find(key);
    int failed = 0;
    if (number != nobody) {
      Frame& frame = arena().frame(number);
      Holder holder = 0;
      failed = frame.lock.lock(self(), is_stuck, holder);
      if (failed == EDEADLK) return failed;
      if (failed == 0 && frame.key.load(std::memory_order_relaxed) == key && span.from >= frame.loaded_from &&
          end <= frame.loaded_to && (!is_written || end <= frame.reserved)) {
        if (!frame.is_used.load(std::memory_order_relaxed))
          frame.is_used.store(true, std::memory_order_relaxed);
        touch(number);
        return 0;
      }
      if (failed == 0) (void)frame.lock.unlock(self());
    }
    Request request;
    request.op = Op::bring_in;
    request.file = file;
    request.a = static_cast<std::int64_t>(span.page);
    request.b = is_written ? 1 : 0;
    request.from = span.from;
    request.to = end;
    request.c = failed == ESTALE ? 1 : 0;
    forget_file_limit();  // once in a while: another process may have changed the limit (prlimit)
    Answer answer;
    const int error = ask(request, answer);
    if (error > 0) return error;
    if (error == too_many_left) wait_a_little();
  }
  return EIO;  // there are so few frames that the page always lost its frame before it could be locked
}

/// Reads bytes of a file. Returns the number of bytes read, or -1 with errno. It is less than `bytes` only at
/// the end of the file, or before an error.
ssize_t read_at(std::uint32_t number, char* to, std::size_t bytes, std::int64_t offset) {
  const std::int64_t size = arena().files[number].size;
  if (offset >= size) return 0;
  bytes = std::min(bytes, static_cast<std::size_t>(size - offset));
  std::size_t done = 0;
  while (done < bytes) {
    const Span span = span_at(offset + static_cast<std::int64_t>(done), bytes - done);
    std::uint32_t frame = nobody;
    if (const int error = lock_page(number, span, false, frame); error != 0)
      return done > 0 ? static_cast<ssize_t>(done) : fail(error);
    std::memcpy(to + done, arena().bytes_of(frame) + span.from, span.bytes);
    // If the page has got another frame meanwhile, the bytes are copied again from there.
    if (arena().frame(frame).lock.unlock(self())) done += span.bytes;
  }
  return static_cast<ssize_t>(done);
}

/// The leases of a write, and its kind.
struct Writing {
  Lease& position;
  Lease& end;
  bool appends;
  /// An append that is not longer than a page: other processes see all of it at once, since the size is
  /// raised only when all bytes are copied. A longer append raises the size page by page: if it loses the
  /// lease, its first part remains.
  bool is_whole;
  [[nodiscard]] bool is_right() const { return position.is_held() && end.is_held(); }
  /// Raises the file's size to `to`, unless the append raises it at its end. Returns false if the lease on
  /// the end is lost.
  bool raise(FencedValue& size, std::int64_t to) const {
    if (appends) return is_whole || end.raise(to);
    size.raise(to);
    return true;
  }
  [[nodiscard]] bool may_be_short() const { return appends && !is_whole; }
};
/// What a write returns if another process has taken a lease: other bytes may belong in this place, so the
/// caller writes the bytes again at the new position or end.
constexpr ssize_t lost = -2;

ssize_t write_at(const Writing& how, std::uint32_t number, const char* from, std::size_t bytes,
                 std::int64_t offset) {
  if (offset > most_bytes - static_cast<std::int64_t>(bytes)) return fail(EFBIG);
  File& file = arena().files[number];
  std::size_t done = 0;
  while (done < bytes) {
    const std::int64_t at = offset + static_cast<std::int64_t>(done);
    const Span span = span_at(at, bytes - done);
    const std::uint32_t end = span.from + span.bytes;
    std::uint32_t found = nobody;
    if (const int error = lock_page(number, span, true, found); error != 0)
      return done > 0 ? static_cast<ssize_t>(done) : fail(error);
    Frame& frame = arena().frame(found);
    bool is_right = how.is_right();
    if (is_right) {
      frame.changed_from = std::min(frame.changed_from, span.from);
      frame.changed_to = std::max(frame.changed_to, end);
      frame.is_changed.store(true, std::memory_order_relaxed);
      std::memcpy(arena().bytes_of(found) + span.from, from + done, span.bytes);
      // Still under the frame's lock: the size never counts bytes that are not copied yet, so that no process
      // reads zeros in their place, and the keeper stores the page with all its bytes.
      is_right = how.raise(file.size, at + span.bytes);
    }
    const bool is_there = frame.lock.unlock(self());
    if (!is_right) return done > 0 && how.may_be_short() ? static_cast<ssize_t>(done) : lost;
    // If the page has got another frame meanwhile, the bytes are copied again to there.
    if (is_there) done += span.bytes;
  }
  file.changed_ns.store(now_ns(), std::memory_order_relaxed);
  return static_cast<ssize_t>(done);
}

ssize_t read_all(std::uint32_t file, const iovec* parts, int count, std::int64_t offset) {
  ssize_t done = 0;
  for (int each = 0; each < count; ++each) {
    const ssize_t got =
        read_at(file, static_cast<char*>(parts[each].iov_base), parts[each].iov_len, offset + done);
    if (got < 0) return done > 0 ? done : -1;
    done += got;
    if (static_cast<std::size_t>(got) < parts[each].iov_len) break;
  }
  return done;
}

/// Writes the first `most` bytes of the parts.
ssize_t write_all(const Writing& how, std::uint32_t file, const iovec* parts, int count, std::size_t most,
                  std::int64_t offset) {
  ssize_t done = 0;
  for (int each = 0; each < count; ++each) {
    const std::size_t bytes = std::min(parts[each].iov_len, most - static_cast<std::size_t>(done));
    const auto* const from = static_cast<const char*>(parts[each].iov_base);
    const ssize_t put = write_at(how, file, from, bytes, offset + done);
    if (put == lost && (done == 0 || !how.may_be_short())) return lost;
    if (put < 0) return done > 0 ? done : -1;
    done += put;
    if (static_cast<std::size_t>(put) < parts[each].iov_len) break;
  }
  return done;
}

std::size_t bytes_of(const iovec* parts, int count) {
  std::size_t bytes = 0;
  for (int each = 0; each < count; ++each) bytes += parts[each].iov_len;
  return bytes;
}

bool is_valid(const iovec* parts, int count, std::int64_t offset, bool at_position) {
  if (count < 0 || count > IOV_MAX || (!at_position && offset < 0)) return false;
  std::size_t bytes = 0;
  for (int each = 0; each < count; ++each)
    if (__builtin_add_overflow(bytes, parts[each].iov_len, &bytes) || bytes > SSIZE_MAX) return false;
  return true;
}

}  // namespace

int store_shared(std::uint32_t file, bool is_synchronised) {
  Request request;
  request.op = Op::sync;
  request.file = file;
  request.a = is_synchronised ? 1 : 0;
  Answer answer;
  return ask(request, answer);
}

ssize_t read_shared(int descriptor, const iovec* parts, int count, off_t offset, bool at_position) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  Description& description = arena().descriptions[number];
  if ((description.flags & O_ACCMODE) == O_WRONLY) return fail(EBADF);
  if (!is_valid(parts, count, offset, at_position)) return fail(EINVAL);
  for (;;) {
    Lease position(description.lock, description.offset, at_position);
    if (position.error != 0) return fail(position.error);
    const std::int64_t at = at_position ? description.offset.load() : offset;
    const ssize_t got = read_all(description.file, parts, count, at);
    // Another process has taken the position, and has read the same bytes: this read takes the next ones.
    if (got > 0 && at_position && !position.set(at + got)) continue;
    counters().reads.fetch_add(1, std::memory_order_relaxed);
    if (got > 0) counters().read_bytes.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
    return got;
  }
}

ssize_t write_shared(int descriptor, const iovec* parts, int count, off_t offset, bool at_position) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  Description& description = arena().descriptions[number];
  const int flags = description.flags;
  if ((flags & O_ACCMODE) == O_RDONLY) return fail(EBADF);
  if (!is_valid(parts, count, offset, at_position)) return fail(EINVAL);
  const std::uint32_t file = description.file;
  FencedValue& size = arena().files[file].size;
  // On Linux pwrite appends, too, if O_APPEND is set (pwrite(2), BUGS).
  const bool appends = (flags & O_APPEND) != 0;
  const std::size_t bytes = bytes_of(parts, count);
  const bool is_whole = appends && bytes <= arena().page_bytes;
  for (;;) {
    Lease position(description.lock, description.offset, at_position);
    if (position.error != 0) return fail(position.error);
    Lease end(arena().files[file].append, size, appends);
    if (end.error != 0) return fail(end.error);
    const std::int64_t at = appends ? size.load() : at_position ? description.offset.load() : offset;
    const std::int64_t room = file_limit() - at;
    if (bytes > 0 && room <= 0) break;
    const std::size_t most = std::min(bytes, static_cast<std::size_t>(std::max<std::int64_t>(room, 0)));
    const ssize_t put = write_all({position, end, appends, is_whole}, file, parts, count, most, at);
    if (put == lost || (put > 0 && is_whole && !end.raise(at + put))) continue;
    if (put > 0 && (flags & O_DSYNC) != 0) {
      // After an error the position stays where it was.
      if (const int error = store_shared(file, true); error != 0) return fail(error);
    }
    // Another process has taken the position, and has written to the same bytes: this write takes the next
    // ones. An append keeps its place.
    if (put > 0 && at_position && !position.set(at + put) && !appends) continue;
    counters().writes.fetch_add(1, std::memory_order_relaxed);
    if (put > 0)
      counters().written_bytes.fetch_add(static_cast<std::uint64_t>(put), std::memory_order_relaxed);
    return put;
  }
  return fail(over_file_limit());
}

namespace {

/// Returns where a seek leads, or -1 with errno.
off_t place_of(const Description& description, off_t offset, int whence) {
  const std::int64_t size = arena().files[description.file].size;
  std::int64_t from = 0;
  switch (whence) {
    case SEEK_SET:
      break;
    case SEEK_CUR:
      from = description.offset;
      break;
    case SEEK_END:
      from = size;
      break;
    case SEEK_DATA:  // the whole file counts as data
      if (offset < 0 || offset >= size) return fail(ENXIO);
      break;
    case SEEK_HOLE:
      if (offset < 0 || offset >= size) return fail(ENXIO);
      offset = size;
      break;
    default:
      return fail(EINVAL);
  }
  if (__builtin_add_overflow(from, offset, &from)) return fail(EOVERFLOW);
  return from < 0 || from > most_bytes ? fail(EINVAL) : from;
}

}  // namespace

off_t seek_shared(int descriptor, off_t offset, int whence) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  Description& description = arena().descriptions[number];
  counters().others.fetch_add(1, std::memory_order_relaxed);
  for (;;) {
    Lease position(description.lock, description.offset, true);
    if (position.error != 0) return fail(position.error);
    const off_t place = place_of(description, offset, whence);
    if (place < 0 || position.set(place)) return place;
  }
}

int cut_shared(int descriptor, off_t size) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  const Description& description = arena().descriptions[number];
  if (size < 0 || (description.flags & O_ACCMODE) == O_RDONLY) return fail(EINVAL);
  if (size > most_bytes) return fail(EFBIG);
  if (size > file_limit() && size > arena().files[description.file].size) return fail(over_file_limit());
  counters().others.fetch_add(1, std::memory_order_relaxed);
  Request request;
  request.op = Op::cut;
  request.file = description.file;
  request.a = size;
  Answer answer;
  const int error = ask(request, answer);
  if (error == 0) arena().files[request.file].changed_ns = now_ns();
  return result_of(error);
}

int sync_shared(int descriptor) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  counters().others.fetch_add(1, std::memory_order_relaxed);
  return result_of(store_shared(arena().descriptions[number].file, true));
}

}  // namespace tailrace::run
