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

// From here to Hold: what NodePages has in memory that the ranks of a node share.

using FrameNumber = std::uint32_t;
constexpr FrameNumber nobody = ~FrameNumber{0};
constexpr Index no_page = -1;
/// Returns what Frame::page holds in place of `page` while a rank brings the page in.
constexpr Index coming(Index page) { return -2 - page; }

/// The system calls that bring in a smaller page than this cost more than copying its bytes.
constexpr Bytes small_page = Bytes{64} << 10;

/// When a frame's page was last used: an era, or one of two special values. `unused`: not since the hand
/// passed the frame, which goes round the frames to find room. `brought_ahead`: never, but the page was
/// brought in ahead, and the hand takes that for a use. An era is the time in which a certain number of pages
/// come, see NodePages::count_page().
using Era = std::uint8_t;
constexpr Era unused = 0, brought_ahead = 1, first_era = 2;
constexpr Era era_behind(Era era) { return era == 255 ? first_era : static_cast<Era>(era + 1); }
/// Returns how many eras have begun since `then`. Era numbers wrap around: right only for less than 254 eras.
constexpr int eras_since(Era then, Era now) { return now >= then ? now - then : now - then + 254; }

/// The bytes of a strip. To write a small piece, a rank locks the strips in which the piece lies.
constexpr Bytes strip = 1024;
/// To write a piece larger than this, a rank locks the whole page.
constexpr Bytes largest_in_strips = 16 * strip;
/// All pages share these locks of strips. The first strip of a page has another lock in the next frame, so
/// ranks that write at the same place of different pages mostly need different locks. Where R ranks write
/// strips in turn, strip i by rank i % R, and R is a power of 2 up to 16, no two of them need the same lock,
/// even for different pages.
constexpr int strip_locks = 256;
constexpr int first_strip_lock(FrameNumber number) { return static_cast<int>(number * 16 % strip_locks); }
struct alignas(64) StripLock {
  node::SharedLock lock;
};

struct alignas(64) Frame {
  std::atomic<Index> page{no_page};
  std::atomic<FrameNumber> next{nobody};  // in the chain of its bucket or of the free frames
  node::SharedLock lock;
  std::atomic<bool> changed{false};
  std::atomic<Era> use{unused};
  // The lock guards the following members.
  bool has_memory = false;
  bool is_zero = false;                      // the frame's memory is fresh: all its bytes are 0
  std::atomic<bool> is_stored_ahead{false};  // the page was stored ahead since the last flush
  bool has_come_back = false;                // the page has lost a frame, and was needed again
  // The page's bytes from this one on count as zeros, whatever the memory holds. It grows under the lock.
  std::atomic<Bytes> filled{0};
  // Bytes written since the page came or was stored; bytes written twice count twice. A rank adds its bytes
  // when it goes on to another page.
  std::atomic<Bytes> written{0};
  // Bytes that ranks have read since the page came. Ranks that jump between pages add nothing.
  std::atomic<Bytes> read{0};
  // The next two say nothing of this frame: they are one entry in a table of pages whose frames were used
  // again. `gone` is the page, and `gone_stored_before` the number of the flush before which it was stored
  // ahead (0: it was not). The directory's lock guards both.
  Index gone = no_page;
  std::uint32_t gone_stored_before = 0;
  int filler = -1;  // the rank that has moved `filled` last; the frame's lock guards it

  // Both write only if the value changes: so all ranks that use the page keep the cache line.
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
  std::atomic<Bytes> stored{0};           // bytes before this one may be on disk
  std::atomic<bool> stored_since{false};  // a page was stored since take_stored_since()
  std::atomic<bool> wants_room{false};    // a server of the node waits for a frame
  std::atomic<int> room_error{0};         // the errno of a page that could not be stored for the server
  std::atomic<Era> era{first_era};
  std::atomic<std::uint32_t> next_flush{1};
  std::atomic<std::int64_t> load_took{0};  // nanoseconds that the last pages took to load; 0: none was loaded
  alignas(64) node::SharedLock directory;
  // The directory's lock guards the following members, the chains, and which frame has which page.
  FrameNumber made = 0;  // frames that were made so far
  FrameNumber most = 0;  // frames that may be made
  FrameNumber lost = 0;  // made frames for which the node had no memory
  FrameNumber hand = 0;  // the frame that the next search for room looks at
  FrameNumber first_free = nobody;
  FrameNumber free = 0;                     // the number of free frames
  FrameNumber reused_from = nobody;         // so many frames are made before any is used again
  FrameNumber came_in_era = 0;              // pages that have come in this era
  Index reused = 0;                         // frames taken from pages that looked used once
  Index came_back = 0;                      // pages that lost their frame so, and were needed again
  int impatience = 0;                       // after a wait in vain, so many calls find room without a wait
  int rooms_without_wait = 0;               // how many of these calls are left
  std::atomic<std::int64_t> fresh_took{0};  // nanoseconds that memory for a frame took lately
  alignas(64) node::SharedLock offers;
  // This lock guards the following two.
  std::array<Index, 64> offered{};  // the first pages of runs to be stored ahead
  std::uint32_t offered_count = 0;
  std::atomic<bool> is_storing{false};    // a rank is in store_offered(), or about to be
  std::atomic<Bytes> written_again{0};    // bytes written to pages after these were stored ahead
  std::atomic<bool> stays_behind{false};  // no page is stored ahead: that has failed, or did not pay
  std::array<StripLock, strip_locks> strips;
};

/// A bit of Hold::frame beside the number of the frame: the user writes to strips of the page.
constexpr FrameNumber writes_strips = FrameNumber{1} << 31;

/// Each user of the pages has a Hold. Only the user writes to it; all other users of the node read it.
struct alignas(64) Hold {
  std::atomic<FrameNumber> frame{nobody};  // the user copies from or to this frame
  std::atomic<Bytes> end{0};               // the program of this rank has written up to here
};

// The following types are not in shared memory.

/// The threads of a process that use the pages. `program`: the program's own thread. `progress`: the thread
/// that moves requests on and so answers other nodes. `service`: a thread of the executor, which
/// waits for storage on behalf of other nodes; a server has several.
enum class PagesUser { program, progress, service };

/// Owns the Hold of a thread during one call: the thread holds the frame that it has found until it has
/// copied. Several threads of User::service take turns with a Hold: the one that has locked `alone` has it.
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

/// A page, and the frame in which the calling thread has last found it.
struct Known {
  Index page = no_page;
  FrameNumber frame = nobody;
};

/// A locked frame into which the caller may bring a page, or whose page the caller must store first. `nobody`
/// if no frame can be had at this moment.
struct Room {
  FrameNumber frame = nobody;
  bool is_to_store = false;
};

/// A page that is being brought in, and its frame.
struct Coming {
  Index page = no_page;
  FrameNumber frame = nobody;
  bool was_zero = false;  // the frame's memory was zeros before the page was read into it
};

/// The page that the program is reading or writing, and how many bytes of it the program has read or
/// written and not yet added to the frame's.
struct Visit {
  Index page = no_page;
  FrameNumber frame = nobody;
  Bytes bytes = 0;
};

/// A frame that the caller holds. `nobody` if the caller is to look for the page again.
struct Held {
  FrameNumber frame = nobody;
  bool is_written = false;  // the caller's bytes are in the page: they were written as it was brought in
};

}  // namespace tailrace::shared
