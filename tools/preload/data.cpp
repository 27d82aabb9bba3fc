// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "preload.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tailrace::run {

namespace {

struct Locked {
  explicit Locked(RobustLock& lock, bool wanted = true)
      : lock_(lock), wanted_(wanted), error(wanted ? lock.lock() : 0) {}
  ~Locked() {
    if (wanted_ && error == 0) lock_.unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  RobustLock& lock_;
  bool wanted_;

 public:
  int error;
};

std::int64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Makes the page tables of a frame at once: a fault for each 4 KiB costs more than the copies.
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

/// Locks the frame of a page, after the keeper has brought it in if need be. With `end`, storage has room for
/// the bytes of the page before it. Returns 0 or an errno.
int lock_page(std::uint32_t file, std::uint64_t page, std::uint32_t end, std::uint32_t& number) {
  const std::uint64_t key = key_of(file, page);
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    number = arena().find(key);
    if (number != nobody) {
      Frame& frame = arena().frame(number);
      if (const int error = frame.lock.lock(); error != 0) return error;
      if (frame.key.load(std::memory_order_relaxed) == key && end <= frame.reserved) {
        if (!frame.is_used.load(std::memory_order_relaxed))
          frame.is_used.store(true, std::memory_order_relaxed);
        touch(number);
        return 0;
      }
      frame.lock.unlock();
    }
    Request request;
    request.op = Op::bring_in;
    request.file = file;
    request.a = static_cast<std::int64_t>(page);
    request.b = end;
    Answer answer;
    if (const int error = ask(request, answer); error != 0) return error;
  }
  return EIO;  // the memory is so small that others always took the page away first
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

void raise_size(std::atomic<std::int64_t>& size, std::int64_t to) {
  for (std::int64_t before = size.load(std::memory_order_relaxed);
       before < to && !size.compare_exchange_weak(before, to);)
    continue;
}

/// Returns the bytes read; less than asked only at the end of the file, or before an error.
ssize_t read_at(std::uint32_t number, char* to, std::size_t bytes, std::int64_t offset) {
  const std::int64_t size = arena().files[number].size;
  if (offset >= size) return 0;
  bytes = std::min(bytes, static_cast<std::size_t>(size - offset));
  std::size_t done = 0;
  while (done < bytes) {
    const Span span = span_at(offset + static_cast<std::int64_t>(done), bytes - done);
    std::uint32_t frame = nobody;
    if (const int error = lock_page(number, span.page, 0, frame); error != 0)
      return done > 0 ? static_cast<ssize_t>(done) : fail(error);
    std::memcpy(to + done, arena().bytes_of(frame) + span.from, span.bytes);
    arena().frame(frame).lock.unlock();
    done += span.bytes;
  }
  return static_cast<ssize_t>(done);
}

ssize_t write_at(std::uint32_t number, const char* from, std::size_t bytes, std::int64_t offset) {
  if (offset > most_bytes - static_cast<std::int64_t>(bytes)) return fail(EFBIG);
  File& file = arena().files[number];
  std::size_t done = 0;
  while (done < bytes) {
    const std::int64_t at = offset + static_cast<std::int64_t>(done);
    const Span span = span_at(at, bytes - done);
    const std::uint32_t end = span.from + span.bytes;
    std::uint32_t found = nobody;
    if (const int error = lock_page(number, span.page, end, found); error != 0)
      return done > 0 ? static_cast<ssize_t>(done) : fail(error);
    Frame& frame = arena().frame(found);
    std::memcpy(arena().bytes_of(found) + span.from, from + done, span.bytes);
    frame.changed_from = std::min(frame.changed_from, span.from);
    frame.changed_to = std::max(frame.changed_to, end);
    frame.is_changed.store(true, std::memory_order_relaxed);
    // Still under the lock: the page is stored with all its bytes, and nobody sees zeros in their place.
    raise_size(file.size, at + span.bytes);
    frame.lock.unlock();
    done += span.bytes;
  }
  file.changed_ns.store(now_ns(), std::memory_order_relaxed);
  return static_cast<ssize_t>(done);
}

using Mover = ssize_t (*)(std::uint32_t file, const iovec& part, std::int64_t offset);

ssize_t move_all(Mover mover, std::uint32_t file, const iovec* parts, int count, std::int64_t offset) {
  ssize_t done = 0;
  for (int each = 0; each < count; ++each) {
    const ssize_t moved = mover(file, parts[each], offset + done);
    if (moved < 0) return done > 0 ? done : -1;
    done += moved;
    if (static_cast<std::size_t>(moved) < parts[each].iov_len) break;
  }
  return done;
}

ssize_t read_part(std::uint32_t file, const iovec& part, std::int64_t offset) {
  return read_at(file, static_cast<char*>(part.iov_base), part.iov_len, offset);
}
ssize_t write_part(std::uint32_t file, const iovec& part, std::int64_t offset) {
  return write_at(file, static_cast<const char*>(part.iov_base), part.iov_len, offset);
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
  const Locked position(description.lock, at_position);
  if (position.error != 0) return fail(position.error);
  const ssize_t got =
      move_all(read_part, description.file, parts, count, at_position ? description.offset : offset);
  if (got > 0 && at_position) description.offset += got;
  counters().reads.fetch_add(1, std::memory_order_relaxed);
  if (got > 0) counters().read_bytes.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
  return got;
}

ssize_t write_shared(int descriptor, const iovec* parts, int count, off_t offset, bool at_position) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  Description& description = arena().descriptions[number];
  const int flags = description.flags;
  if ((flags & O_ACCMODE) == O_RDONLY) return fail(EBADF);
  if (!is_valid(parts, count, offset, at_position)) return fail(EINVAL);
  const std::uint32_t file = description.file;
  const Locked position(description.lock, at_position);
  if (position.error != 0) return fail(position.error);
  // In Linux pwrite appends, too, if O_APPEND is set.
  const bool appends = (flags & O_APPEND) != 0;
  const Locked end(arena().files[file].append, appends);
  if (end.error != 0) return fail(end.error);
  std::int64_t at = at_position ? description.offset : offset;
  if (appends) at = arena().files[file].size;
  const ssize_t put = move_all(write_part, file, parts, count, at);
  counters().writes.fetch_add(1, std::memory_order_relaxed);
  if (put > 0) counters().written_bytes.fetch_add(static_cast<std::uint64_t>(put), std::memory_order_relaxed);
  if (put > 0 && (flags & O_DSYNC) != 0) {
    if (const int error = store_shared(file, true); error != 0) return fail(error);  // at the old position
  }
  if (put > 0 && at_position) description.offset = at + put;
  return put;
}

off_t seek_shared(int descriptor, off_t offset, int whence) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  Description& description = arena().descriptions[number];
  const Locked position(description.lock);
  if (position.error != 0) return fail(position.error);
  counters().others.fetch_add(1, std::memory_order_relaxed);
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
    case SEEK_DATA:  // everything is data
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
  if (from < 0) return fail(EINVAL);
  description.offset = from;
  return from;
}

int cut_shared(int descriptor, off_t size) {
  const std::uint32_t number = description_of(descriptor);
  if (number == nobody) return fail(EBADF);
  const Description& description = arena().descriptions[number];
  if (size < 0 || (description.flags & O_ACCMODE) == O_RDONLY) return fail(EINVAL);
  if (size > most_bytes) return fail(EFBIG);
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
