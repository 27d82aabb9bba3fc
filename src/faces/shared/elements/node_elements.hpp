// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ground/node/budget.hpp"
#include "ground/node/node_memory.hpp"
#include "ground/node/shared_lock.hpp"

namespace tailrace::shared {

/// Elements by their numbers in a node, and the positions of their values in the caller's list.
struct Batch {
  std::span<const Index> where;
  const std::uint32_t* positions = nullptr;  // nullptr: they follow one another
};

/// The elements of a global array that belong to the ranks of one node: one array, which they share, in
/// pages that they own in turn. get(), put() and add() check no bounds: call has() before.
class NodeElements {
 public:
  struct Plan {
    ElementType type = ElementType::byte;
    Bytes page = 0;  // a power of 2
    Index pages = 0;
    bool huge_pages = false;
  };

  /// Collective over `node`, the ranks of one node. The elements are zeros. Nobody may touch them before all
  /// ranks have returned with success: their statuses may differ.
  static Result<std::unique_ptr<NodeElements>> create(comm::Line& node, const Plan& plan,
                                                      node::Budget& budget);

  /// Local. Elements that ranks of this node have made, on a server of the node.
  static std::unique_ptr<NodeElements> attach(comm::Transport& transport, const Plan& plan,
                                              node::Budget& budget, std::unique_ptr<node::NodeMemory> memory);
  [[nodiscard]] const node::NodeMemory& memory() const { return *memory_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }

  // Local.
  [[nodiscard]] ElementType type() const { return plan_.type; }
  [[nodiscard]] Index pages() const { return plan_.pages; }
  [[nodiscard]] bool has(Index number, Index count) const {
    const Index all = plan_.pages << page_shift_ >> element_shift_;
    return number >= 0 && count >= 0 && number <= all && count <= all - number;
  }
  [[nodiscard]] std::byte* element(Index number) const { return base_ + (number << element_shift_); }
  // They wait for nobody, but for add().
  void get(const Batch& batch, std::byte* values) const;
  void put(const Batch& batch, const std::byte* values);
  /// Waits for other ranks that add to the same page, if `is_locked`.
  void add(const Batch& batch, const std::byte* values, bool is_locked);
  /// Returns true if elements of this type can be added.
  static bool adds(ElementType type);
  /// Makes page tables for all pages: first accesses would take long. All ranks have returned from create().
  void map() { memory_->map_all(); }
  /// Copies the pages of this rank from `old`, as far as both have them.
  void copy_own_pages(const NodeElements& old);

 private:
  /// A rank that adds gives the others a chance after so many elements of one page.
  static constexpr int most_in_lock = 256;
  struct alignas(64) PageLock {
    node::SharedLock lock;
  };

  NodeElements(comm::Transport& transport, const Plan& plan, node::Budget& budget, int me, int ranks);
  Status make(comm::Line& node);
  Status add_own_memory();
  [[nodiscard]] std::byte* page(Index number) const { return base_ + (number << page_shift_); }
  [[nodiscard]] Bytes lock_bytes() const;
  [[nodiscard]] PageLock* locks() const { return reinterpret_cast<PageLock*>(page(plan_.pages)); }
  template <typename T, int parts>
  void add_numbers(const Batch& batch, const std::byte* values, bool is_locked);

  comm::Transport& transport_;
  const Plan plan_;
  const int page_shift_;
  const int element_shift_;
  const int me_;
  const int ranks_;
  node::Draw drawn_;  // for this rank's pages
  std::unique_ptr<node::NodeMemory> memory_;
  std::byte* base_ = nullptr;
};

}  // namespace tailrace::shared
