// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/shared/elements/node_elements.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::shared {

namespace {

constexpr Bytes lock_page = 4096;  // of the system

int shift_of(Bytes bytes) { return std::countr_zero(static_cast<std::uint64_t>(bytes)); }

/// Calls `call` with the size of an element as a constant, so that the compiler makes a loop for each size.
template <typename Call>
void with_size(int shift, const Call& call) {
  if (shift == 0) call(std::integral_constant<std::size_t, 1>{});
  if (shift == 1) call(std::integral_constant<std::size_t, 2>{});
  if (shift == 2) call(std::integral_constant<std::size_t, 4>{});
  if (shift == 3) call(std::integral_constant<std::size_t, 8>{});
  if (shift == 4) call(std::integral_constant<std::size_t, 16>{});
}

/// Calls `call` with a function that returns, for the i-th element of the batch, the position of its value.
template <typename Call>
void with_positions(const Batch& batch, const Call& call) {
  if (batch.positions == nullptr)
    call([](std::size_t i) { return i; });
  else
    call([positions = batch.positions](std::size_t i) { return std::size_t{positions[i]}; });
}

/// Returns the sum. Integers wrap around.
template <typename T>
T sum(T one, T other) {
  if constexpr (std::is_integral_v<T>) {
    using Wrapping = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Wrapping>(one) + static_cast<Wrapping>(other));
  } else {
    return one + other;
  }
}

}  // namespace

NodeElements::NodeElements(comm::Transport& transport, const Plan& plan, node::Budget& budget, int me,
                           int ranks)
    : transport_(transport),
      plan_(plan),
      page_shift_(shift_of(plan.page)),
      element_shift_(shift_of(size_of(plan.type))),
      me_(me),
      ranks_(ranks),
      drawn_(budget, node::Use::pages) {}

Result<std::unique_ptr<NodeElements>> NodeElements::create(comm::Line& node, const Plan& plan,
                                                           node::Budget& budget) {
  std::unique_ptr<NodeElements> made(
      new NodeElements(node.board().transport(), plan, budget, node.rank(), node.size()));
  TR_TRY(made->make(node));
  return made;
}

std::unique_ptr<NodeElements> NodeElements::attach(comm::Transport& transport, const Plan& plan,
                                                   node::Budget& budget,
                                                   std::unique_ptr<node::NodeMemory> memory) {
  std::unique_ptr<NodeElements> made(new NodeElements(transport, plan, budget, -1, 0));
  made->memory_ = std::move(memory);
  made->base_ = made->memory_->part(0);
  return made;
}

/// Returns the bytes of the locks. The memory begins with the pages of elements, which may so lie in huge
/// pages; the locks follow.
Bytes NodeElements::lock_bytes() const {
  const Bytes bytes = plan_.pages * static_cast<Bytes>(sizeof(PageLock));
  return std::max((bytes + lock_page - 1) / lock_page * lock_page, lock_page);
}

Status NodeElements::make(comm::Line& node) {
  const Index mine = std::max<Index>(plan_.pages - me_ + ranks_ - 1, 0) / ranks_;
  const Status ready = drawn_.take((mine << page_shift_) + (me_ == 0 ? lock_bytes() : 0));
  std::vector<Bytes> parts(static_cast<std::size_t>(ranks_), 0);
  parts.front() = (plan_.pages << page_shift_) + lock_bytes();
  Result<std::unique_ptr<node::NodeMemory>> memory =
      node::NodeMemory::create(node, parts, plan_.huge_pages, 0, ready, node::NodeMemory::Growth::by_any);
  TR_TRY(memory.status());
  memory_ = std::move(*memory);
  base_ = memory_->part(0);
  const Status added = add_own_memory();
  if (added.is_ok() || added.code() != Code::memory) return added;
  return Status(Code::memory,
                cat("a global array takes ", size_text(parts.front()), " on this node, and ",
                    size_text(mine << page_shift_), " of it are not to be had (",
                    std::string_view(std::strerror(added.error_number())), "): use more nodes"),
                added.error_number());
}

/// Allocates this rank's own pages, so that they lie in memory near to its core, and on the first rank the
/// locks. All begin as zeros.
Status NodeElements::add_own_memory() {
  if (me_ == 0) TR_TRY(memory_->add(page(plan_.pages), lock_bytes()));
  if (ranks_ == 1) return memory_->add(base_, plan_.pages << page_shift_);
  for (Index number = me_; number < plan_.pages; number += ranks_)
    TR_TRY(memory_->add(page(number), plan_.page));
  return {};
}

void NodeElements::copy_own_pages(const NodeElements& old) {
  const Index both = std::min(plan_.pages, old.plan_.pages);
  for (Index number = me_; number < both; number += ranks_)
    std::memcpy(page(number), old.page(number), static_cast<std::size_t>(plan_.page));
}

void NodeElements::get(const Batch& batch, std::byte* values) const {
  with_positions(batch, [&](const auto& position) {
    with_size(element_shift_, [&](auto size) {
      const std::byte* const base = base_;
      for (std::size_t i = 0; i < batch.where.size(); ++i)
        std::memcpy(values + position(i) * size(), base + static_cast<std::size_t>(batch.where[i]) * size(),
                    size());
    });
  });
}

void NodeElements::put(const Batch& batch, const std::byte* values) {
  with_positions(batch, [&](const auto& position) {
    with_size(element_shift_, [&](auto size) {
      std::byte* const base = base_;
      for (std::size_t i = 0; i < batch.where.size(); ++i)
        std::memcpy(base + static_cast<std::size_t>(batch.where[i]) * size(), values + position(i) * size(),
                    size());
    });
  });
}

bool NodeElements::adds(ElementType type) { return size_of(type) > 2; }

void NodeElements::add(const Batch& batch, const std::byte* values, bool is_locked) {
  switch (plan_.type) {
    case ElementType::i32:
      return add_numbers<std::int32_t, 1>(batch, values, is_locked);
    case ElementType::i64:
      return add_numbers<std::int64_t, 1>(batch, values, is_locked);
    case ElementType::u32:
      return add_numbers<std::uint32_t, 1>(batch, values, is_locked);
    case ElementType::u64:
      return add_numbers<std::uint64_t, 1>(batch, values, is_locked);
    case ElementType::f32:
      return add_numbers<float, 1>(batch, values, is_locked);
    case ElementType::f64:
      return add_numbers<double, 1>(batch, values, is_locked);
    case ElementType::c64:
      return add_numbers<float, 2>(batch, values, is_locked);
    case ElementType::c128:
      return add_numbers<double, 2>(batch, values, is_locked);
    case ElementType::i8:
    case ElementType::i16:
    case ElementType::byte:
    case ElementType::u16:
      return;
  }
}

template <typename T, int parts>
void NodeElements::add_numbers(const Batch& batch, const std::byte* values, bool is_locked) {
  const auto add_one = [&](Index number, std::size_t position) {
    auto* const to = reinterpret_cast<T*>(base_) + number * parts;
    T value[parts];
    std::memcpy(value, values + position * sizeof value, sizeof value);
    for (int part = 0; part < parts; ++part) to[part] = sum(to[part], value[part]);
  };
  with_positions(batch, [&](const auto& position) {
    const std::size_t count = batch.where.size();
    if (!is_locked) {
      for (std::size_t i = 0; i < count; ++i) add_one(batch.where[i], position(i));
      return;
    }
    const int shift = page_shift_ - element_shift_;
    for (std::size_t i = 0; i < count;) {
      const Index here = batch.where[i] >> shift;
      const node::Locked lock(locks()[here].lock, transport_);
      for (int in_lock = 0; in_lock < most_in_lock && i < count && batch.where[i] >> shift == here;
           ++in_lock, ++i)
        add_one(batch.where[i], position(i));
    }
  });
}

}  // namespace tailrace::shared
