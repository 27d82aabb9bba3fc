// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/log.hpp"

#include <unistd.h>

#include <atomic>

#include "ground/base/text.hpp"

namespace tailrace {

namespace {

std::atomic<LogLevel> most{LogLevel::warn};

constexpr std::string_view names[] = {"error", "warning", "info", "debug"};

}  // namespace

void set_log_level(LogLevel level) { most.store(level, std::memory_order_relaxed); }

bool logs(LogLevel level) { return level <= most.load(std::memory_order_relaxed); }

namespace {

void print_line(const std::string& line) {
  // If standard error cannot be written to, nobody can be told.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void log(LogLevel level, std::string_view message) {
  if (logs(level)) print_line(cat("tailrace: ", names[static_cast<int>(level)], ": ", message, "\n"));
}

void log_line(LogLevel level, std::string_view message) {
  if (logs(level)) print_line(cat("tailrace: ", message, "\n"));
}

}  // namespace tailrace
