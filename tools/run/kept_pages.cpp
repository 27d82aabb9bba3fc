// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "kept_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "holding.hpp"
#include "wire.hpp"

namespace tailrace::run {

namespace {

constexpr std::uint64_t system_page = 4096;
constexpr std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + system_page - 1) / system_page * system_page;
}
/// Pages that follow one another are stored in calls of about this size at most.
constexpr std::uint64_t largest_run = std::uint64_t{16} << 20;
constexpr std::size_t most_parts = 256;
constexpr std::uint32_t fewest_frames = 8;
constexpr int goes_on = -3;  // an error beside those of wire.hpp

/// The offsets at which the parts of an arena begin.
struct Places {
  Places(std::uint32_t frames, std::uint64_t page)
      : buckets(std::bit_ceil(frames) * 2),
        buckets_at(round_up(sizeof(Arena))),
        frames_at(round_up(buckets_at + buckets * sizeof(std::atomic<std::uint32_t>))),
        bytes(std::max(page, system_page) *
              ((round_up(frames_at + frames * sizeof(Frame)) + page - 1) / page)),
        total(bytes + frames * page) {}
  std::uint32_t buckets;
  std::uint64_t buckets_at;
  std::uint64_t frames_at;
  std::uint64_t bytes;
  std::uint64_t total;
};

}  // namespace

KeptPages::~KeptPages() {
  for (KeptFile& file : files_)
    if (file.descriptor >= 0) ::close(file.descriptor);
  if (arena_ != nullptr) munmap(arena_, arena_->total_bytes);
  if (memory_ >= 0) ::close(memory_);
}

int KeptPages::make(std::uint64_t memory, std::uint64_t page) {
  rlimit limit = {};
  largest_file_ = getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
  auto frames = static_cast<std::uint32_t>(std::min<std::uint64_t>(memory / page, 1U << 22));
  Places places(frames, page);
  // The limit on the size of files counts for the memory, too.
  while (places.total > largest_file_ && frames > fewest_frames) {
    frames = std::max(frames / 8 * 7, fewest_frames);
    places = Places(frames, page);
  }
  if (places.total > largest_file_) return EFBIG;
  memory_ = memfd_create("tailrace-run", MFD_CLOEXEC);
  // The head gets its memory before any process touches it: if memory were missing then, the kernel would
  // send SIGBUS.
  if (memory_ < 0 || ftruncate(memory_, static_cast<off_t>(places.total)) != 0 ||
      fallocate(memory_, 0, 0, static_cast<off_t>(places.bytes)) != 0)
    return errno;
  void* const base =
      mmap(nullptr, places.total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory_, 0);
  if (base == MAP_FAILED) return errno;
  arena_ = new (base) Arena();
  arena_->page_bytes = page;
  arena_->page_shift = static_cast<std::uint32_t>(std::countr_zero(page));
  arena_->frames = frames;
  arena_->bucket_mask = places.buckets - 1;
  arena_->buckets_at = places.buckets_at;
  arena_->frames_at = places.frames_at;
  arena_->bytes_at = places.bytes;
  arena_->total_bytes = places.total;
  me_ = holder_of(keeper_process, 0, static_cast<std::uint32_t>(getpid()));
  for (std::uint32_t bucket = 0; bucket < places.buckets; ++bucket)
    new (arena_->base() + places.buckets_at + bucket * sizeof(std::atomic<std::uint32_t>))
        std::atomic<std::uint32_t>(nobody);
  for (std::uint32_t number = 0; number < frames; ++number) new (&arena_->frame(number)) Frame();
  files_.resize(most_files);
  most_ = frames;
  return 0;
}

int KeptPages::open(int descriptor, const std::string& path, std::uint32_t& number) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return errno;
  const bool is_writable = (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDWR;
  number = arena_->find_file(status.st_dev, status.st_ino);
  if (number != nobody) {
    KeptFile& file = files_[number];
    if (is_writable && !file.is_writable) {
      std::swap(file.descriptor, descriptor);
      file.is_writable = true;
    }
    ::close(descriptor);
    return 0;
  }
  for (number = 0; number < most_files && arena_->files[number].is_open; ++number) continue;
  if (number == most_files) return ENFILE;
  files_[number] = {};
  KeptFile& file = files_[number];
  file.descriptor = descriptor;
  file.is_writable = is_writable;
  file.stored = status.st_size;
  file.is_dense = status.st_blocks * 512 >= status.st_size;
  file.path = path;
  File& shown = arena_->files[number];
  shown.device = status.st_dev;
  shown.inode = status.st_ino;
  shown.size.set(status.st_size);
  shown.changed_ns = 0;
  shown.is_open.store(true, std::memory_order_release);
  if (number >= arena_->files_used) arena_->files_used = number + 1;
  return 0;
}

int KeptPages::close(std::uint32_t number) {
  KeptFile& file = files_[number];
  // The pages of a removed file are stored, too: a program that is just beginning may have inherited it.
  int error = store(number);
  for (const std::uint32_t frame : frames_of(number, 0))
    if (unlink(frame)) free_.push_back(frame);
  if (error == 0) error = give_back_room(file, arena_->files[number].size);
  arena_->files[number].is_open.store(false, std::memory_order_release);
  // Some file systems, NFS among them, report only in close(2) that bytes did not fit.
  if (::close(file.descriptor) != 0 && error == 0) error = errno;
  file.descriptor = -1;
  return error;
}

/// Gives reserved room behind the file's end back to storage, by a cut at the end. The cut must not remove
/// bytes that a program outside of the group has written there, nor change the file's times.
int KeptPages::give_back_room(const KeptFile& file, std::int64_t size) {
  struct stat status = {};
  if (std::max(file.reserved, file.stored) <= size || fstat(file.descriptor, &status) != 0) return 0;
  // `stored` may be behind the end: a part of a killed program's append was stored, and is cut off.
  if (status.st_nlink == 0 || (status.st_size != size && status.st_size != file.stored)) return 0;
  if (ftruncate(file.descriptor, size) != 0) return errno;
  const timespec times[] = {status.st_atim, status.st_mtim};
  // Only the owner may set the times. For others the file keeps the time of the cut.
  (void)futimens(file.descriptor, times);
  return 0;
}

std::vector<std::uint32_t> KeptPages::frames_of(std::uint32_t file, std::uint64_t first_page) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t number = 0; number < made_; ++number) {
    const std::uint64_t key = arena_->frame(number).key;
    if (key != no_key && key >= key_of(file, first_page) && key >> key_shift == file) found.push_back(number);
  }
  std::sort(found.begin(), found.end(),
            [&](std::uint32_t a, std::uint32_t b) { return arena_->frame(a).key < arena_->frame(b).key; });
  return found;
}

int KeptPages::bring_in(std::uint32_t number, std::uint64_t page, Range wanted, bool is_written,
                        bool is_stuck) {
  if (wanted.from > wanted.to || wanted.to > arena_->page_bytes) return EINVAL;
  std::uint32_t frame = arena_->find(key_of(number, page));
  if (frame != nobody && is_stuck) {
    const int held = hold(frame);
    if (held == 0) let_go(frame);
    if (held != 0 && held != page_moved) return held;
    if (held == page_moved) frame = nobody;
  }
  const int error = frame == nobody ? bring_in_new(number, page, wanted, frame)
                                    : bring_in_more(number, page, wanted, frame);
  if (error != 0) return error;
  return make_room(files_[number], page, frame, is_written ? wanted.to : 0);
}

int KeptPages::bring_in_new(std::uint32_t file, std::uint64_t page, Range wanted, std::uint32_t& number) {
  const std::uint32_t fresh_from = made_;
  if (const int error = take_frame(number); error != 0) return error;
  const Range range = widened(file, page, wanted);
  if (const int error = load(files_[file], page, number, range, number >= fresh_from); error != 0) {
    free_.push_back(number);
    return error;
  }
  Frame& here = arena_->frame(number);
  here.loaded_from = range.from;
  here.loaded_to = range.to;
  here.changed_from = static_cast<std::uint32_t>(arena_->page_bytes);
  here.changed_to = 0;
  here.is_changed = false;
  here.reserved = files_[file].is_dense ? stored_of(files_[file], page) : 0;
  link(number, key_of(file, page));
  return 0;
}

/// Loads missing bytes of a page that has a frame, before its loaded bytes or behind them. Each time it loads
/// at least as many bytes as the page has already, so that a few calls of storage load the whole page.
int KeptPages::bring_in_more(std::uint32_t file, std::uint64_t page, Range wanted, std::uint32_t number) {
  Frame& here = arena_->frame(number);
  if (wanted.from >= here.loaded_from && wanted.to <= here.loaded_to) return 0;
  const std::uint32_t had = here.loaded_to - here.loaded_from;
  const std::uint32_t left = static_cast<std::uint32_t>(arena_->page_bytes) - here.loaded_to;
  if (wanted.from < here.loaded_from)
    wanted.from = std::min(wanted.from, here.loaded_from - std::min(here.loaded_from, had));
  if (wanted.to > here.loaded_to) wanted.to = std::max(wanted.to, here.loaded_to + std::min(left, had));
  const Range range = widened(file, page, wanted);
  // No program uses bytes that are not loaded, so the load needs no lock.
  const Range before = {range.from, here.loaded_from};
  const Range behind = {here.loaded_to, range.to};
  int error = before.from < before.to ? load(files_[file], page, number, before, false) : 0;
  if (error == 0 && behind.from < behind.to) error = load(files_[file], page, number, behind, false);
  if (error == 0) error = hold(number);
  if (error != 0) return error;
  here.loaded_from = std::min(here.loaded_from, range.from);
  here.loaded_to = std::max(here.loaded_to, range.to);
  let_go(number);
  return 0;
}

/// Returns which bytes of a page to load if a program wants the bytes in `wanted`. That is the whole page if
/// the end of the page before is loaded, since the program probably reads forward. Otherwise it is little
/// more than the wanted bytes, for programs that read pieces here and there.
KeptPages::Range KeptPages::widened(std::uint32_t file, std::uint64_t page, Range wanted) {
  constexpr std::uint32_t piece = 1U << 16;
  const auto all = static_cast<std::uint32_t>(arena_->page_bytes);
  const std::uint32_t before = page > 0 ? arena_->find(key_of(file, page - 1)) : nobody;
  if (before != nobody && arena_->frame(before).loaded_to == all) return {0, all};
  const std::uint32_t from = wanted.from / piece * piece;
  const bool is_last = all <= piece || wanted.to > all - piece;
  const std::uint32_t to = is_last ? all : (wanted.to + piece - 1) / piece * piece;
  // Behind the stored bytes there is nothing to load, so the rest of the page counts as loaded.
  const std::uint32_t there = stored_of(files_[file], page);
  return {there == 0 ? 0 : from, to >= there ? all : to};
}

/// Returns how many bytes of the page are on storage.
std::uint32_t KeptPages::stored_of(const KeptFile& file, std::uint64_t page) const {
  const std::int64_t begin = static_cast<std::int64_t>(page << arena_->page_shift);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(file.stored - begin, 0, static_cast<std::int64_t>(arena_->page_bytes)));
}

int KeptPages::load(const KeptFile& file, std::uint64_t page, std::uint32_t number, Range range,
                    bool is_fresh) {
  std::byte* const to = arena_->bytes_of(number);
  const std::int64_t begin = static_cast<std::int64_t>(page << arena_->page_shift);
  const std::uint32_t end = std::min(range.to, stored_of(file, page));
  std::uint32_t done = range.from;
  while (done < end) {
    const ssize_t got = pread(file.descriptor, to + done, end - done, begin + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<std::uint32_t>(got);
  }
  if (range.from < end) {
    ++traffic_.loads;
    traffic_.loaded_bytes += done - range.from;
  }
  if (!is_fresh) std::memset(to + done, 0, range.to - done);
  return 0;
}

/// Makes room on storage for the bytes of a page before `end`, and if it can for the whole page. So on a full
/// disk the program's write fails, and not the keeper's later store.
int KeptPages::make_room(KeptFile& file, std::uint64_t page, std::uint32_t number, std::uint32_t end) {
  Frame& frame = arena_->frame(number);
  if (end <= frame.reserved) return 0;
  const std::int64_t begin = static_cast<std::int64_t>(page << arena_->page_shift);
  if (static_cast<std::uint64_t>(begin) + end > largest_file_) return EFBIG;
  std::uint32_t room = static_cast<std::uint32_t>(arena_->page_bytes);
  if (file.can_reserve && fallocate(file.descriptor, FALLOC_FL_KEEP_SIZE, begin, room) != 0) {
    const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    if (!is_full) file.can_reserve = false;
    // There may be room for the bytes that are written now.
    room = is_full ? end : room;
    if (is_full && fallocate(file.descriptor, FALLOC_FL_KEEP_SIZE, begin, room) != 0) return errno;
  }
  if (file.can_reserve) file.reserved = std::max(file.reserved, begin + room);
  if (const int held = hold(number); held != 0) return held;
  frame.reserved = room;
  let_go(number);
  return 0;
}

void KeptPages::link(std::uint32_t number, std::uint64_t key) {
  Frame& frame = arena_->frame(number);
  std::atomic<std::uint32_t>& bucket = arena_->bucket_of(key);
  frame.is_used = true;
  frame.next.store(bucket, std::memory_order_release);
  frame.key.store(key, std::memory_order_release);
  bucket.store(number, std::memory_order_release);
}

/// Locks a frame. Returns 0, or page_moved if the frame's holder does not go on: then the page was stored and
/// taken out of the frame. Without `must_move` it may also return too_many_left, or the errno of a page that
/// could not be stored.
int KeptPages::hold(std::uint32_t number, bool must_move) {
  constexpr int longest = 50;  // waits of ProcessLock: a copy takes much less, also on a busy node
  Frame& frame = arena_->frame(number);
  Holding holding = Holding::goes_on;
  Holder holder = 0;
  const auto is_stuck = [&](Holder who, int waits) {
    holding = holding_of(*arena_, who);
    if (holding == Holding::goes_on && waits >= longest) holding = Holding::is_stopped;
    return holding != Holding::goes_on;
  };
  for (;;) {
    holding = Holding::goes_on;
    if (frame.lock.lock(me_, is_stuck, holder) == 0) return 0;
    if (holding == Holding::has_ended) {
      if (frame.lock.take_from(holder, me_)) return 0;
    } else if (holding == Holding::is_stopped) {
      const int error = leave(number, holder, must_move);
      if (error != goes_on) return error;
    } else {
      return page_moved;
    }
  }
}

void KeptPages::let_go(std::uint32_t number) { (void)arena_->frame(number).lock.unlock(me_); }

/// Stores the page of a frame whose holder does not go on, and takes it out of the frame. The frame then
/// stays with its holder until this has ended, or goes on and finds that it must copy once more. Returns
/// `goes_on` if the holder has gone on meanwhile, otherwise the same as hold() for page_moved and errors.
int KeptPages::leave(std::uint32_t number, Holder holder, bool must_move) {
  collect_left();
  if (left_.size() >= most_ / 2 && !must_move) return too_many_left;
  Frame& frame = arena_->frame(number);
  if (!frame.lock.leave_to(holder)) return goes_on;
  const std::uint64_t key = frame.key;
  const auto file = static_cast<std::uint32_t>(key >> key_shift);
  const std::int64_t page = static_cast<std::int64_t>((key - key_of(file, 0)) << arena_->page_shift);
  if (frame.is_changed && frame.changed_from < frame.changed_to) {
    std::vector<iovec> part = {
        {arena_->bytes_of(number) + frame.changed_from, frame.changed_to - frame.changed_from}};
    if (const int error = write_run(files_[file], page + frame.changed_from, part);
        error != 0 && !must_move) {
      frame.lock.take_back(holder);
      return error;
    }
  }
  take_out(number, key);
  left_.push_back(number);
  return page_moved;
}

/// Frees those of the left frames whose holders have gone on or ended.
void KeptPages::collect_left() {
  std::erase_if(left_, [&](std::uint32_t number) {
    ProcessLock& lock = arena_->frame(number).lock;
    const Holder holder = lock.holder();
    if (holder != 0 && holding_of(*arena_, holder) != Holding::has_ended) return false;
    if (holder != 0) lock.free_of(holder);
    free_.push_back(number);
    return true;
  });
}

/// Takes the page out of its frame. The caller has the frame's lock, or its holder does not go on.
void KeptPages::take_out(std::uint32_t number, std::uint64_t key) {
  Frame& frame = arena_->frame(number);
  frame.key.store(no_key, std::memory_order_release);
  std::atomic<std::uint32_t>* place = &arena_->bucket_of(key);
  while (*place != number) place = &arena_->frame(*place).next;
  place->store(frame.next, std::memory_order_release);
}

/// Takes the page out of its frame, and forgets its changes. Waits until a program that copies from or to the
/// frame has done so. Returns false if the program does not go on: the frame cannot have another page yet.
bool KeptPages::unlink(std::uint32_t number) {
  if (hold(number, true) != 0) return false;
  Frame& frame = arena_->frame(number);
  const std::uint64_t key = frame.key;
  frame.is_changed = false;
  take_out(number, key);
  let_go(number);
  return true;
}

int KeptPages::take_frame(std::uint32_t& number) {
  collect_left();
  if (free_.empty() && made_ < most_) return make_frame(number);
  if (!free_.empty()) {
    number = free_.back();
    free_.pop_back();
    return 0;
  }
  if (made_ == 0) return ENOMEM;
  int error = 0;
  // The first round takes a page that has not changed and was not used lately; rounds 2 and 3 also store
  // changed ones; round 4 takes any page.
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t step = 0; step < made_; ++step) {
      number = hand_;
      hand_ = (hand_ + 1) % made_;
      Frame& frame = arena_->frame(number);
      if (frame.key == no_key) continue;  // a left frame: its holder does not go on
      if (round < 3 && frame.is_used.exchange(false)) continue;
      if (frame.is_changed && round == 0) continue;
      if (frame.is_changed) {
        if (const int failed = store_around(number); failed != 0) {
          error = failed;
          continue;
        }
      }
      if (evict(number)) return 0;
    }
  }
  return error != 0 ? error : ENOMEM;
}

int KeptPages::make_frame(std::uint32_t& number) {
  const auto at = static_cast<off_t>(arena_->bytes_at + (std::uint64_t{made_} << arena_->page_shift));
  if (fallocate(memory_, 0, at, static_cast<off_t>(arena_->page_bytes)) != 0) {
    if (made_ == 0) return errno;
    most_ = made_;
    return take_frame(number);
  }
  number = made_++;
  return 0;
}

/// Takes an unchanged page out of its frame. Returns false if a program has written to the page meanwhile, or
/// if the frame could not be locked.
bool KeptPages::evict(std::uint32_t number) {
  if (arena_->frame(number).is_changed) return false;
  if (hold(number) != 0) return false;
  const Frame& frame = arena_->frame(number);
  const bool is_free = !frame.is_changed && frame.key != no_key;
  if (is_free) take_out(number, frame.key);
  let_go(number);
  return is_free;
}

/// Stores a page that has to make room, together with changed pages before and behind it.
int KeptPages::store_around(std::uint32_t number) {
  const std::uint64_t key = arena_->frame(number).key;
  const auto file = static_cast<std::uint32_t>(key >> key_shift);
  std::uint64_t page = key - key_of(file, 0);
  const std::uint64_t most = std::min<std::uint64_t>(largest_run >> arena_->page_shift, most_parts);
  for (std::uint64_t back = 1; back < most && page > 0; ++back) {
    const std::uint32_t before = arena_->find(key_of(file, page - 1));
    if (before == nobody || !arena_->frame(before).is_changed) break;
    --page;
  }
  const std::uint64_t asked = key - key_of(file, 0);
  int error = 0;
  while (error == 0 && page <= asked) error = store_run(file, page, page);
  return error;
}

/// Stores changed bytes from `page` on, as far as they follow one another without a gap. `next` becomes the
/// page behind them.
int KeptPages::store_run(std::uint32_t number, std::uint64_t page, std::uint64_t& next) {
  std::vector<std::uint32_t> locked;
  std::vector<iovec> parts;
  std::uint64_t bytes = 0;
  std::int64_t offset = 0;
  int error = 0;
  next = page;
  while (bytes < largest_run && parts.size() < most_parts) {
    const std::uint32_t found = arena_->find(key_of(number, next));
    if (found == nobody) break;
    Frame& frame = arena_->frame(found);
    if (const int held = hold(found); held != 0) {
      if (held != page_moved && locked.empty()) error = held < 0 ? EBUSY : held;
      break;  // with page_moved, leave() has stored this page by itself
    }
    const bool follows = locked.empty() || frame.changed_from == 0;
    if (!frame.is_changed || frame.changed_to <= frame.changed_from || !follows) {
      let_go(found);
      break;
    }
    if (locked.empty()) offset = static_cast<std::int64_t>(next << arena_->page_shift) + frame.changed_from;
    locked.push_back(found);
    parts.push_back({arena_->bytes_of(found) + frame.changed_from, frame.changed_to - frame.changed_from});
    bytes += parts.back().iov_len;
    ++next;
    if (frame.changed_to < arena_->page_bytes) break;
  }
  if (!parts.empty()) error = write_run(files_[number], offset, parts);
  for (const std::uint32_t each : locked) {
    Frame& frame = arena_->frame(each);
    if (error == 0) {
      frame.is_changed = false;
      frame.changed_from = static_cast<std::uint32_t>(arena_->page_bytes);
      frame.changed_to = 0;
    }
    let_go(each);
  }
  if (next == page) ++next;
  return error;
}

int KeptPages::write_run(KeptFile& file, std::int64_t offset, std::vector<iovec>& parts) {
  struct iovec* part = parts.data();
  auto left = static_cast<int>(parts.size());
  while (left > 0) {
    const ssize_t written = pwritev(file.descriptor, part, left, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;
    ++traffic_.stores;
    traffic_.stored_bytes += static_cast<std::uint64_t>(written);
    offset += written;
    file.stored = std::max(file.stored, offset);
    auto done = static_cast<std::size_t>(written);
    while (left > 0 && done >= part->iov_len) {
      done -= part->iov_len;
      ++part;
      --left;
    }
    if (left > 0) {
      part->iov_base = static_cast<std::byte*>(part->iov_base) + done;
      part->iov_len -= done;
    }
  }
  return 0;
}

int KeptPages::store(std::uint32_t number) {
  int error = 0;
  std::uint64_t next = 0;
  for (const std::uint32_t each : frames_of(number, 0)) {
    const std::uint64_t key = arena_->frame(each).key;
    const std::uint64_t page = key - key_of(number, 0);
    if (key == no_key || !arena_->frame(each).is_changed || page < next) continue;
    const int failed = store_run(number, page, next);
    if (error == 0) error = failed;
  }
  return error;
}

int KeptPages::sync(std::uint32_t number) {
  if (const int error = store(number); error != 0) return error;
  ++traffic_.syncs;
  return fsync(files_[number].descriptor) == 0 ? 0 : errno;
}

int KeptPages::cut(std::uint32_t number, std::int64_t size) {
  KeptFile& file = files_[number];
  const std::uint64_t keep = static_cast<std::uint64_t>(size) >> arena_->page_shift;
  const auto rest = static_cast<std::uint32_t>(static_cast<std::uint64_t>(size) & (arena_->page_bytes - 1));
  // All these frames are locked at once: no program can write behind the new size before the bytes there are
  // cleared.
  std::vector<std::uint32_t> frames;
  int error = 0;
  for (const std::uint32_t each : frames_of(number, keep)) {
    const int held = hold(each);
    if (held == 0) frames.push_back(each);
    if (held != 0 && held != page_moved) error = held < 0 ? EBUSY : held;
  }
  if (error == 0 && ftruncate(file.descriptor, size) != 0) error = errno;
  if (error == 0) {
    file.reserved = std::min(file.reserved, size);
    file.stored = size;
    file.is_dense = false;  // bytes by which the file has become longer are a hole
    arena_->files[number].size.set(size);
    for (const std::uint32_t each : frames)
      clear_from(each, arena_->frame(each).key == key_of(number, keep) ? rest : 0);
  }
  for (const std::uint32_t each : frames) let_go(each);
  return error;
}

/// Clears the bytes of a locked page from `end` on, which do not belong to the file any more.
void KeptPages::clear_from(std::uint32_t number, std::uint32_t end) {
  Frame& frame = arena_->frame(number);
  std::memset(arena_->bytes_of(number) + end, 0, arena_->page_bytes - end);
  frame.changed_to = std::min(frame.changed_to, end);
  frame.reserved = std::min(frame.reserved, end);
  if (frame.changed_to > frame.changed_from) return;
  frame.is_changed = false;
  frame.changed_from = static_cast<std::uint32_t>(arena_->page_bytes);
  frame.changed_to = 0;
}

int KeptPages::reserve(std::uint32_t number, std::int64_t from, std::int64_t to) {
  KeptFile& file = files_[number];
  const int error = posix_fallocate(file.descriptor, from, to - from);
  if (error != 0) return error;
  file.stored = std::max(file.stored, to);
  arena_->files[number].size.raise(to);
  return 0;
}

}  // namespace tailrace::run
