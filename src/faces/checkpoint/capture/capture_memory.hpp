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

/// Memory into which saves are captured. It is kept from save to save, since fresh memory costs several times
/// a copy, and many times if a virtual machine's host has to find the pages. Therefore it is made before the
/// first save, behind the program, as far as the size of that save is known.
class CaptureMemory {
 public:
  explicit CaptureMemory(node::Budget& budget) : drawn_(budget, node::Use::captures) {}
  ~CaptureMemory();
  CaptureMemory(const CaptureMemory&) = delete;
  CaptureMemory& operator=(const CaptureMemory&) = delete;

  /// Starts a thread that makes memory for a save of `bytes`. Does nothing after a captured save, or if that
  /// much is made already. The thread calls `share` again and again, and stops when the rest exceeds it.
  /// touch() makes the rest after the ranks' vote on memory.
  void prepare(Bytes bytes, const std::function<Bytes()>& share);
  /// Returns memory to the system: all of it after a refused save (`all`), and the prepared part if no save
  /// has captured yet.
  void give_back(bool all) {
    if (all || !is_reserved_) release();
  }
  /// Blocks until the thread has made all memory that prepare() has asked for.
  void await_prepared();

  /// Ends the thread, draws at least `bytes` on the budget, and reserves addresses for them. To be called
  /// before the ranks' vote. Returns Code::memory, and holds nothing, if budget, node or addresses do not
  /// suffice.
  Status reserve(Bytes bytes);
  /// Returns the memory that touch() will take of this node.
  [[nodiscard]] node::MemoryNeed need(std::int32_t node) const {
    return {node, size_ - touched_, available_};
  }
  /// Makes the memory be there. It runs after the vote.
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
  Bytes mapped_ = 0;  // addresses; more than `size_` while it may still grow
  std::atomic<Bytes> touched_{0};
  Bytes available_ = 0;       // of the node, when it was last looked at
  bool is_reserved_ = false;  // a save has said how much it takes
  std::atomic<bool> stop_{false};
  std::function<Bytes()> share_;
  std::thread thread_;
};

}  // namespace tailrace::capture
