// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "base/types.hpp"
#include "checkpoint/memory_need.hpp"

namespace tailrace::checkpoint {

/// Memory into which saves are captured: kept from save to save, since fresh memory costs several times a
/// copy.
class CaptureMemory {
 public:
  CaptureMemory() = default;
  ~CaptureMemory();
  CaptureMemory(const CaptureMemory&) = delete;
  CaptureMemory& operator=(const CaptureMemory&) = delete;

  /// Addresses of at least `bytes`, before a vote. Code::memory if they cannot be had: nothing is held then.
  Status reserve(Bytes bytes);
  /// What touch() will take of this node.
  [[nodiscard]] MemoryNeed need(std::int32_t node) const { return {node, size_ - touched_, available_}; }
  /// Makes the memory be there, after the vote.
  void touch();
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  void release();

  std::byte* data_ = nullptr;
  Bytes size_ = 0;
  Bytes touched_ = 0;
  Bytes available_ = 0;  // when it was last asked for
};

}  // namespace tailrace::checkpoint
