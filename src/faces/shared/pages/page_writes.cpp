// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Ranks often write to one page in turn, each its own pieces. With one lock for the page, the lock's cache
// line would go from core to core for each piece, which takes longer than copying 1 KiB. So a rank that
// writes a small piece locks only the strips in which the piece lies.
//
// A writer of strips first sets the mark `writes_strips` in its Hold, and then looks at the frame's lock: if
// the frame is locked, it removes the mark and waits. A thread that needs the page for itself, to store it or
// to write a large piece, first locks the frame, and then waits until no Hold has the mark.
#include <algorithm>
#include <cstring>

#include "faces/shared/pages/node_pages.hpp"

namespace tailrace::shared {

namespace {

/// A rank that writes a small piece behind bytes that another rank has filled moves Frame::filled to a
/// multiple of this. So the ranks do not lock the frame for each piece.
constexpr Bytes filled_at_once = Bytes{64} << 10;

/// The numbers of the locks for the strips in which a piece lies, in ascending order. All writers take the
/// locks in this order, so that no two wait for each other.
class StripsOf {
 public:
  StripsOf(FrameNumber number, Bytes from, Bytes bytes)
      : count_(static_cast<int>((from + bytes - 1) / strip - from / strip) + 1),
        first_(static_cast<int>((from / strip + first_strip_lock(number)) % strip_locks)),
        wrapped_(std::max(first_ + count_ - strip_locks, 0)) {}
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] std::size_t lock(int i) const {
    return static_cast<std::size_t>(i < wrapped_ ? i : first_ + i - wrapped_);
  }

 private:
  const int count_, first_, wrapped_;
};

}  // namespace

/// Takes a lock of a frame or strip. Other users mostly have it only for a copy, but a rank that stores a
/// page has the frame's lock until the page is stored. So a user that may not wait for storage fails if it
/// does not get the lock soon.
Status NodePages::lock(node::SharedLock& lock, User user) {
  if (lock.try_lock()) return {};
  if (!may_wait(user)) return lock.lock_soon() ? Status() : would_wait();
  lock.lock(transport_);
  return {};
}

bool NodePages::are_strips_written(FrameNumber number) const {
  const std::span all(first_hold(), static_cast<std::size_t>(holds()));
  return std::ranges::any_of(
      all, [number](const Hold& each) { return each.frame.load() == (number | writes_strips); });
}

Status NodePages::wait_for_writers(FrameNumber number, User user) {
  for (int tries = 1; are_strips_written(number); ++tries) {
    if (!may_wait(user) && node::SharedLock::is_soon_over(tries)) return would_wait();
    node::SharedLock::wait_a_little(tries, transport_);
  }
  return {};
}

Status NodePages::write(Index page, Bytes from, std::span<const std::byte> bytes, User user) {
  const Bytes size = std::ssize(bytes);
  const bool in_strips = size <= largest_in_strips;
  Seat seat = seat_of(user, in_strips ? writes_strips : 0);
  const Result<Held> held = hold(page, size == plan_.page ? bytes : std::span<const std::byte>(), seat);
  TR_TRY(held.status());
  if (held->is_written) {
    seat.leave();
    count_written(held->frame, page, 0, 0, user);
    offer_run_of(page);
    return {};
  }
  const Result<bool> may = in_strips ? may_write_strips(held->frame, from + size, seat) : Result<bool>(false);
  TR_TRY(may.status());
  if (*may) {
    TR_TRY(write_strips(held->frame, from, bytes, user));
  } else {
    seat.take_without_mark(held->frame);
    TR_TRY(write_alone(held->frame, from, bytes, user));
  }
  frame(held->frame).note_use(head().era.load(std::memory_order_relaxed));
  seat.leave();
  count_written(held->frame, page, size, from + size, user);
  return {};
}

/// The caller's Hold has the mark `writes_strips`. Waits while another user has locked the frame, without the
/// mark, since that user waits for all marks to go. Returns true if the caller may write to strips before
/// `end`, and false if some of these bytes are not filled.
Result<bool> NodePages::may_write_strips(FrameNumber number, Bytes end, Seat& seat) {
  const Frame& here = frame(number);
  for (int tries = 1; here.filled.load(std::memory_order_acquire) >= end;) {
    if (!here.lock.is_taken()) return true;
    seat.take_without_mark(number);
    for (; here.lock.is_taken(); ++tries) {
      if (!may_wait(seat.user()) && node::SharedLock::is_soon_over(tries)) return would_wait();
      node::SharedLock::wait_a_little(tries, transport_);
    }
    seat.take(number);
  }
  return false;
}

Status NodePages::write_strips(FrameNumber number, Bytes from, std::span<const std::byte> bytes, User user) {
  const StripsOf strips(number, from, std::ssize(bytes));
  std::array<StripLock, strip_locks>& locks = head().strips;
  Status locked;
  int count = 0;
  for (; count < strips.count() && locked.is_ok(); ++count)
    locked = lock(locks[strips.lock(count)].lock, user);
  if (locked.is_ok()) {
    std::memcpy(memory_of(number) + from, bytes.data(), bytes.size());
    frame(number).note_change();
  } else {
    --count;
  }
  while (count > 0) locks[strips.lock(--count)].lock.unlock();
  return locked;
}

/// Writes a piece under the frame's lock. Waits for writers of strips only if the piece begins before
/// `filled`: strips are written only to bytes that are filled.
Status NodePages::write_alone(FrameNumber number, Bytes from, std::span<const std::byte> bytes, User user) {
  Frame& here = frame(number);
  TR_TRY(lock(here.lock, user));
  const node::Locked locked(here.lock, std::adopt_lock);
  const Bytes end = from + std::ssize(bytes);
  const Bytes filled = here.filled.load(std::memory_order_relaxed);
  const bool is_small = std::ssize(bytes) <= largest_in_strips;
  if (from < filled) TR_TRY(wait_for_writers(number, user));
  const bool is_next = from == filled && (here.filler == me_ || !is_small);
  if (filled < end && !is_next) {
    const Bytes step = (end + filled_at_once - 1) / filled_at_once * filled_at_once;
    fill_up_to(number, is_small ? std::min(step, plan_.page) : from);
    here.filler = me_;
  }
  std::memcpy(memory_of(number) + from, bytes.data(), bytes.size());
  if (here.filled.load(std::memory_order_relaxed) < end) here.filled.store(end, std::memory_order_release);
  here.note_change();
  return {};
}

}  // namespace tailrace::shared
