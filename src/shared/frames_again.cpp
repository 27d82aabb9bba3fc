// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// NodePages uses frames again before it makes many. Fresh memory costs more than to read a page again from
// the cache of the system: a file that is written or read once, from its begin to its end, goes through a few
// frames. Whether a page was used once is a guess. Each page that comes back was a wrong one: it stays from
// then on, and if many come back, frames are made for all pages.
#include <algorithm>

#include "shared/node_pages.hpp"

namespace tailrace::shared {

namespace {

/// A look for a frame goes no further than this: others wait for the directory.
constexpr int looks_of_pages = 64;
/// A fresh frame for a small page costs less, too.
constexpr int looks_of_small_pages = 16;
constexpr Bytes small_page = Bytes{64} << 10;

/// So much may come back before it counts, and from then on one of so many pages.
constexpr Bytes little = Bytes{4} << 20;
constexpr Index most_pages_for_one_back = 16;

/// While the frames that are made first get pages, so many eras pass. A page that was not used for half as
/// long has been used once.
constexpr FrameNumber eras_of_first_frames = 8;
constexpr int eras_of_use = 4;

/// Fresh memory costs as much again later: each rank makes page tables for it.
constexpr std::int64_t cost_of_fresh = 2;
constexpr std::int64_t longest_wait = 20'000'000;
constexpr int most_impatience = 255;

}  // namespace

FrameNumber NodePages::frames_made_first() const {
  if (plan_.reused_from <= 0) return nobody;
  return std::max(static_cast<FrameNumber>(std::min<Bytes>(plan_.reused_from >> page_shift_, frames_)),
                  least_);
}

/// Under the directory's lock, when a page comes.
void NodePages::count_page() {
  Head& all = head();
  if (all.reused_from == nobody || ++all.came_in_era < all.reused_from / eras_of_first_frames) return;
  all.came_in_era = 0;
  all.era = era_behind(all.era);
}

/// Under the directory's lock. Returns a frame, locked and without a page, whose page is stored, was not used
/// for some eras, and has never come back; nobody if there is none, or if frames are still made. A page that
/// was brought in ahead and that nobody has used yet keeps its frame. `has_waited`: for storage.
FrameNumber NodePages::take_used_once(bool has_waited) {
  Head& all = head();
  if (all.made < all.reused_from || all.made == all.most) return nobody;
  const auto is_over = [&](const Frame& from) {
    const Era use = from.use;
    return use == unused || (use != brought_ahead && eras_since(use, all.era) >= eras_of_use);
  };
  const int looks = plan_.page < small_page ? looks_of_small_pages : looks_of_pages;
  for (int look = 0; look < looks; ++look) {
    const FrameNumber number = all.hand;
    all.hand = (all.hand + 1) % all.made;
    Frame& from = frame(number);
    if (from.page < 0 || !is_over(from) || !from.lock.try_lock()) continue;
    const Index page = from.page;
    if (page >= 0 && !from.changed && is_over(from) && !from.has_come_back && !is_held(number) &&
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

/// Under the directory's lock, where no frame can be had. Returns true if a run of pages is being stored, and
/// fresh memory for as many pages would take longer than the caller has waited. `until` is 0 at first.
/// Storage that is slower than fresh memory is waited for ever more rarely.
bool NodePages::waits_for_storage(std::int64_t& until) {
  Head& all = head();
  if (all.made < all.reused_from || all.made == all.most || !all.is_storing) return false;
  const std::int64_t now = transport_.now();
  if (until == 0) {
    if (all.rooms_without_wait > 0) {
      --all.rooms_without_wait;
      return false;
    }
    until = now + std::min(cost_of_fresh * run_ * all.fresh_took, longest_wait);
  }
  if (now < until) return true;
  all.impatience = std::min(2 * all.impatience + 1, most_impatience);
  all.rooms_without_wait = all.impatience;
  return false;
}

/// Under the locks of the directory and of the page's new frame, which notes whether the page had one that
/// was used again. A page that was stored ahead since the last flush is not stored ahead a second time for
/// pieces that are written to it; one that is written whole in one call is.
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

/// The pages are those of another file from now on.
void NodePages::forget_gone() {
  Head& all = head();
  all.reused_from = frames_made_first();
  all.impatience = all.rooms_without_wait = 0;
  if (all.reused == 0) return;
  all.reused = all.came_back = 0;
  for (FrameNumber number = 0; number < frames_; ++number) frame(number).gone = no_page;
}

}  // namespace tailrace::shared
