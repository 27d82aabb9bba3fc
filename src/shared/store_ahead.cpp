// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// NodePages stores pages behind the ranks that write on. A page counts as written whole when as many bytes
// were written to it as it has: mostly nobody writes there again. Where that is wrong the page is stored
// twice, but once at most between two flushes, and soon not at all.
#include <algorithm>

#include "base/status.hpp"
#include "shared/node_pages.hpp"

namespace tailrace::shared {

/// Under the frame's lock, before `changed` is set. Returns true if the page is whole by now, and was not
/// before.
bool NodePages::note_written(FrameNumber number, Bytes bytes) {
  if (start_ == nullptr) return false;
  Frame& here = frame(number);
  if (here.is_stored_ahead) {
    // More than a run's bytes: the program writes in rounds, and all but the last would be stored for
    // nothing.
    Head& all = head();
    if (!all.stays_behind && (all.written_again += bytes) > run_ * plan_.page) all.stays_behind = true;
    return false;
  }
  const Bytes before = here.written.load(std::memory_order_relaxed);
  here.written.store(before + bytes, std::memory_order_relaxed);
  return before < plan_.page && before + bytes >= plan_.page;
}

bool NodePages::is_to_be_stored_ahead(FrameNumber number, Index page) const {
  const Frame& here = frame(number);
  return here.page == page && here.changed && here.written.load(std::memory_order_relaxed) >= plan_.page;
}

/// Offers the run of a page that is whole, if its other pages are. Two ranks may offer the same run.
void NodePages::offer_run_of(Index page) {
  Head& all = head();
  if (start_ == nullptr || run_ == 0 || all.stays_behind) return;
  const Index first = run_ == 1 ? page : page / run_ * run_;
  for (Index each = first; each < first + run_; ++each) {
    const std::optional<FrameNumber> found = find(each);
    if (!found || !is_to_be_stored_ahead(*found, each)) return;
  }
  {
    const Locked lock(all.offers, transport_);
    if (all.offered_count == all.offered.size()) return;
    all.offered[all.offered_count++] = first;
    if (all.is_storing.exchange(true)) return;
  }
  if (guarded(start_).is_ok()) return;
  const Locked lock(all.offers, transport_);
  all.stays_behind = true;
  all.is_storing = false;
}

void NodePages::store_offered() {
  Head& all = head();
  for (;;) {
    Index first = 0;
    {
      const Locked lock(all.offers, transport_);
      if (all.offered_count == 0 || all.stays_behind) {
        all.offered_count = 0;
        all.is_storing = false;
        return;
      }
      first = all.offered.front();
      std::shift_left(all.offered.begin(), all.offered.begin() + all.offered_count--, 1);
    }
    // A flush tries again, and tells what failed.
    if (!guarded([&] { return store_ahead(first); }).is_ok()) all.stays_behind = true;
  }
}

/// Stores the run if nobody is using one of its pages at this moment.
Status NodePages::store_ahead(Index first) {
  std::vector<std::pair<Index, FrameNumber>> run;
  run.reserve(static_cast<std::size_t>(run_));
  for (Index page = first; page < first + run_; ++page) {
    const std::optional<FrameNumber> found = find(page);
    if (!found || !frame(*found).lock.try_lock()) break;
    run.emplace_back(page, *found);
    if (!is_to_be_stored_ahead(*found, page)) break;
  }
  const bool is_whole = std::ssize(run) == run_ && is_to_be_stored_ahead(run.back().second, run.back().first);
  const Status stored = is_whole ? guarded([&] { return store_run(run); }) : Status();
  for (const auto& [page, number] : run) {
    if (is_whole && stored.is_ok()) frame(number).is_stored_ahead = true;
    frame(number).lock.unlock();
  }
  return stored;
}

}  // namespace tailrace::shared
