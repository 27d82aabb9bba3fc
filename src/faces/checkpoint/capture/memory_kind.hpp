// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::capture {

struct MemoryRange {
  const std::byte* begin = nullptr;
  Bytes bytes = 0;
};

/// Returns success if nothing but this process's own instructions and system calls can write to any of the
/// memory: it belongs to no file, is shared with no process, and is no stack. Otherwise returns
/// Code::unsupported; the text says what the memory is.
Status check_private(std::span<const MemoryRange> ranges);

/// Returns success if no device has memory of this process registered (RDMA), and otherwise
/// Code::unsupported: a device writes past any protection, and the kernel tells only how much memory is
/// registered, not which.
Status check_not_registered();

}  // namespace tailrace::capture
