// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/mpi_test.hpp"

namespace tailrace::mpi_test {

/// Captures what this process prints on standard error, until text() returns it or the object ends. If a
/// check of the case fails on any rank, or if the case hangs, the captured text is printed nevertheless.
class CapturedStderr {
 public:
  CapturedStderr()
      : path_("stderr-of-rank-" + std::to_string(rank()) + "-" + std::to_string(::getpid())),
        before_(::dup(STDERR_FILENO)) {
    const int file = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_APPEND | O_CLOEXEC, 0644);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
    state().show_capture = show;
  }
  ~CapturedStderr() { text(); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;
  std::string text() {
    if (before_ < 0) return text_;
    state().show_capture = nullptr;
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    before_ = -1;
    std::ifstream file(path_, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    std::filesystem::remove(path_);
    keep(text_);
    return text_;
  }

 private:
  /// Keeps captured text for the end of the case. A case may capture hundreds of times; only the last 64 KiB
  /// are kept, since the last output tells most.
  static void keep(const std::string& text) {
    std::string& all = state().captured;
    all += text;
    if (!text.empty() && text.back() != '\n') all += '\n';
    constexpr std::size_t most = 64 << 10;
    if (all.size() > most) all.erase(0, all.size() - most);
  }
  /// Prints the text captured so far to `to`. The Watch's thread calls it while the capture goes on.
  static void show(int to) {
    char buffer[4096];
    off_t at = 0;
    for (ssize_t got = 0; (got = ::pread(STDERR_FILENO, buffer, sizeof(buffer), at)) > 0; at += got)
      if (::write(to, buffer, static_cast<std::size_t>(got)) != got) return;
  }

  std::string path_;
  std::string text_;
  int before_;
};

/// Returns the text without the lines that say at the end of a session what it has written and read.
inline std::string without_summaries(const std::string& text) {
  std::string rest;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (!line.starts_with("tailrace: ") || line.find("; the model waited ") == std::string::npos)
      rest += line;
  }
  return rest;
}

}  // namespace tailrace::mpi_test
