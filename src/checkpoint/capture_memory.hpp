// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "base/types.hpp"

namespace tailrace::checkpoint {

/// What a rank brings to a vote on memory.
struct MemoryNeed {
  std::int32_t node = 0;
  Bytes bytes = 0;      // that it will touch
  Bytes available = 0;  // on its node, before anybody touches anything
};
/// Whether each node has what its ranks need together: the same on every rank. Code::memory.
Status check_nodes(std::span<const MemoryNeed> needs);

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
