// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <thread>

#include "base/status.hpp"

namespace tailrace {

/// Starts a thread of the library's own, with default floating-point state and all signals blocked: a thread
/// would inherit the program's traps and flush-to-zero, and signals belong to the program. Returns
/// Code::memory, with errno, if the system gives no thread.
Result<std::thread> start_thread(std::function<void()> body);

}  // namespace tailrace
