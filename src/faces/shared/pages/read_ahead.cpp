// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/pages/read_ahead.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::shared {

namespace {

/// A guess is at most so many bytes, and at most so many pages: they are looked up under one lock of the
/// directory, for which other ranks wait.
constexpr Bytes most_bytes_ahead = Bytes{16} << 20;
constexpr Index most_pages_ahead = 512;

Index longest_window(const NodePages& pages) {
  return std::clamp(most_bytes_ahead / pages.plan().page, Index{1},
                    std::min(most_pages_ahead, pages.most_ahead()));
}

}  // namespace

ReadAhead::ReadAhead(executor::Threads& threads, NodePages& pages, int rank, int ranks)
    : threads_(threads),
      key_(threads.new_own_key()),
      pages_(pages),
      rank_(rank),
      longest_step_(ranks),
      longest_window_(longest_window(pages)) {}

void ReadAhead::saw_for_others(Index page) {
  const std::lock_guard lock(others_mutex_);
  if (page != others_.page) follow(others_, page);
}

void ReadAhead::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    next_ = {};
  }
  threads_.drain(key_);
}

void ReadAhead::go_on() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = false;
}

/// Notes that the reader reads `page`, and begins a guess if the reader has gone on in the same way for long
/// enough.
void ReadAhead::follow(Reader& reader, Index page) {
  const Index at = pages_.near_number(page);
  const Index step = at - reader.at;
  const bool goes_on = step == reader.step;
  if (!goes_on) judge(reader);
  reader.page = page;
  reader.at = at;
  if (goes_on) {
    if (++reader.steps >= reader.patience) guess(reader);
    return;
  }
  const bool is_forward = step > 0 && step <= longest_step_;
  reader.step = is_forward ? step : 0;
  reader.steps = is_forward ? 1 : 0;
  reader.window = 0;
}

/// Judges the guesses when the reader goes elsewhere: they were right if the reader has used at least half of
/// their pages. After wrong guesses the reader must go on for twice as long before the next guess.
void ReadAhead::judge(Reader& reader) {
  if (reader.window == 0) return;
  const bool was_right = reader.at - reader.begin >= reader.end - reader.at;
  reader.patience = was_right ? least_patience : std::min(2 * reader.patience, most_patience);
}

bool ReadAhead::bring_next() {
  if (own_.steps < own_.patience || !pages_.is_storage_fast()) return false;
  std::vector<Index> next;
  const Index here = pages_here();
  for (Index near = own_.at + own_.step; near < here && std::ssize(next) < longest_step_; near += own_.step)
    next.push_back(page_of(near));
  return pages_.bring_ahead(next, 1) > 0;
}

/// Returns how many pages of the file belong to this node.
Index ReadAhead::pages_here() const {
  const NodePages::Plan& plan = pages_.plan();
  const Bytes size = pages_.size();
  return plan.deal != nullptr ? plan.deal->pages_of_node_of(rank_, size) : (size + plan.page - 1) / plan.page;
}

Index ReadAhead::page_of(Index near) const {
  const PageDeal* deal = pages_.plan().deal.get();
  return deal != nullptr ? deal->page_of_near(rank_, near) : near;
}

/// Has the next pages brought in if about half of the last guess, or less, is left. Does nothing if storage
/// is as fast as memory.
void ReadAhead::guess(Reader& reader) {
  if (pages_.is_storage_fast()) return;
  const bool is_first = reader.window == 0;
  if (!is_first && reader.end - reader.at > reader.window / 2 + 1) return;
  const Index window = std::min(is_first ? first_window : 2 * reader.window, longest_window_);
  const Index begin = std::max(is_first ? 0 : reader.end, reader.at + 1);
  const Index end = std::min(reader.at + 1 + window, pages_here());
  if (begin >= end || !submit(begin, end - begin)) return;
  if (is_first) reader.begin = begin;
  reader.window = window;
  reader.end = end;
}

/// Has a thread bring in pages. Returns false if the last ones still wait for the thread, or if there is no
/// thread or room for a job.
bool ReadAhead::submit(Index first, Index count) {
  const std::lock_guard lock(mutex_);
  if (next_.count > 0 || is_stopped_ || threads_.waiting_threads() == 0) return false;
  next_ = {first, count};
  if (is_busy_) return true;
  const Status queued = guarded([&] {
    threads_.submit(key_, [this] { work(); });
    is_busy_ = true;
    return Status();
  });
  if (!queued.is_ok()) next_ = {};
  return queued.is_ok();
}

/// Runs on a thread. Brings in the pages in `next_`, and those that come there meanwhile.
void ReadAhead::work() {
  for (;;) {
    Pages now;
    {
      const std::lock_guard lock(mutex_);
      now = std::exchange(next_, {});
      is_busy_ = now.count > 0;
      if (!is_busy_) return;
    }
    (void)guarded([&] {
      pages_.bring_ahead(list(now), now.count);
      return Status();
    });
  }
}

std::vector<Index> ReadAhead::list(const Pages& pages) const {
  std::vector<Index> numbers;
  numbers.reserve(static_cast<std::size_t>(pages.count));
  for (Index near = pages.first; near < pages.first + pages.count; ++near) numbers.push_back(page_of(near));
  return numbers;
}

}  // namespace tailrace::shared
