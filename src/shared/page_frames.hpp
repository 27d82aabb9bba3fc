// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/types.hpp"
#include "shared/shared_lock.hpp"

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

struct alignas(64) Frame {
  std::atomic<Index> page{no_page};
  std::atomic<FrameNumber> next{nobody};  // in the chain of its bucket, or of the free frames
  SharedLock lock;
  std::atomic<bool> changed{false};
  std::atomic<Era> use{unused};
  // The lock guards these.
  bool has_memory = false;
  bool is_zero = false;
  bool is_stored_ahead = false;  // since the last flush
  bool has_come_back = false;    // the page, after its frame was used again
  // The bytes from here on are zeros of the page, whatever is in memory. It grows under the lock.
  std::atomic<Bytes> filled{0};
  // Bytes written since the page came or was stored, those written twice counted twice.
  std::atomic<Bytes> written{0};
  std::atomic<Bytes> read{
      0};  // bytes that ranks have read since the page came, without those of ranks that jump
  // Nothing of this frame: a page whose frame was used again, and before which flush it was stored ahead (0:
  // it was not). The directory's lock guards them.
  Index gone = no_page;
  std::uint32_t gone_stored_before = 0;

  void note_use(Era now) {
    if (use.load(std::memory_order_relaxed) != now) use.store(now, std::memory_order_relaxed);
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
  alignas(64) SharedLock directory;
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
  alignas(64) SharedLock offers;
  // Its lock guards these.
  std::array<Index, 64> offered{};  // the first pages of runs
  std::uint32_t offered_count = 0;
  std::atomic<bool> is_storing{false};    // a rank is in store_offered(), or about to be
  std::atomic<Bytes> written_again{0};    // of pages that were stored ahead
  std::atomic<bool> stays_behind{false};  // storing ahead has failed, or did not pay
};

/// Each user of the pages writes to a Hold of its own, and the other users read it.
struct alignas(64) Hold {
  std::atomic<FrameNumber> frame{nobody};  // the user copies from or to this frame
  std::atomic<Bytes> end{0};               // the program of this rank has written up to here
};

}  // namespace tailrace::shared
