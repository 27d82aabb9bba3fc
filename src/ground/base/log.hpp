// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>

namespace tailrace {

enum class LogLevel { error, warn, info, debug };

/// Lines above this level are not printed.
void set_log_level(LogLevel level);
[[nodiscard]] bool logs(LogLevel level);
/// Prints one line on standard error, with one call so that ranks do not mix within a line. Thread-safe.
void log(LogLevel level, std::string_view message);

}  // namespace tailrace
