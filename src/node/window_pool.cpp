// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "node/window_pool.hpp"

#include <algorithm>
#include <new>

#include "comm/switchboard.hpp"

namespace tailrace::node {

namespace {

/// Windows begin on pages, so that storage may copy from them page by page.
constexpr Bytes page = 4096;
constexpr Bytes round_up(Bytes bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

Result<std::unique_ptr<WindowPool>> WindowPool::create(comm::Line& node, int aggregators, Bytes window,
                                                       int slots, bool proxies, bool huge_pages,
                                                       Budget& budget) {
  std::unique_ptr<WindowPool> pool(new WindowPool(budget));
  pool->me_ = node.rank();
  pool->ranks_ = node.size();
  pool->transport_ = &node.board().transport();
  pool->window_ = round_up(window);
  pool->slots_ = slots;
  pool->batch_ = std::max(1, slots / 16);
  pool->passing_ = pool->ranks_ + (proxies ? 1 : 0);
  // All ranks make an equal part of the memory: fresh memory takes seconds for each ten gigabytes.
  const Bytes whole = aggregators * pool->ring_bytes();
  const std::vector<Bytes> parts(static_cast<std::size_t>(pool->ranks_),
                                 (whole + pool->ranks_ - 1) / pool->ranks_);
  const Status drawn = pool->me_ < aggregators ? pool->drawn_.take(pool->ring_bytes()) : Status();
  Result<std::unique_ptr<NodeMemory>> memory =
      NodeMemory::create(node, parts, huge_pages, NodeMemory::everything, drawn);
  TR_TRY(memory.status());
  pool->memory_ = std::move(*memory);
  pool->memory_->map_all();  // every rank writes to the windows of each aggregator
  if (pool->me_ < aggregators) {
    new (&pool->board(pool->me_)) Board();
    for (int s = 0; s < slots; ++s) {
      const auto number = static_cast<std::uint64_t>(s);
      new (&pool->slot(pool->me_, number)) Slot();
      pool->slot(pool->me_, number).turn = number;
    }
    for (int r = 0; r < pool->passing_; ++r) new (&pool->passed(pool->me_, r)) Passed();
  }
  // Nobody may look at a board before its rank has made it.
  TR_TRY(node.agree({{}, "the windows of a node's ranks", {}}).status);
  return pool;
}

Bytes WindowPool::board_bytes() const {
  return round_up(static_cast<Bytes>(sizeof(Board)) + slots_ * static_cast<Bytes>(sizeof(Slot)) +
                  passing_ * static_cast<Bytes>(sizeof(Passed)));
}

Bytes WindowPool::ring_bytes() const { return board_bytes() + slots_ * window_; }

/// The parts of the ranks follow each other.
std::byte* WindowPool::ring(int aggregator) const { return memory_->part(0) + aggregator * ring_bytes(); }

WindowPool::Board& WindowPool::board(int aggregator) const {
  return *reinterpret_cast<Board*>(ring(aggregator));
}

WindowPool::Slot& WindowPool::slot(int aggregator, std::uint64_t number) const {
  return board(aggregator).slots()[number % static_cast<std::uint64_t>(slots_)];
}

WindowPool::Passed& WindowPool::passed(int aggregator, int rank) const {
  return reinterpret_cast<Passed*>(board(aggregator).slots() + slots_)[rank];
}

std::byte* WindowPool::data(int aggregator, std::uint64_t number) const {
  const auto index = static_cast<Bytes>(number % static_cast<std::uint64_t>(slots_));
  return ring(aggregator) + board_bytes() + index * window_;
}

bool WindowPool::is_open(int aggregator, std::uint64_t number) const {
  if (slot(aggregator, number).turn.load() != number) return false;
  // Another process may have freed the window after a thread of this one had passed it. A chain through that
  // process orders the two. The loads make a chain inside of this process, where a thread sanitizer looks.
  for (const auto& before : passed(aggregator, me_).before) (void)before.load();
  return true;
}

bool WindowPool::is_over(int aggregator, std::uint64_t number) const {
  return slot(aggregator, number).turn.load() > number;
}

bool WindowPool::is_loaded(int aggregator, std::uint64_t number) const {
  return slot(aggregator, number).loaded.load() == number + 1;
}

Bytes WindowPool::loaded_bytes(int aggregator, std::uint64_t number) const {
  return slot(aggregator, number).bytes;
}

bool WindowPool::all_passed(int aggregator, Lane lane, std::uint64_t number) const {
  for (int r = 0; r < passing_; ++r) {
    if (passed(aggregator, r).before[static_cast<int>(lane)].load() <= number) return false;
  }
  return true;
}

void WindowPool::pass(int aggregator, Lane lane, int rank, std::uint64_t number) {
  std::atomic<std::uint64_t>& before = passed(aggregator, rank).before[static_cast<int>(lane)];
  const std::uint64_t first = before.load();
  before.store(number + 1);
  // Windows further back lie nowhere any more.
  const auto slots = static_cast<std::uint64_t>(slots_);
  for (std::uint64_t n = std::max(first, number + 1 - std::min(slots, number + 1)); n <= number; ++n)
    free_if_taken(aggregator, n);
  // The aggregator waits for the last rank, so the others need not wake it.
  if (all_passed(aggregator, lane, number)) board(aggregator).bell.ring();
}

void WindowPool::free(int aggregator, std::uint64_t number) {
  slot(aggregator, number).turn.store(number + static_cast<std::uint64_t>(slots_));
  // Ranks that wait for memory wake up for several windows at a time, or they would take the core from the
  // thread that writes. A rank that waits for just this one finds it a moment later by itself.
  if (number % static_cast<std::uint64_t>(batch_) == 0) board(aggregator).bell.ring();
}

void WindowPool::set_loaded(int aggregator, Lane lane, std::uint64_t number, Bytes bytes) {
  Slot& held = slot(aggregator, number);
  held.bytes = bytes;
  held.lane = lane;
  held.loaded.store(number + 1);
  free_if_taken(aggregator, number);
  board(aggregator).bell.ring();
}

/// The last to come frees the window: a rank that passes, or the aggregator that has loaded what nobody
/// wanted. Each stores first and looks at the others afterwards (sequentially consistent), so that one of
/// them sees all. If two do, they store the same.
void WindowPool::free_if_taken(int aggregator, std::uint64_t number) {
  if (!is_loaded(aggregator, number)) return;
  if (!all_passed(aggregator, slot(aggregator, number).lane, number)) return;
  std::uint64_t expected = number;
  slot(aggregator, number)
      .turn.compare_exchange_strong(expected, number + static_cast<std::uint64_t>(slots_));
}

}  // namespace tailrace::node
