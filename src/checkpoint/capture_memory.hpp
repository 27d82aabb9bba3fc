// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>

#include "base/status.hpp"
#include "base/types.hpp"

namespace tailrace::checkpoint {

/// Memory into which saves are captured: kept from save to save, since fresh memory costs several times a
/// copy.
class CaptureMemory {
 public:
  CaptureMemory() = default;
  ~CaptureMemory();
  CaptureMemory(const CaptureMemory&) = delete;
  CaptureMemory& operator=(const CaptureMemory&) = delete;

  /// At least `bytes`, all of it there. Code::memory if it cannot be had: nothing is held then.
  Status reserve(Bytes bytes);
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  void release();

  std::byte* data_ = nullptr;
  Bytes size_ = 0;
};

}  // namespace tailrace::checkpoint
