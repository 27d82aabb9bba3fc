// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// NodePages uses frames again before it makes many. Fresh memory costs more than reading a page again from
// the cache of the system. So a file that is written or read once, from its begin to its end, goes through a
// few frames. While storage is as fast as memory, NodePages uses so few frames that they stay in the caches
// of the cores. NodePages guesses which pages are used only once. A page that is needed again was a wrong
// guess: it keeps its frame from then on. After many wrong guesses NodePages makes frames for all pages.
#include <algorithm>

#include "faces/shared/pages/node_pages.hpp"

namespace tailrace::shared {

namespace {

/// Frames of so many bytes together fit in the cache of the cores.
constexpr Bytes cached = Bytes{8} << 20;

/// One search looks at no more frames than this, since other ranks wait for the directory's lock.
constexpr int looks_of_pages = 64;
/// With small pages one search looks at fewer frames, since a fresh frame costs less, too.
constexpr int looks_of_small_pages = 16;

/// Frames are no longer used again early once more than `little` bytes of pages have come back, and more than
/// one page in `most_pages_for_one_back`.
constexpr Bytes little = Bytes{4} << 20;
constexpr Index most_pages_for_one_back = 16;

/// An era is so long that `eras_of_first_frames` eras pass while the frames that are made first get pages. A
/// page that was not used for `eras_of_use` eras counts as used once.
constexpr FrameNumber eras_of_first_frames = 8;
constexpr int eras_of_use = 4;

/// Fresh memory costs this many times what its allocation takes: later each rank makes page tables for it.
constexpr std::int64_t cost_of_fresh = 2;
constexpr std::int64_t longest_wait = 20'000'000;
constexpr int most_impatience = 255;

/// A rank waits so many nanoseconds for other ranks, often on the same core, to read their parts of the
/// pages.
constexpr std::int64_t wait_for_readers = 300'000;
/// A rank adds its bytes to `Frame::read` if they are at least a quarter of an equal share of the page.
constexpr int parts_of_share = 4;

}  // namespace

FrameNumber NodePages::frames_for(Bytes bytes) const {
  return std::max(static_cast<FrameNumber>(std::min<Bytes>(bytes >> page_shift_, frames_)), least_);
}

FrameNumber NodePages::frames_made_first() const {
  return plan_.reused_from <= 0 ? nobody : frames_for(plan_.reused_from);
}

/// Counts a page that comes, and begins a new era if it was the last of the old one. The caller has the
/// directory's lock.
void NodePages::count_page() {
  Head& all = head();
  if (all.reused_from == nobody || ++all.came_in_era < all.reused_from / eras_of_first_frames) return;
  all.came_in_era = 0;
  all.era = era_behind(all.era);
}

/// Returns true if storage is as fast as memory, and the frames with pages fill the caches of the cores.
bool NodePages::are_caches_full() const {
  const Head& all = head();
  return all.reused_from != nobody && is_storage_fast() && all.made - all.free >= frames_for(cached);
}

/// Returns true if `reused_from` frames are made, every frame has a page, and memory is left for more frames.
bool NodePages::are_first_frames_full() const {
  const Head& all = head();
  return all.free == 0 && all.made >= all.reused_from && all.made < all.most;
}

/// Takes a page out of its frame, and returns the frame locked. The page is stored and has never come back.
/// If the caches are full, the ranks have read the page whole; otherwise no rank has used the page for some
/// eras. A page that was brought in ahead stays until a rank uses it. Returns `nobody` if there is no such
/// page, or if frames are still to be made. `has_waited` says that this caller has waited for a frame. The
/// caller has the directory's lock.
FrameNumber NodePages::take_used_once(bool has_waited) {
  Head& all = head();
  const bool counts_bytes = are_caches_full();
  const bool counts_eras = are_first_frames_full();
  if (!counts_bytes && !counts_eras) return nobody;
  const auto is_over = [&](const Frame& from) {
    if (counts_bytes && from.read >= plan_.page) return true;
    const Era use = from.use;
    return counts_eras &&
           (use == unused || (use != brought_ahead && eras_since(use, all.era) >= eras_of_use));
  };
  const int looks = plan_.page < small_page ? looks_of_small_pages : looks_of_pages;
  for (int look = 0; look < looks; ++look) {
    const FrameNumber number = all.hand;
    all.hand = (all.hand + 1) % all.made;
    Frame& from = frame(number);
    if (from.page < 0 || !is_over(from) || !from.lock.try_lock()) continue;
    const Index page = from.page;
    if (page >= 0 && !is_held(number) && !from.changed && is_over(from) && !from.has_come_back &&
        take_out(number, page)) {
      Frame& place = frame(static_cast<FrameNumber>(near_number(page) % frames_));
      place.gone = page;
      place.gone_stored_before = from.is_stored_ahead ? all.next_flush.load() : 0;
      ++all.reused;
      if (has_waited) all.impatience /= 2;
      return number;
    }
    from.lock.unlock();
  }
  return nobody;
}

/// The caller has the directory's lock, and has found no frame to use again. Returns how many nanoseconds a
/// rank should wait for such a frame.
std::int64_t NodePages::worth_waiting() const {
  const Head& all = head();
  // The other ranks read their parts of the pages meanwhile, often on the core of the rank that waits.
  if (are_caches_full()) return ranks_ > 1 ? wait_for_readers : 0;
  if (!are_first_frames_full() || !all.is_storing) return 0;
  return std::min(cost_of_fresh * run_ * all.fresh_took, longest_wait);
}

/// Returns true if the caller should wait. `until` is 0 in the first call for a page. After each wait in vain
/// ranks skip twice as many waits, so slow storage and ranks that read nothing cost little.
bool NodePages::waits_for_frame(std::int64_t& until) {
  Head& all = head();
  const std::int64_t longest = worth_waiting();
  if (longest == 0) return false;
  const std::int64_t now = transport_.now();
  if (until == 0) {
    if (all.rooms_without_wait > 0) {
      --all.rooms_without_wait;
      return false;
    }
    until = now + longest;
  }
  if (now < until) return true;
  all.impatience = std::min(2 * all.impatience + 1, most_impatience);
  all.rooms_without_wait = all.impatience;
  return false;
}

/// Counts bytes of a page that the program has read. A rank sums up its bytes, and adds the sum to the frame
/// when the rank goes on to another page: with a sum for each piece, the frame's cache line would go from
/// core to core. A rank that jumps between pages adds nothing, and its pages stay.
void NodePages::count_read(FrameNumber number, Index page, Bytes bytes) {
  if (reading_.page != page) {
    if (reading_.bytes > 0 && reading_.bytes >= plan_.page / (parts_of_share * ranks_)) {
      Frame& left = frame(reading_.frame);
      if (left.page.load(std::memory_order_relaxed) == reading_.page) left.read += reading_.bytes;
    }
    reading_ = {page, number, 0};
  }
  reading_.bytes += bytes;
}

/// Notes in the page's new frame whether the page has come back: it had a frame that was used again. If the
/// page was stored ahead since the last flush, pieces that are written to it now do not get it stored ahead a
/// second time; one write of the whole page does. The caller has the locks of the directory and the frame.
void NodePages::note_return(FrameNumber number, Index page) {
  Head& all = head();
  Frame& here = frame(number);
  here.has_come_back = here.is_stored_ahead = false;
  if (all.reused == 0) return;
  Frame& place = frame(static_cast<FrameNumber>(near_number(page) % frames_));
  if (place.gone != page) return;
  here.has_come_back = true;
  here.is_stored_ahead = place.gone_stored_before == all.next_flush;
  place.gone = no_page;
  ++all.came_back;
  if (all.came_back << page_shift_ > little && all.came_back * most_pages_for_one_back > all.reused)
    all.reused_from = nobody;
}

/// Forgets all guesses: the pages are those of another file from now on.
void NodePages::forget_gone() {
  Head& all = head();
  all.reused_from = frames_made_first();
  all.impatience = all.rooms_without_wait = 0;
  if (all.reused == 0) return;
  all.reused = all.came_back = 0;
  for (FrameNumber number = 0; number < frames_; ++number) frame(number).gone = no_page;
}

}  // namespace tailrace::shared
