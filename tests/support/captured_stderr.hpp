// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/mpi_test.hpp"

namespace tailrace::mpi_test {

/// What this process prints on standard error, kept until asked for.
class CapturedStderr {
 public:
  CapturedStderr()
      : path_("stderr-of-rank-" + std::to_string(rank()) + "-" + std::to_string(::getpid())),
        before_(::dup(STDERR_FILENO)) {
    const int file = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0644);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  ~CapturedStderr() { text(); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;
  std::string text() {
    if (before_ < 0) return text_;
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    before_ = -1;
    std::ifstream file(path_, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    std::filesystem::remove(path_);
    return text_;
  }

 private:
  std::string path_;
  std::string text_;
  int before_;
};

}  // namespace tailrace::mpi_test
