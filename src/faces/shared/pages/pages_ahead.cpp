// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// NodePages works ahead of its ranks: it brings in pages before a rank needs them, and stores pages before a
// flush while the ranks write on. A page counts as written whole when as many bytes were written to it as it
// has: mostly no rank writes to it again. If a rank does, the flush stores the page a second time. A page is
// stored ahead at most once between two flushes, and if ranks often write again, no page is any more.
#include <algorithm>
#include <vector>

#include "faces/shared/pages/node_pages.hpp"
#include "ground/base/status.hpp"

namespace tailrace::shared {

namespace {

/// One search for a frame looks at no more frames than this, since other ranks wait for the directory's lock.
constexpr int most_looks = 64;
/// One call of storage brings at most so many bytes: its pages all come at its end, and a reader may wait for
/// the first.
constexpr Bytes largest_load = Bytes{4} << 20;

}  // namespace

Index NodePages::bring_ahead(std::span<const Index> pages, Index most_pages) {
  std::vector<Coming> coming;
  std::vector<FrameNumber> frames;
  const Status has_memory = guarded([&] {
    const auto room = static_cast<std::size_t>(std::min(most_pages, std::ssize(pages)));
    coming.resize(room);
    frames.resize(room);
    return Status();
  });
  if (!has_memory.is_ok()) return 0;
  const Bytes stored = claim_ahead(pages, coming, frames);
  Index brought = 0;
  const auto most = static_cast<std::size_t>(std::max(largest_load >> page_shift_, Bytes{1}));
  const auto follow = [&](const Coming& one, const Coming& next) {
    return next.page == one.page + 1 && next.frame == one.frame + 1;
  };
  for (std::size_t at = 0; at < coming.size();) {
    std::size_t end = at;
    const auto ready_frame = [&](std::size_t one) {
      return guarded([&] { return give_memory(coming[one].frame); });
    };
    Status ready = ready_frame(at);
    while (ready.is_ok() && ++end < coming.size() && end - at < most && follow(coming[end - 1], coming[end]))
      ready = ready_frame(end);
    if (end == at) {
      (void)give_up(coming[at].frame, coming[at].page, ready);
      ++at;
      continue;
    }
    if (load_ahead(std::span(coming).subspan(at, end - at), stored)) brought += static_cast<Index>(end - at);
    at = end;
  }
  return brought;
}

/// Chooses the pages to bring in, at most as many as `coming` and `frames` are long, gives them frames and
/// marks the frames as coming. Shortens `coming` and `frames` to the chosen pages. Returns where the bytes on
/// storage end.
Bytes NodePages::claim_ahead(std::span<const Index> pages, std::vector<Coming>& coming,
                             std::vector<FrameNumber>& frames) {
  const node::Locked directory(head().directory, transport_);
  const Bytes stored = head().stored;
  std::size_t claimed = 0;
  for (const Index page : pages) {
    if (page << page_shift_ >= stored || claimed == coming.size()) break;
    if (find_in_chain(page) != nobody) continue;
    frames[claimed] = take_spare();
    if (frames[claimed] == nobody) break;
    coming[claimed++].page = page;
  }
  coming.resize(claimed);
  frames.resize(claimed);
  // Frames that follow one another have memory that does so, too: one read can fill it.
  std::ranges::sort(frames);
  for (std::size_t i = 0; i < claimed; ++i) {
    coming[i].frame = frames[i];
    frame(frames[i]).page = shared::coming(coming[i].page);
    link(frames[i], coming[i].page);
  }
  return stored;
}

/// Returns a locked frame without a page, or `nobody`. Takes no page out of its frame that was used lately,
/// and leaves the note of its use: only a rank that needs room at once clears these notes, in
/// take_from_others(). The caller has the directory's lock.
FrameNumber NodePages::take_spare() {
  Head& all = head();
  if (const FrameNumber number = take_used_once(false); number != nobody) return number;
  if (are_caches_full()) return nobody;
  if (all.first_free != nobody) {
    if (!frame(all.first_free).lock.try_lock())
      return nobody;  // the rank that has freed the frame is about to unlock it
    return pop_free();
  }
  const auto draw = [this] { return guarded([this] { return drawn_.take(plan_.page); }); };
  if (all.made < all.most && (all.made < least_ || draw().is_ok())) {
    frame(all.made).lock.lock(transport_);  // no other rank knows the frame yet
    return all.made++;
  }
  for (int looks = 0; looks < most_looks; ++looks) {
    const FrameNumber number = all.hand;
    all.hand = (all.hand + 1) % all.made;
    Frame& from = frame(number);
    if (!from.lock.try_lock()) continue;
    const Index page = from.page;
    if (page >= 0 && from.use == unused && !is_held(number) && !from.changed && take_out(number, page))
      return number;
    from.lock.unlock();
  }
  return nobody;
}

/// Loads pages that follow one another into frames whose memory follows one another. Returns false if the
/// load fails: the pages stay out.
bool NodePages::load_ahead(std::span<Coming> run, Bytes stored) {
  const Bytes begin = run.front().page << page_shift_;
  const Bytes length = std::min(std::ssize(run) << page_shift_, stored - begin);
  const std::span memory(memory_of(run.front().frame), static_cast<std::size_t>(length));
  // Before the load, since a load that fails may have filled some of the memory.
  for (Coming& each : run) each.was_zero = std::exchange(frame(each.frame).is_zero, false);
  const Status loaded = guarded([&] { return disk_.load(memory, begin); });
  for (const Coming& each : run) {
    if (!loaded.is_ok()) {
      (void)give_up(each.frame, each.page, loaded);
      continue;
    }
    Frame& into = frame(each.frame);
    const Bytes there = std::min(plan_.page, stored - (each.page << page_shift_));
    into.filled = each.was_zero ? plan_.page : there;
    publish(each.frame, each.page, false, brought_ahead);
  }
  return loaded.is_ok();
}

// Storing ahead.

/// Counts bytes that a user has written to a page, up to `end`. The program's thread sums up its bytes of one
/// page. It adds the sum to the frame's when it goes on to another page, has come to the end of this page,
/// has written as many bytes as a page, or has written a large piece. If it added each small piece, the
/// frame's cache line would go from core to core.
void NodePages::count_written(FrameNumber number, Index page, Bytes bytes, Bytes end, User user) {
  if (start_ == nullptr) return;
  if (user != User::program) return add_written({page, number, bytes});
  if (writing_.page != page || writing_.frame != number) {
    const Visit left = std::exchange(writing_, {page, number, 0});
    if (left.bytes > 0) add_written(left);
  }
  writing_.bytes += bytes;
  if (end < plan_.page && bytes <= largest_in_strips && writing_.bytes < plan_.page) return;
  add_written(writing_);
  writing_.bytes = 0;
}

/// Adds a user's bytes to the frame's, and offers the page's run if the page has become whole by them.
void NodePages::add_written(const Visit& left) {
  Frame& here = frame(left.frame);
  if (here.page.load(std::memory_order_relaxed) != left.page) return;
  if (here.is_stored_ahead) {
    // If more than a run's bytes are written again, the program writes the file in several rounds, and
    // storing ahead would be in vain in all but the last: it ends.
    Head& all = head();
    if (!all.stays_behind && (all.written_again += left.bytes) > run_ * plan_.page) all.stays_behind = true;
    return;
  }
  const Bytes before = here.written.fetch_add(left.bytes);
  if (before < plan_.page && before + left.bytes >= plan_.page) offer_run_of(left.page);
}

bool NodePages::is_to_be_stored_ahead(FrameNumber number, Index page) const {
  const Frame& here = frame(number);
  return here.page == page && here.changed && here.written.load(std::memory_order_relaxed) >= plan_.page;
}

/// Offers the run of a page that is whole, if the run's other pages are whole, too. Two ranks may offer the
/// same run. Starts storing if no rank stores now.
void NodePages::offer_run_of(Index page) {
  Head& all = head();
  if (start_ == nullptr || run_ == 0 || all.stays_behind) return;
  const Index first = run_ == 1 ? page : page / run_ * run_;
  for (Index each = first; each < first + run_; ++each) {
    const std::optional<FrameNumber> found = find(each);
    if (!found || !is_to_be_stored_ahead(*found, each)) return;
  }
  {
    const node::Locked lock(all.offers, transport_);
    if (all.offered_count == all.offered.size()) return;
    all.offered[all.offered_count++] = first;
    if (all.is_storing.exchange(true)) return;
  }
  if (guarded(start_).is_ok()) return;
  const node::Locked lock(all.offers, transport_);
  all.stays_behind = true;
  all.is_storing = false;
}

void NodePages::store_offered() {
  Head& all = head();
  for (;;) {
    Index first = 0;
    {
      const node::Locked lock(all.offers, transport_);
      if (all.offered_count == 0 || all.stays_behind) {
        all.offered_count = 0;
        all.is_storing = false;
        return;
      }
      first = all.offered.front();
      std::shift_left(all.offered.begin(), all.offered.begin() + all.offered_count--, 1);
    }
    // The next flush stores the pages, and returns the error if that fails again.
    if (!guarded([&] { return store_ahead(first); }).is_ok()) all.stays_behind = true;
  }
}

/// Stores the run, unless a user has locked or writes to one of its pages at this moment, or a page is no
/// longer whole.
Status NodePages::store_ahead(Index first) {
  std::vector<std::pair<Index, FrameNumber>> run;
  run.reserve(static_cast<std::size_t>(run_));
  for (Index page = first; page < first + run_; ++page) {
    const std::optional<FrameNumber> found = find(page);
    if (!found || !frame(*found).lock.try_lock()) break;
    run.emplace_back(page, *found);
    if (are_strips_written(*found) || !is_to_be_stored_ahead(*found, page)) break;
  }
  const bool is_whole = std::ssize(run) == run_ && !are_strips_written(run.back().second) &&
                        is_to_be_stored_ahead(run.back().second, run.back().first);
  const Status stored = is_whole ? guarded([&] { return store_run(run); }) : Status();
  for (const auto& [page, number] : run) {
    if (is_whole && stored.is_ok()) frame(number).is_stored_ahead = true;
    frame(number).lock.unlock();
  }
  return stored;
}

}  // namespace tailrace::shared
