// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace bench {

/// A program of this build that has its turn when it is told to, and sleeps between its turns. Ends this
/// program with a message if the other one ends early.
class PeerProcess {
 public:
  /// Starts `program`, which lies beside this one. It looks for libraries in `library_path` first.
  PeerProcess(const std::string& program, std::vector<std::string> arguments,
              const std::string& library_path);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Has the program take its turn, and returns the numbers that it answers.
  std::vector<double> turn();
  /// Returns what the program said when it was ready.
  [[nodiscard]] const std::string& about() const { return about_; }

 private:
  std::string line();

  std::string program_, about_;
  pid_t pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace bench
