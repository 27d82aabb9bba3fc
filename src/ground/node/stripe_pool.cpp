// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/stripe_pool.hpp"

#include <algorithm>
#include <new>

#include "ground/comm/switchboard.hpp"

namespace tailrace::node {

namespace {

/// Stripes begin on pages, so that storage can copy them page by page.
constexpr Bytes page = 4096;
constexpr Bytes round_up(Bytes bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

Result<std::unique_ptr<StripePool>> StripePool::create(comm::Line& node, int aggregators, Bytes stripe,
                                                       int slots, bool proxies, bool huge_pages,
                                                       Budget& budget) {
  std::unique_ptr<StripePool> pool(new StripePool(budget));
  pool->me_ = node.rank();
  pool->ranks_ = node.size();
  pool->transport_ = &node.board().transport();
  pool->stripe_ = round_up(stripe);
  pool->slots_ = slots;
  pool->batch_ = std::max(1, slots / 16);
  pool->passing_ = pool->ranks_ + (proxies ? 1 : 0);
  // All ranks allocate equal parts of the memory at the same time: allocating takes seconds for each ten
  // gigabytes.
  const Bytes whole = aggregators * pool->ring_bytes();
  const std::vector<Bytes> parts(static_cast<std::size_t>(pool->ranks_),
                                 (whole + pool->ranks_ - 1) / pool->ranks_);
  const Status drawn = pool->me_ < aggregators ? pool->drawn_.take(pool->ring_bytes()) : Status();
  Result<std::unique_ptr<NodeMemory>> memory =
      NodeMemory::create(node, parts, huge_pages, NodeMemory::everything, drawn);
  TR_TRY(memory.status());
  pool->memory_ = std::move(*memory);
  pool->memory_->map_all();  // every rank writes to stripes of each aggregator
  if (pool->me_ < aggregators) {
    new (&pool->board(pool->me_)) Board();
    for (std::uint64_t number = 0; number < static_cast<std::uint64_t>(slots); ++number)
      (new (&pool->slot(pool->me_, number)) Slot())->turn = number;
    for (int r = 0; r < pool->passing_; ++r) new (&pool->passed(pool->me_, r)) Passed();
  }
  // No rank may look at a board before its aggregator has made it.
  TR_TRY(node.agree({{}, "the stripes of a node's ranks", {}}).status);
  return pool;
}

Bytes StripePool::board_bytes() const {
  return round_up(static_cast<Bytes>(sizeof(Board)) + slots_ * static_cast<Bytes>(sizeof(Slot)) +
                  passing_ * static_cast<Bytes>(sizeof(Passed)));
}

StripePool::Board& StripePool::board(int aggregator) const {
  return *reinterpret_cast<Board*>(ring(aggregator));
}

StripePool::Slot& StripePool::slot(int aggregator, std::uint64_t number) const {
  return board(aggregator).slots()[number % static_cast<std::uint64_t>(slots_)];
}

StripePool::Passed& StripePool::passed(int aggregator, int rank) const {
  return reinterpret_cast<Passed*>(board(aggregator).slots() + slots_)[rank];
}

std::byte* StripePool::data(int aggregator, std::uint64_t number) const {
  const auto index = static_cast<Bytes>(number % static_cast<std::uint64_t>(slots_));
  return ring(aggregator) + board_bytes() + index * stripe_;
}

bool StripePool::is_open(int aggregator, std::uint64_t number) const {
  if (slot(aggregator, number).turn.load() != number) return false;
  // Another process may have freed the stripe after a thread of this process had passed it. Atomic operations
  // in that process order the two. The loads below order them within this process as well, where a thread
  // sanitizer can see it.
  for (const auto& before : passed(aggregator, me_).before) (void)before.load();
  return true;
}

bool StripePool::all_passed(int aggregator, Sequence sequence, std::uint64_t number) const {
  for (int r = 0; r < passing_; ++r) {
    if (passed(aggregator, r).before[static_cast<int>(sequence)].load() <= number) return false;
  }
  return true;
}

void StripePool::pass(int aggregator, Sequence sequence, int rank, std::uint64_t number) {
  std::atomic<std::uint64_t>& before = passed(aggregator, rank).before[static_cast<int>(sequence)];
  const std::uint64_t first = before.load();
  before.store(number + 1);
  // Stripes further back have no slot any more.
  const auto slots = static_cast<std::uint64_t>(slots_);
  for (std::uint64_t n = std::max(first, number + 1 - std::min(slots, number + 1)); n <= number; ++n)
    free_if_taken(aggregator, n);
  // The aggregator waits for the last rank. The other ranks need not wake it.
  if (all_passed(aggregator, sequence, number)) board(aggregator).bell.ring();
}

void StripePool::free(int aggregator, std::uint64_t number) {
  slot(aggregator, number).turn.store(number + static_cast<std::uint64_t>(slots_));
  // Rings only once for several stripes. Otherwise the ranks that wait for memory would take the core from
  // the thread that writes. A rank that waits for this very stripe wakes up by itself a moment later.
  if (number % static_cast<std::uint64_t>(batch_) == 0) board(aggregator).bell.ring();
}

void StripePool::set_loaded(int aggregator, Sequence sequence, std::uint64_t number, Bytes bytes) {
  Slot& held = slot(aggregator, number);
  held.bytes = bytes;
  held.sequence = sequence;
  held.loaded.store(number + 1);
  free_if_taken(aggregator, number);
  board(aggregator).bell.ring();
}

/// Frees the stripe if it is loaded and all ranks have passed it. The last one to come frees it: a rank that
/// passes, or the aggregator that has loaded a stripe that nobody needs. Each of them first stores, then
/// looks at the others (sequentially consistent), so at least one sees all. If two do, both store the same
/// value.
void StripePool::free_if_taken(int aggregator, std::uint64_t number) {
  if (!is_loaded(aggregator, number)) return;
  if (!all_passed(aggregator, slot(aggregator, number).sequence, number)) return;
  std::uint64_t expected = number;
  slot(aggregator, number)
      .turn.compare_exchange_strong(expected, number + static_cast<std::uint64_t>(slots_));
}

}  // namespace tailrace::node
