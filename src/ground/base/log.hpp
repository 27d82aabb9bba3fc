// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>

namespace tailrace {

enum class LogLevel { error, warn, info, debug };

/// Sets the most talkative level that is still printed: later calls of log() above it print nothing.
void set_log_level(LogLevel level);
[[nodiscard]] bool logs(LogLevel level);
/// Prints one line on standard error, in one system call, so that lines of several ranks do not mix.
/// Thread-safe.
void log(LogLevel level, std::string_view message);
/// Prints the line likewise, if messages of `level` are printed, without the level's name: it is neither an
/// error nor a warning.
void log_line(LogLevel level, std::string_view message);

}  // namespace tailrace
