// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ground/node/budget.hpp"
#include "ground/node/node_memory.hpp"
#include "ground/node/shared_lock.hpp"

namespace tailrace::shared {

/// Elements by their numbers in a node, and for each the position of its value in the caller's list.
struct Batch {
  std::span<const Index> where;
  const std::uint32_t* positions = nullptr;  // nullptr: the values follow one another
};

/// The elements of a global array that belong to the ranks of one node. They lie in one array of pages in
/// memory that these ranks share; the ranks own the pages in turn. get(), put() and add() check no bounds:
/// call has() before.
class NodeElements {
 public:
  struct Plan {
    ElementType type = ElementType::byte;
    Bytes page = 0;  // a power of 2
    Index pages = 0;
    bool huge_pages = false;
  };

  /// Collective over `node`, the ranks of one node. The elements are zeros. The ranks may return different
  /// statuses: they must agree before any of them touches the elements.
  static Result<std::unique_ptr<NodeElements>> create(comm::Line& node, const Plan& plan,
                                                      node::Budget& budget);

  /// Local, on a server: maps the elements that ranks of its node have made.
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
  // get() and put() wait for nobody.
  void get(const Batch& batch, std::byte* values) const;
  void put(const Batch& batch, const std::byte* values);
  /// Adds to the elements. With `is_locked` it waits while other ranks add to the same page with the lock,
  /// and no addition is lost.
  void add(const Batch& batch, const std::byte* values, bool is_locked);
  /// Returns true if elements of this type can be added.
  static bool adds(ElementType type);
  /// Makes this process's page tables for all pages, so that first accesses are fast. All ranks must have
  /// returned from create().
  void map() { memory_->map_all(); }
  /// Copies this rank's own pages from `old`, as many as both have.
  void copy_own_pages(const NodeElements& old);

 private:
  /// A rank that adds gives up the lock of a page after so many elements, so that other ranks get it.
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
