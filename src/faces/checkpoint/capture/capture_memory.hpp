// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/node/available_memory.hpp"
#include "ground/node/budget.hpp"

namespace tailrace::capture {

/// The memory into which this rank's saves are captured. It is kept from save to save: fresh memory costs
/// several times as much as a copy, and many times as much if the host of a virtual machine has to find the
/// pages. Therefore a thread makes it before the first save, while the program goes on, if prepare() has been
/// told the size of that save.
class CaptureMemory {
 public:
  explicit CaptureMemory(node::Budget& budget) : drawn_(budget, node::Use::captures) {}
  ~CaptureMemory();
  CaptureMemory(const CaptureMemory&) = delete;
  CaptureMemory& operator=(const CaptureMemory&) = delete;

  /// Starts a thread that makes memory for a save of `bytes`. Does nothing once reserve() has been called,
  /// for little memory, or if so much is there already. `share` returns how many bytes this rank may still
  /// take of the node; the thread calls it again and again, and stops when more bytes than that are left to
  /// make. touch() makes them after the ranks' vote on memory.
  void prepare(Bytes bytes, const std::function<Bytes()>& share);
  /// Returns memory to the system. With `all`, after a refused save: everything. Otherwise only what
  /// prepare() has made for a first save, if reserve() was never called.
  void give_back(bool all) {
    if (all || !is_reserved_) release();
  }
  /// Blocks until the thread of prepare() has ended.
  void await_prepared();

  /// Ends the thread of prepare(), draws at least `bytes` on the budget, and reserves addresses for them.
  /// Call it before the ranks vote on the save. Returns Code::memory, and holds nothing, if the budget, the
  /// memory of the node or the addresses do not suffice.
  Status reserve(Bytes bytes);
  /// Returns how much memory of this rank's node `node` touch() will take.
  [[nodiscard]] node::MemoryNeed need(std::int32_t node) const {
    return {node, size_ - touched_, available_};
  }
  /// Makes every page of the memory that is not there yet. Call it after the ranks' vote.
  void touch();
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  Status grow(Bytes size, Bytes room);
  void shrink(Bytes size);
  void release();
  void end_thread();
  void run();

  node::Draw drawn_;  // holds `size_` bytes
  std::byte* data_ = nullptr;
  Bytes size_ = 0;
  Bytes mapped_ = 0;  // reserved addresses: more than `size_` while it may grow in place
  std::atomic<Bytes> touched_{0};
  Bytes available_ = 0;       // of the node, when reserve() looked at it last
  bool is_reserved_ = false;  // a save has said how much it takes
  std::atomic<bool> stop_{false};
  std::function<Bytes()> share_;
  std::thread thread_;
};

}  // namespace tailrace::capture
