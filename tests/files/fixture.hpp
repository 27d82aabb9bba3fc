// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Helpers for tests of collective files: sessions of all ranks, and a directory for their files.
#pragma once

#include <tailrace.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/mpi_test.hpp"

namespace tailrace::files_test {

using namespace mpi_test;

/// A session of all ranks, for a case or a part of it.
class Session {
 public:
  explicit Session(const std::string& options = "") {
    const std::string all = "staging=1MiB " + options;
    if (!CHECK_EQ(tr_init(state().comm, &compute_, all.c_str()), TR_OK))
      std::fprintf(stderr, "  %s\n", tr_error());
  }
  ~Session() {
    if (!finished_) CHECK_EQ(finish(), TR_OK);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  int finish() {
    finished_ = true;
    return tr_finalize();
  }
  [[nodiscard]] MPI_Comm compute() const { return compute_; }

 private:
  MPI_Comm compute_ = MPI_COMM_NULL;
  bool finished_ = false;
};

/// Collective. Makes a directory of this program's own below the current one, new and empty.
inline std::string fresh_directory(const std::string& name) {
  const std::string path = "files-" + name + "-n" + std::to_string(size());
  if (rank() == 0) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  MPI_Barrier(state().comm);
  return path;
}

/// Collective. Removes a directory once all ranks have called it.
inline void remove_directory(const std::string& path) {
  MPI_Barrier(state().comm);
  if (rank() == 0) std::filesystem::remove_all(path);
}

/// Checks that a call succeeded, and prints why if it did not.
inline void ok(int code, const char* what) {
  if (!CHECK_EQ(code, TR_OK)) std::fprintf(stderr, "  %s: %s\n", what, tr_error());
}

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Collective. True if the result of a call, errno and tr_error() are the same on all ranks.
inline bool agreed(long value, int error) {
  return same_on_all_ranks(std::to_string(value) + " " + std::to_string(error) + " " + tr_error());
}

}  // namespace tailrace::files_test
