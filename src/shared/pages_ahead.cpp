// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// NodePages brings in pages before anybody needs them.
#include <algorithm>
#include <vector>

#include "shared/node_pages.hpp"

namespace tailrace::shared {

namespace {

/// A look for a page that makes room goes no further than this: others wait for the directory.
constexpr int most_looks = 64;
/// The most that one call of storage brings: its pages are there together, and a reader may wait for the
/// first.
constexpr Bytes largest_load = Bytes{4} << 20;

}  // namespace

void NodePages::bring_ahead(std::span<const Index> pages) {
  std::vector<Coming> coming;
  std::vector<FrameNumber> frames;
  const Status has_memory = guarded([&] {
    coming.resize(pages.size());
    frames.resize(pages.size());
    return Status();
  });
  if (!has_memory.is_ok()) return;
  const Bytes stored = claim_ahead(pages, coming, frames);
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
    load_ahead(std::span(coming).subspan(at, end - at), stored);
    at = end;
  }
}

/// Makes `coming` those of the pages that are to be brought in, and marks them so. `coming` and `frames` are
/// as long as `pages`. Returns where the bytes on storage end.
Bytes NodePages::claim_ahead(std::span<const Index> pages, std::vector<Coming>& coming,
                             std::vector<FrameNumber>& frames) {
  const Locked directory(head().directory, transport_);
  const Bytes stored = head().stored;
  std::size_t claimed = 0;
  for (const Index page : pages) {
    if (page << page_shift_ >= stored) break;
    if (find_in_chain(page) != nobody) continue;
    frames[claimed] = take_spare();
    if (frames[claimed] == nobody) break;
    coming[claimed++].page = page;
  }
  coming.resize(claimed);
  frames.resize(claimed);
  // Frames that follow one another have memory that does, which one read fills.
  std::ranges::sort(frames);
  for (std::size_t i = 0; i < claimed; ++i) {
    coming[i].frame = frames[i];
    frame(frames[i]).page = shared::coming(coming[i].page);
    link(frames[i], coming[i].page);
  }
  return stored;
}

/// Under the directory's lock. Returns a frame without a page, locked, if one can be had and nobody misses
/// its page, or nobody. Pages that were used keep their chance of staying: only who needs room takes it.
FrameNumber NodePages::take_spare() {
  Head& all = head();
  if (const FrameNumber number = all.first_free; number != nobody) {
    if (!frame(number).lock.try_lock()) return nobody;  // whoever has freed it is about to let go of it
    all.first_free = frame(number).next;
    return number;
  }
  if (const FrameNumber number = take_used_once(false); number != nobody) return number;
  const auto draw = [this] { return guarded([this] { return drawn_.take(plan_.page); }); };
  if (all.made < all.most && (all.made < least_ || draw().is_ok())) {
    frame(all.made).lock.lock(transport_);  // nobody knows it yet
    return all.made++;
  }
  for (int looks = 0; looks < most_looks; ++looks) {
    const FrameNumber number = all.hand;
    all.hand = (all.hand + 1) % all.made;
    Frame& from = frame(number);
    if (!from.lock.try_lock()) continue;
    const Index page = from.page;
    if (page >= 0 && from.use == unused && !from.changed && !is_held(number) && take_out(number, page))
      return number;
    from.lock.unlock();
  }
  return nobody;
}

/// Loads pages that follow one another, into memory that does, too.
void NodePages::load_ahead(std::span<Coming> run, Bytes stored) {
  const Bytes begin = run.front().page << page_shift_;
  const Bytes length = std::min(std::ssize(run) << page_shift_, stored - begin);
  const std::span memory(memory_of(run.front().frame), static_cast<std::size_t>(length));
  // A read that fails may have filled some of it.
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
}

}  // namespace tailrace::shared
