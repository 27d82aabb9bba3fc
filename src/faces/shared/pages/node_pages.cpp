// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/pages/node_pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::shared {

namespace {

constexpr Bytes system_page = 4096;
constexpr Bytes round_up(Bytes bytes) { return (bytes + system_page - 1) / system_page * system_page; }

/// store_changed() stores pages that follow one another in calls of at most this size.
constexpr Bytes largest_run = Bytes{16} << 20;

/// The size of a run that is stored ahead: large enough for storage to be fast, and small enough that a flush
/// finds little left to store.
constexpr Bytes ahead_run = Bytes{4} << 20;
/// Smaller runs than this are not stored ahead.
constexpr Bytes least_ahead = Bytes{1} << 20;

/// A rank stores at most so many bytes in one call to make room for a server.
constexpr Bytes most_for_others = Bytes{1} << 20;

/// Returns the nanoseconds that a page takes at most to load from storage as fast as memory: 0.5 a byte (2
/// GB/s), and 50,000 for the system call.
constexpr std::int64_t slow_load(Bytes page) { return page / 2 + 50'000; }

Status no_room() {
  return {Code::memory, "no page of this node can make room for another one before it is stored", EAGAIN};
}

/// Returns how many pages that follow one another in the file are stored ahead together. With several nodes
/// that is one page, since the next pages of the file belong to other nodes.
Index pages_stored_ahead(const NodePages::Plan& plan) {
  const Index pages = plan.deal == nullptr ? std::max<Index>(ahead_run / plan.page, 1) : 1;
  return pages * plan.page >= least_ahead ? pages : 0;
}

}  // namespace

Status NodePages::would_wait() {
  return {Code::memory, "a page of this node is not there at this moment", EAGAIN};
}

/// Returns the Hold of a user for one call. Threads of User::service share one Hold, and on a server several:
/// a thread waits until one is free.
Seat NodePages::seat_of(User user, FrameNumber mark) {
  Hold* const mine = &hold_of(user);
  if (user != User::service) return Seat(user, mark, *mine, {});
  // A server's holds are the last ones.
  for (std::size_t i = 0; !stores_ && i < services_.size(); ++i) {
    std::unique_lock alone(services_[i], std::try_to_lock);
    if (alone) return Seat(user, mark, mine[i], std::move(alone));
  }
  return Seat(user, mark, *mine, std::unique_lock(services_.front()));
}

Result<std::unique_ptr<NodePages>> NodePages::create(comm::Line& node, const Plan& plan, bool huge_pages,
                                                     node::Budget& budget, Disk disk) {
  std::unique_ptr<NodePages> pages(new NodePages(node.board().transport(), plan, budget, std::move(disk)));
  TR_TRY(pages->make(node, huge_pages));
  return pages;
}

Result<std::unique_ptr<NodePages>> NodePages::attach(comm::Transport& transport, const Plan& plan, int ranks,
                                                     node::Budget& budget, Disk disk,
                                                     std::unique_ptr<node::NodeMemory> memory) {
  std::unique_ptr<NodePages> pages(new NodePages(transport, plan, budget, std::move(disk)));
  pages->me_ = pages->ranks_ = ranks;  // its holds are behind those of the ranks
  pages->stores_ = false;
  pages->lay_out();
  if (memory->size() < pages->head_bytes_ + static_cast<Bytes>(pages->frames_) * plan.page)
    return Status(Code::argument, "the memory of a shared file was handed over with another one's plan");
  pages->memory_ = std::move(memory);
  pages->base_ = pages->memory_->part(0);
  pages->touched_.assign(pages->frames_, 0);
  return pages;
}

Bytes NodePages::end_serving(bool has_heir) {
  end_wanting_room();
  return has_heir ? drawn_.bequeath() : 0;
}

void NodePages::lay_out() {
  page_shift_ = std::countr_zero(static_cast<std::uint64_t>(plan_.page));
  least_ = static_cast<FrameNumber>(frames_of_rank * ranks_);
  const Bytes most = std::min<Bytes>(plan_.memory >> page_shift_, nobody / 4);
  frames_ = std::max(static_cast<FrameNumber>(most), least_);
  bucket_mask_ = std::bit_ceil(frames_) * 2 - 1;
  head_bytes_ = head_bytes();
  run_ = pages_stored_ahead(plan_);
}

Status NodePages::make(comm::Line& node, bool huge_pages) {
  me_ = node.rank();
  ranks_ = node.size();
  lay_out();
  const Status ready = guarded([&] {
    touched_.assign(frames_, 0);
    return drawn_.take(frames_of_rank * plan_.page + (me_ == 0 ? head_bytes_ : 0));
  });
  std::vector<Bytes> parts(static_cast<std::size_t>(ranks_), 0);
  parts.front() = head_bytes_ + static_cast<Bytes>(frames_) * plan_.page;
  Result<std::unique_ptr<node::NodeMemory>> memory =
      node::NodeMemory::create(node, parts, huge_pages, head_bytes_, ready, node::NodeMemory::Growth::by_any);
  TR_TRY(memory.status());
  memory_ = std::move(*memory);
  base_ = memory_->part(0);
  if (me_ == 0) {
    Head& all = *new (base_) Head();
    all.most = frames_;
    all.reused_from = frames_made_first();
    for (Index i = 0; i < holds(); ++i) new (first_hold() + i) Hold();
    for (std::uint32_t number = 0; number <= bucket_mask_; ++number)
      new (&bucket(number)) std::atomic<FrameNumber>(nobody);
    for (FrameNumber number = 0; number < frames_; ++number) new (&frame(number)) Frame();
  }
  // No rank may use the head before the first rank has made it.
  return node.agree({{}, "the pages of a shared file", {}}).status;
}

void NodePages::begin_again(Disk disk) {
  disk_ = std::move(disk);
  start_ = nullptr;
  help_ = nullptr;
  known_ = {};
  reading_ = writing_ = {};
  if (me_ != 0) return;
  Head& all = head();
  set_size(0);
  all.stored = 0;
  all.stored_since = false;
  all.wants_room = false;
  all.room_error = 0;
  all.hand = 0;
  all.first_free = nobody;
  all.free = 0;
  all.lost = 0;
  all.offered_count = 0;
  all.is_storing = false;
  all.written_again = 0;
  all.stays_behind = false;
  all.most = frames_;
  all.load_took = 0;
  forget_gone();
  for (FrameNumber number = 0; number < all.made; ++number)
    if (const Index page = frame(number).page; page >= 0) bucket_of(page) = nobody;
  const auto free = [&](bool has_memory) {
    for (FrameNumber number = all.made; number-- > 0;) {
      Frame& each = frame(number);
      if (each.has_memory != has_memory) continue;
      each.page = no_page;
      each.changed = false;
      each.use = unused;
      push_free(number);
    }
  };
  free(false);  // frames without memory are taken last: the node may have memory for them by then
  free(true);
}

// The shared memory begins with the head. The Holds of each rank and of a server follow, then the buckets,
// the Frames, and the frames' memory.

Bytes NodePages::head_bytes() const {
  return round_up(static_cast<Bytes>(sizeof(Head)) + holds() * static_cast<Bytes>(sizeof(Hold)) +
                  (Bytes{bucket_mask_} + 1) * static_cast<Bytes>(sizeof(std::atomic<FrameNumber>)) +
                  Bytes{frames_} * static_cast<Bytes>(sizeof(Frame)) + Bytes{alignof(Frame)});
}

std::atomic<FrameNumber>& NodePages::bucket(std::uint64_t number) const {
  return reinterpret_cast<std::atomic<FrameNumber>*>(first_hold() + holds())[number];
}

Frame& NodePages::frame(FrameNumber number) const {
  auto* const behind_buckets =
      reinterpret_cast<std::byte*>(first_hold() + holds()) +
      (Bytes{bucket_mask_} + 1) * static_cast<Bytes>(sizeof(std::atomic<FrameNumber>));
  const auto address = reinterpret_cast<std::uintptr_t>(behind_buckets);
  const std::uintptr_t aligned = (address + alignof(Frame) - 1) / alignof(Frame) * alignof(Frame);
  return reinterpret_cast<Frame*>(aligned)[number];
}

Bytes NodePages::size() const {
  Bytes size = least_size();
  for (int rank = 0; rank < ranks_; ++rank) size = std::max(size, hold_of(User::program, rank).end.load());
  return size;
}

void NodePages::set_size(Bytes size) {
  head().size = size;
  for (int rank = 0; rank < ranks_; ++rank) hold_of(User::program, rank).end = 0;
}

/// Each rank writes the end of its own writes to its own cache line, and raises the common size once a page.
/// With a common size alone, the cache line of the size would go from core to core for each piece that ranks
/// append in turn.
void NodePages::raise_size_for_write(Bytes end) {
  std::atomic<Bytes>& mine = hold_of(User::program).end;
  const Bytes known = least_size();
  if (end <= known || end <= mine.load(std::memory_order_relaxed)) return;
  mine.store(end, std::memory_order_release);
  if (end - known > plan_.page) raise_size(end);
}

void NodePages::raise_size(Bytes size) {
  std::atomic<Bytes>& now = head().size;
  for (Bytes before = now.load(std::memory_order_relaxed);
       before < size && !now.compare_exchange_weak(before, size);)
    continue;
}

Result<Bytes> NodePages::add_to_size(Bytes bytes) {
  std::atomic<Bytes>& now = head().size;
  Bytes known = now;
  Bytes before = 0;
  Bytes after = 0;
  do {
    before = std::max(known, size());
    if (__builtin_add_overflow(before, bytes, &after) || after > Definition::most_size) {
      return Status(Code::argument, cat(counted(bytes, "byte"), " behind byte ", before,
                                        " end behind the last byte that a file can have"));
    }
  } while (!now.compare_exchange_weak(known, after));
  return before;
}

/// Returns the frame that has the page, if any. Takes no lock: a chain may change meanwhile, and the search
/// may miss the page. A caller that changes anything searches again under the directory's lock.
std::optional<FrameNumber> NodePages::find(Index page) const {
  FrameNumber number = bucket_of(page).load(std::memory_order_acquire);
  for (FrameNumber steps = 0; number != nobody && steps < frames_; ++steps) {
    const Frame& here = frame(number);
    if (here.page.load(std::memory_order_acquire) == page) return number;
    number = here.next.load(std::memory_order_acquire);
  }
  return std::nullopt;
}

/// Returns the frame that has the page, or into which the page is coming, or `nobody`. The caller has the
/// directory's lock.
FrameNumber NodePages::find_in_chain(Index page) const {
  for (FrameNumber number = bucket_of(page); number != nobody; number = frame(number).next) {
    const Index there = frame(number).page;  // read once: it changes when the page has come
    if (there == page || there == coming(page)) return number;
  }
  return nobody;
}

/// Puts the frame into the chain of the page's bucket. The caller has the locks of the directory and the
/// frame.
void NodePages::link(FrameNumber number, Index page) {
  frame(number).written = 0;
  frame(number).read = 0;
  count_page();
  note_return(number, page);
  std::atomic<FrameNumber>& first = bucket_of(page);
  frame(number).next = first.load();
  first = number;
}

/// Takes the frame out of the chain of the page's bucket. The caller has the directory's lock.
void NodePages::unlink(FrameNumber number, Index page) {
  std::atomic<FrameNumber>* link = &bucket_of(page);
  while (*link != number) link = &frame(*link).next;
  *link = frame(number).next.load();
}

/// True if any user holds the frame. A caller that has locked the frame calls this or are_strips_written()
/// before it looks at `changed`: a writer of strips sets `changed` before its hold ends.
bool NodePages::is_held(FrameNumber number) const {
  const std::span all(first_hold(), static_cast<std::size_t>(holds()));
  return std::ranges::any_of(all, [number](const Hold& each) {
    const FrameNumber held = each.frame.load();
    return held == number || held == (number | writes_strips);
  });
}

/// Holds the frame if it still has the page. This function stores to the Hold and then loads the frame's
/// page; take_out() stores to the page and then loads the Holds. All four are sequentially consistent, so at
/// least one of two ranks sees the other.
bool NodePages::try_hold(FrameNumber number, Index page, Seat& seat) const {
  seat.take(number);
  if (frame(number).page.load() == page) return true;
  seat.leave();
  return false;
}

/// Finds the page, or brings it in, and holds its frame. Looks first in the frame where this thread has last
/// found the page. `whole` is what the caller will write if it writes the whole page, which then need not be
/// loaded; otherwise it is empty.
Result<Held> NodePages::hold(Index page, std::span<const std::byte> whole, Seat& seat) {
  const User user = seat.user();
  const auto place = static_cast<std::size_t>(near_number(page)) % known_.front().size();
  Known* const known = user == User::service ? nullptr : &known_[user == User::program ? 0 : 1][place];
  if (known != nullptr && known->page == page && try_hold(known->frame, page, seat)) {
    if (room_is_for_ == page) end_wanting_room();
    return Held{known->frame};
  }
  for (int tries = 1;; ++tries) {
    Held held;
    if (const std::optional<FrameNumber> found = find(page); found && try_hold(*found, page, seat)) {
      held.frame = *found;
    } else if (!may_wait(user)) {
      return would_wait();
    } else {
      Result<Held> brought = bring_in(page, whole, seat);
      TR_TRY(brought.status());
      held = *brought;
    }
    if (held.frame == nobody) {
      if (user == User::program && help_ != nullptr && help_()) continue;
      node::SharedLock::wait_for_page(tries, transport_);
      continue;
    }
    if (known != nullptr) {
      *known = {page, held.frame};
      seat.take_without_mark(held.frame);
      touch(held.frame);
      seat.take(held.frame);
    }
    if (room_is_for_ == page) end_wanting_room();  // also if another thread has brought the page in
    return held;
  }
}

bool NodePages::is_storage_fast() const {
  const std::int64_t took = head().load_took.load(std::memory_order_relaxed);
  return plan_.page >= small_page && took > 0 && took <= slow_load(plan_.page);
}

/// Makes this process's page tables of a frame: one call costs less than a fault for each of the system's
/// pages.
void NodePages::touch(FrameNumber number) {
  const std::atomic_ref touched(touched_[number]);  // the program and the progress engine may both be here
  if (touched.exchange(1, std::memory_order_relaxed) != 0) return;
  ::madvise(memory_of(number), static_cast<std::size_t>(plan_.page), MADV_POPULATE_WRITE);
}

/// Brings the page in. Returns its frame, held, or `nobody` if the caller is to look for the page again.
Result<Held> NodePages::bring_in(Index page, std::span<const std::byte> whole, Seat& seat) {
  {
    const node::Locked directory(head().directory, transport_);
    if (find_in_chain(page) != nobody) return Held{};  // another rank has brought it in, or is about to
  }
  const Result<Room> room = find_room();
  if (!stores_) {
    if (room.is_ok() || !is_for_later(room.status()))
      end_wanting_room();
    else
      room_is_for_ = page;
  }
  TR_TRY(room.status());
  if (room->frame == nobody) return Held{};
  Frame& into = frame(room->frame);
  {
    const node::Locked directory(head().directory, transport_);
    if (find_in_chain(page) != nobody) {
      // Another one was faster.
      free_frame(room->frame);
      return Held{};
    }
    into.page = coming(page);
    link(room->frame, page);
  }
  const Status filled = guarded([&] { return fill(room->frame, page, whole); });
  if (!filled.is_ok()) {
    TR_TRY(give_up(room->frame, page, filled));
    return Held{};
  }
  seat.take(room->frame);
  publish(room->frame, page, !whole.empty(), head().era);
  return Held{room->frame, !whole.empty()};
}

/// Ends bringing in a page: from now on ranks may use it in its frame. The caller has locked the frame, and
/// this unlocks it.
void NodePages::publish(FrameNumber number, Index page, bool is_changed, Era use) {
  Frame& into = frame(number);
  into.use = use;
  into.changed = is_changed;
  into.page.store(page);
  into.lock.unlock();
}

/// Takes memory of the node for a frame that has none yet. The caller has the frame's lock.
Status NodePages::give_memory(FrameNumber number) {
  Frame& into = frame(number);
  if (into.has_memory) return {};
  const std::int64_t begin = transport_.now();
  TR_TRY(memory_->add(memory_of(number), plan_.page));
  std::atomic<std::int64_t>& took = head().fresh_took;
  took = (3 * took + transport_.now() - begin) / 4;
  into.has_memory = true;
  into.is_zero = true;
  return {};
}

/// Puts the page's bytes into its frame: `whole` if that is not empty, or else those on storage. The caller
/// has the frame's lock.
Status NodePages::fill(FrameNumber number, Index page, std::span<const std::byte> whole) {
  Frame& into = frame(number);
  const std::span memory(memory_of(number), static_cast<std::size_t>(plan_.page));
  TR_TRY(give_memory(number));
  const bool was_zero = std::exchange(into.is_zero, false);
  into.written = std::ssize(whole);
  into.filler = me_;
  if (!whole.empty()) {
    std::memcpy(memory.data(), whole.data(), whole.size());
    into.filled = plan_.page;
    return {};
  }
  // The read ends at the file's end. A read beyond it would cost a further call that returns 0 bytes.
  const Bytes there = std::clamp<Bytes>(head().stored - (page << page_shift_), 0, plan_.page);
  into.filled = was_zero ? plan_.page : there;
  return there == 0 ? Status() : load(memory.first(static_cast<std::size_t>(there)), page << page_shift_);
}

/// Loads a page that a rank waits for, and notes how long the load took.
Status NodePages::load(std::span<std::byte> memory, Bytes offset) {
  const std::int64_t begin = transport_.now();
  TR_TRY(disk_.load(memory, offset));
  if (std::ssize(memory) < plan_.page) return {};
  const std::int64_t took = std::max<std::int64_t>(transport_.now() - begin, 1);
  // A load also takes long if the rank loses its core meanwhile. So one load raises the noted time by at most
  // a quarter.
  std::atomic<std::int64_t>& lately = head().load_took;
  const std::int64_t before = lately.load(std::memory_order_relaxed);
  lately.store(before == 0 ? took : std::min(took, before + before / 4 + 1), std::memory_order_relaxed);
  return {};
}

/// Writes zeros to the memory from `filled` to `end`, where the page's bytes are zeros. The caller has the
/// frame's lock.
void NodePages::fill_up_to(FrameNumber number, Bytes end) {
  Frame& here = frame(number);
  const Bytes filled = here.filled.load(std::memory_order_relaxed);
  if (filled >= end) return;
  std::memset(memory_of(number) + filled, 0, static_cast<std::size_t>(end - filled));
  here.filled.store(end, std::memory_order_release);
}

/// Frees the frame, which the caller has locked, after its page could not be brought in. Returns `why`; or
/// success if the node only lacks memory for one more frame, since another try finds another frame.
Status NodePages::give_up(FrameNumber number, Index page, const Status& why) {
  const node::Locked directory(head().directory, transport_);
  Head& all = head();
  Frame& from = frame(number);
  unlink(number, page);
  from.page = no_page;
  const bool is_lost = !from.has_memory && all.made - all.lost > least_;
  if (is_lost) {
    ++all.lost;
    all.most = all.made;
  } else {
    push_free(number);
  }
  from.lock.unlock();
  return is_lost ? Status() : why;
}

/// Returns a locked frame without a page. Waits and stores a page if need be. Returns `nobody` if after some
/// time no frame was to be had: the caller then looks whether another rank has brought the page in.
Result<Room> NodePages::find_room() {
  std::int64_t until = 0;  // when this call stops waiting for a frame to use again; 0: it has not waited
  for (int tries = 1;; ++tries) {
    Room room;
    bool waits = false;
    {
      const node::Locked directory(head().directory, transport_);
      Head& all = head();
      room.frame = take_used_once(until != 0);
      if (room.frame != nobody) return room;
      waits = waits_for_frame(until);
      if (!waits && all.first_free != nobody) {
        room.frame = pop_free();
        frame(room.frame).lock.lock(transport_);  // the rank that has freed the frame unlocks it at once
        return room;
      }
      if (!waits && all.made < all.most && (all.made < least_ || drawn_.take(plan_.page).is_ok())) {
        room.frame = all.made++;
        frame(room.frame).lock.lock(transport_);
        return room;
      }
      if (!waits) room = take_from_others();
    }
    if (waits) {
      node::SharedLock::wait_for_page(tries, transport_);
      continue;
    }
    if (room.frame != nobody && !room.is_to_store) return room;
    if (room.is_to_store && !stores_) {
      frame(room.frame).lock.unlock();
      // If no request waits for room, the error belongs to an earlier request, whose page has come otherwise.
      if (const int error = head().room_error.exchange(0); error != 0 && room_is_for_ != no_page)
        return io_error("make room by storing", "a page of a shared file", error);
      head().wants_room = true;
      return no_room();
    }
    if (room.is_to_store) {
      const Status stored = guarded([&] { return store(room.frame); });
      frame(room.frame).lock.unlock();
      TR_TRY(stored);
      tries = 0;
      continue;
    }
    // All frames are in use at this moment. One will be free soon, or another rank brings in this page.
    node::SharedLock::wait_a_little(tries, transport_);
    if (tries > 64) return Room{};
  }
}

/// Notes that no request waits for room any more, as far as this server knows. A request that still does so
/// asks again.
void NodePages::end_wanting_room() {
  room_is_for_ = no_page;
  head().wants_room = false;
  head().room_error = 0;
}

/// Adds a frame to the free ones. The caller of this and of pop_free() has the directory's lock.
void NodePages::push_free(FrameNumber number) {
  frame(number).next = head().first_free;
  head().first_free = number;
  ++head().free;
}

FrameNumber NodePages::pop_free() {
  const FrameNumber number = head().first_free;
  head().first_free = frame(number).next;
  --head().free;
  return number;
}

/// Frees the frame, and unlocks it. The caller has the locks of the directory and the frame.
void NodePages::free_frame(FrameNumber number) {
  push_free(number);
  frame(number).lock.unlock();
}

bool NodePages::is_for_later(const Status& failure) {
  return failure.code() == Code::memory && failure.error_number() == EAGAIN;
}

bool NodePages::make_room() {
  const Index most = std::clamp<Index>(most_for_others >> page_shift_, 1, std::max<Index>(most_ahead(), 1));
  Index stored = 0;
  bool has_room = false;
  Status failed;
  while (is_room_wanted() && stored < most && failed.is_ok()) {
    Room room;
    {
      const node::Locked directory(head().directory, transport_);
      has_room = has_room || head().first_free != nobody;
      if (!has_room || stored > 0) room = take_from_others();
      if (room.frame != nobody && !room.is_to_store) {
        free_frame(room.frame);
        has_room = true;
      }
    }
    if (!room.is_to_store) break;
    failed = guarded([&] { return store(room.frame); });
    ++stored;
    free_stored(room.frame, failed.is_ok());
    has_room = has_room || failed.is_ok();
  }
  if (!failed.is_ok()) head().room_error = failed.error_number() != 0 ? failed.error_number() : EIO;
  // If ranks take the free frame before the server does, the server asks again.
  if (has_room || !failed.is_ok()) head().wants_room = false;
  return stored > 0;
}

/// Takes the page out of its frame, and frees the frame, unless the page was not stored, has changed again or
/// is held. The caller has the frame's lock, and this gives it up.
void NodePages::free_stored(FrameNumber number, bool is_stored) {
  const node::Locked directory(head().directory, transport_);
  Frame& from = frame(number);
  if (is_stored && !from.changed && take_out(number, from.page))
    free_frame(number);
  else
    from.lock.unlock();
}

/// Takes the page out of its frame. The caller has the locks of the directory and the frame. Returns false,
/// and leaves the page there, if a user holds the frame.
bool NodePages::take_out(FrameNumber number, Index page) {
  Frame& from = frame(number);
  from.page.store(no_page);
  if (is_held(number)) {
    from.page.store(page);
    return false;
  }
  unlink(number, page);
  return true;
}

/// Returns a frame for another page, or one whose page must be stored first. The hand goes round the frames,
/// at most twice, until it finds a page that no user holds, that has not changed, and that was not used since
/// the hand passed it last. This page is taken out of its frame. If there is none, returns the first changed
/// page on the way, to be stored. After one round it also returns the changed page if less than a quarter of
/// the pages are unchanged: otherwise these few would take each other's frames, and all changed pages would
/// stay. The caller has the directory's lock.
Room NodePages::take_from_others() {
  Head& all = head();
  Room to_store;
  FrameNumber unchanged = 0;
  for (FrameNumber steps = 0; steps < 2 * all.made; ++steps) {
    if (steps == all.made && to_store.frame != nobody && unchanged < all.made / 4) break;
    const FrameNumber number = all.hand;
    all.hand = (all.hand + 1) % all.made;
    Frame& from = frame(number);
    if (number == to_store.frame || !from.lock.try_lock()) continue;
    const Index page = from.page;
    if (page >= 0 && !from.changed) ++unchanged;
    if (page < 0 || from.use.exchange(unused) != unused || is_held(number)) {
      from.lock.unlock();
      continue;
    }
    if (from.changed) {
      if (to_store.frame == nobody)
        to_store = {number, true};  // the frame stays locked
      else
        from.lock.unlock();
      continue;
    }
    if (!take_out(number, page)) {
      from.lock.unlock();
      continue;
    }
    if (to_store.frame != nobody) frame(to_store.frame).lock.unlock();
    return {number, false};
  }
  return to_store;
}

/// Stores a frame's page. The caller has the frame's lock.
Status NodePages::store(FrameNumber number) {
  const std::pair<Index, FrameNumber> one[] = {{frame(number).page, number}};
  return store_run(one);
}

/// Stores pages that follow one another in the file, up to the file's end. The caller has locked their
/// frames, or no rank writes meanwhile.
Status NodePages::store_run(std::span<const std::pair<Index, FrameNumber>> run) {
  const Bytes begin = run.front().first << page_shift_;
  const Bytes end = size();
  std::vector<std::span<const std::byte>> parts;
  Bytes at = begin;
  for (const auto& [page, number] : run) {
    const Bytes length = std::min(plan_.page, end - at);
    if (length <= 0) break;
    fill_up_to(number, length);
    parts.emplace_back(memory_of(number), static_cast<std::size_t>(length));
    at += length;
  }
  if (!parts.empty()) TR_TRY(disk_.store(parts, begin));
  std::atomic<Bytes>& stored = head().stored;
  for (Bytes before = stored; before < at && !stored.compare_exchange_weak(before, at);) continue;
  head().stored_since = true;
  for (const auto& [page, number] : run) {
    frame(number).changed = false;
    frame(number).written = 0;
  }
  return {};
}

Status NodePages::read(Index page, Bytes from, std::span<std::byte> bytes, User user) {
  Seat seat = seat_of(user);
  const Result<Held> held = hold(page, {}, seat);
  TR_TRY(held.status());
  Frame& here = frame(held->frame);
  const Bytes end = from + std::ssize(bytes);
  if (here.filled.load(std::memory_order_acquire) < end) {
    TR_TRY(lock(here.lock, user));
    const node::Locked locked(here.lock, std::adopt_lock);
    fill_up_to(held->frame, end);
  }
  std::memcpy(bytes.data(), memory_of(held->frame) + from, bytes.size());
  if (user == User::program) count_read(held->frame, page, std::ssize(bytes));
  here.note_use(head().era.load(std::memory_order_relaxed));
  return {};
}

Status NodePages::store_changed(int share, int shares) {
  // Shares go by the pages' numbers, not by a count of changed pages: ranks store at the same time, and each
  // sees some pages of the others as changed and some as stored.
  const auto most = static_cast<std::size_t>(std::max<Bytes>(largest_run >> page_shift_, 1));
  const auto is_mine = [&](Index page) {
    return static_cast<int>(page / static_cast<Index>(most) % shares) == share;
  };
  std::vector<std::pair<Index, FrameNumber>> changed;
  if (share == 0) ++head().next_flush;
  for (FrameNumber number = 0; number < head().made; ++number) {
    Frame& each = frame(number);
    if (share == 0) each.is_stored_ahead = false;
    if (each.page >= 0 && is_mine(each.page) && each.changed) changed.emplace_back(each.page, number);
  }
  std::ranges::sort(changed);
  Status first;
  for (std::size_t at = 0; at < changed.size();) {
    std::size_t end = at + 1;
    while (end < changed.size() && end - at < most && changed[end].first == changed[end - 1].first + 1) ++end;
    first = first_cause(first, store_run(std::span(changed).subspan(at, end - at)));
    at = end;
  }
  if (first.is_ok()) head().room_error = 0;
  return first;
}

void NodePages::cut(Bytes size) {
  const node::Locked directory(head().directory, transport_);
  for (FrameNumber number = 0; number < head().made; ++number) {
    Frame& each = frame(number);
    const Index page = each.page;
    if (page < size >> page_shift_) continue;  // also a frame without a page
    const Bytes keep = std::max<Bytes>(size - (page << page_shift_), 0);
    each.filled = std::min<Bytes>(each.filled, keep);
    each.written = 0;
    if (keep == 0) each.changed = false;
  }
  set_size(size);
  head().stored = std::min<Bytes>(head().stored, size);
}

}  // namespace tailrace::shared
