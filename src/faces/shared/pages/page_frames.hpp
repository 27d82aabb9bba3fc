// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "ground/base/types.hpp"
#include "ground/node/shared_lock.hpp"

namespace tailrace::shared {

// NodePages has these in memory that the ranks of a node share.

using FrameNumber = std::uint32_t;
constexpr FrameNumber nobody = ~FrameNumber{0};
constexpr Index no_page = -1;
/// A page that is being brought in has this in place of its number.
constexpr Index coming(Index page) { return -2 - page; }

/// To get a smaller page, the calls cost more than its bytes.
constexpr Bytes small_page = Bytes{64} << 10;

/// When a frame's page was used: not since the clock's hand passed; never, but it was brought in ahead, which
/// counts as use for the hand; or in this era. An era is a time in which so many pages have come.
using Era = std::uint8_t;
constexpr Era unused = 0, brought_ahead = 1, first_era = 2;
constexpr Era era_behind(Era era) { return era == 255 ? first_era : static_cast<Era>(era + 1); }
/// Returns how many eras have begun since, if they are less than 254.
constexpr int eras_since(Era then, Era now) { return now >= then ? now - then : now - then + 254; }

/// A small piece that is written locks the strips of the page in which it lies: so many bytes each.
constexpr Bytes strip = 1024;
/// A larger piece locks the page.
constexpr Bytes largest_in_strips = 16 * strip;
/// Strips have locks in common. In another frame the strips of a page begin at another lock: ranks that write
/// at the same place of different pages mostly need different ones. The locks of ranks that write strips in
/// turn stay apart, for any power of 2 of them up to 16.
constexpr int strip_locks = 256;
constexpr int first_strip_lock(FrameNumber number) { return static_cast<int>(number * 16 % strip_locks); }
struct alignas(64) StripLock {
  node::SharedLock lock;
};

struct alignas(64) Frame {
  std::atomic<Index> page{no_page};
  std::atomic<FrameNumber> next{nobody};  // in the chain of its bucket, or of the free frames
  node::SharedLock lock;
  std::atomic<bool> changed{false};
  std::atomic<Era> use{unused};
  // The lock guards these.
  bool has_memory = false;
  bool is_zero = false;
  std::atomic<bool> is_stored_ahead{false};  // since the last flush
  bool has_come_back = false;                // the page, after its frame was used again
  // The bytes from here on are zeros of the page, whatever is in memory. It grows under the lock.
  std::atomic<Bytes> filled{0};
  // Bytes written since the page came or was stored, those written twice counted twice. A rank adds its own
  // when it goes on to another page.
  std::atomic<Bytes> written{0};
  // Bytes that ranks have read since the page came, without those of ranks that jump.
  std::atomic<Bytes> read{0};
  // Nothing of this frame: a page whose frame was used again, and before which flush it was stored ahead (0:
  // it was not). The directory's lock guards them.
  Index gone = no_page;
  std::uint32_t gone_stored_before = 0;
  int filler = -1;  // the rank that has moved `filled` last; the frame's lock guards it

  // They write only what differs: the line stays with all ranks that use the page.
  void note_use(Era now) {
    if (use.load(std::memory_order_relaxed) != now) use.store(now, std::memory_order_relaxed);
  }
  void note_change() {
    if (!changed.load(std::memory_order_relaxed)) changed.store(true, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Frame) == 64);

struct PagesHead {
  alignas(64) std::atomic<Bytes> size{0};
  std::atomic<Bytes> stored{0};  // bytes before this one may be on disk
  std::atomic<bool> stored_since{false};
  std::atomic<bool> wants_room{false};  // a server of the node does
  std::atomic<int> room_error{0};       // the errno of a page that could not be stored for it
  std::atomic<Era> era{first_era};
  std::atomic<std::uint32_t> next_flush{1};
  std::atomic<std::int64_t> load_took{0};  // nanoseconds that the last pages took to load; 0: none was loaded
  alignas(64) node::SharedLock directory;
  // The directory's lock guards what follows, the chains, and which frame has which page.
  FrameNumber made = 0;
  FrameNumber most = 0;
  FrameNumber lost = 0;  // the node had no memory for them
  FrameNumber hand = 0;
  FrameNumber first_free = nobody;
  FrameNumber free = 0;                     // the number of free frames
  FrameNumber reused_from = nobody;         // so many frames are made before any is used again
  FrameNumber came_in_era = 0;              // pages
  Index reused = 0;                         // frames of pages that were used once
  Index came_back = 0;                      // pages that were needed after all
  int impatience = 0;                       // after a wait in vain, so many rooms are found without one
  int rooms_without_wait = 0;               // of these, so many are left
  std::atomic<std::int64_t> fresh_took{0};  // nanoseconds to get the memory of a frame, lately
  alignas(64) node::SharedLock offers;
  // Its lock guards these.
  std::array<Index, 64> offered{};  // the first pages of runs
  std::uint32_t offered_count = 0;
  std::atomic<bool> is_storing{false};    // a rank is in store_offered(), or about to be
  std::atomic<Bytes> written_again{0};    // of pages that were stored ahead
  std::atomic<bool> stays_behind{false};  // storing ahead has failed, or did not pay
  std::array<StripLock, strip_locks> strips;
};

/// In Hold::frame beside the number: the user writes to strips of the page.
constexpr FrameNumber writes_strips = FrameNumber{1} << 31;

/// Each user of the pages writes to a Hold of its own, and the other users read it.
struct alignas(64) Hold {
  std::atomic<FrameNumber> frame{nobody};  // the user copies from or to this frame
  std::atomic<Bytes> end{0};               // the program of this rank has written up to here
};

// The following are not in shared memory.

/// The threads of a process that use the pages: the program's, the one that has the desk and so answers other
/// nodes, and one of the executor's, which waits for storage for them. A server has several of these.
enum class PagesUser { program, desk, service };

/// The hold of a thread during one call: a frame that is found is held until the caller has copied. A thread
/// of the executor has the hold as long as it has `alone`.
class Seat {
 public:
  /// `mark` is 0 or writes_strips.
  Seat(PagesUser user, FrameNumber mark, Hold& hold, std::unique_lock<std::mutex> alone)
      : user_(user), mark_(mark), alone_(std::move(alone)), hold_(hold) {}
  ~Seat() { leave(); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  [[nodiscard]] PagesUser user() const { return user_; }
  void take(FrameNumber number) { hold_.frame.store(number | mark_); }
  void take_without_mark(FrameNumber number) { hold_.frame.store(number, std::memory_order_release); }
  void leave() { hold_.frame.store(nobody, std::memory_order_release); }

 private:
  const PagesUser user_;
  const FrameNumber mark_;
  std::unique_lock<std::mutex> alone_;
  Hold& hold_;
};

/// The frame in which the caller's thread has found a page last.
struct Known {
  Index page = no_page;
  FrameNumber frame = nobody;
};

/// A locked frame to bring a page into, or to store first, or none at this moment.
struct Room {
  FrameNumber frame = nobody;
  bool is_to_store = false;
};

/// A page that is being brought in, and its frame.
struct Coming {
  Index page = no_page;
  FrameNumber frame = nobody;
  bool was_zero = false;  // the frame's memory, before it was read into
};

/// The page that the program is reading or writing, and how many bytes of it the program has read or
/// written and not yet added to the frame's.
struct Visit {
  Index page = no_page;
  FrameNumber frame = nobody;
  Bytes bytes = 0;
};

struct Held {
  FrameNumber frame = nobody;
  bool is_written = false;  // bringing it in has written the bytes
};

}  // namespace tailrace::shared
