// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <thread>

#include "base/status.hpp"

namespace tailrace {

/// Starts a thread of the library's own. It has default floating-point state and all signals blocked: a
/// thread inherits the program's traps and flush-to-zero, and signals belong to the program. Code::memory,
/// with errno, if there is none to be had.
Result<std::thread> start_thread(std::function<void()> body);

}  // namespace tailrace
