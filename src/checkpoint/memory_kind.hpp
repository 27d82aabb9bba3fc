// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include "base/status.hpp"
#include "base/types.hpp"

namespace tailrace::checkpoint {

struct MemoryRange {
  const std::byte* begin = nullptr;
  Bytes bytes = 0;
};

/// Whether nobody but this process's own instructions and system calls can write to any of it: memory of no
/// file, shared with no process, and neither a stack. Code::unsupported, with what it is otherwise.
Status check_private(std::span<const MemoryRange> ranges);

/// Whether no device has memory of this process registered (RDMA): it would write past any protection. The
/// kernel tells how much is, not what. Code::unsupported.
Status check_not_registered();

}  // namespace tailrace::checkpoint
