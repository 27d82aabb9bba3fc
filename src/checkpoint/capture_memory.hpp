// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "base/status.hpp"
#include "base/types.hpp"
#include "checkpoint/memory_need.hpp"

namespace tailrace::checkpoint {

/// Memory into which saves are captured: kept from save to save, since fresh memory costs several times a
/// copy, and many times where a virtual machine's host has to find the pages. So it is made before the first
/// save, behind the program, as far as it is known how much that will take.
class CaptureMemory {
 public:
  CaptureMemory() = default;
  ~CaptureMemory();
  CaptureMemory(const CaptureMemory&) = delete;
  CaptureMemory& operator=(const CaptureMemory&) = delete;

  /// A thread begins to make memory for a save of `bytes`, and what it has made stays. Does nothing where a
  /// save was captured already, where so much is made, or more than `most` would be taken: the save itself
  /// is the one to tell. Never fails: what is not made here is made by touch().
  void prepare(Bytes bytes, Bytes most);
  /// Blocks until the thread has made all that prepare() has asked for.
  void await_prepared();

  /// Addresses of at least `bytes`, before a vote; ends the thread. Code::memory if they cannot be had:
  /// nothing is held then.
  Status reserve(Bytes bytes);
  /// What touch() will take of this node.
  [[nodiscard]] MemoryNeed need(std::int32_t node) const { return {node, size_ - touched_, available_}; }
  /// Makes the memory be there, after the vote.
  void touch();
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  bool grow(Bytes size);
  void shrink(Bytes size);
  void release();
  void end_thread();
  void run();

  std::byte* data_ = nullptr;
  Bytes size_ = 0;
  std::atomic<Bytes> touched_{0};
  Bytes available_ = 0;       // when it was last asked for
  bool is_reserved_ = false;  // a save has said how much it takes
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tailrace::checkpoint
