// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// TAILRACE_MEMORY through the public face. A call that needs more of a node fails with the same error on all
// ranks, and the session goes on. Asynchronous writes wait.
#include <algorithm>

#include "mpi/scene.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

constexpr tr_index side = 1024;  // an array of 8 MiB

class Session {
 public:
  explicit Session(const char* options) { CHECK_EQ(tr_init(state().comm, &compute_, options), TR_OK); }
  ~Session() { CHECK_EQ(tr_finalize(), TR_OK); }

 private:
  MPI_Comm compute_ = MPI_COMM_NULL;
};

/// A block of a square of doubles, and its values.
struct Square {
  Square() {
    const tr_index shape[] = {side, side};
    tr_index lower[2], upper[2];
    CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_OK);
    CHECK_EQ(tr_layout_bounds(layout, 0, lower, upper), TR_OK);
    values.assign(static_cast<std::size_t>((upper[0] - lower[0]) * (upper[1] - lower[1])), 2.5);
  }
  ~Square() { tr_layout_free(&layout); }
  Square(const Square&) = delete;
  Square& operator=(const Square&) = delete;

  tr_layout* layout = nullptr;
  std::vector<double> values;
};

std::size_t write_square(const Square& square, const std::string& path, const char* mode) {
  tr_file* const file = tr_fopen(path.c_str(), mode);
  if (!CHECK(file != nullptr)) return 0;
  const std::size_t written = tr_fwrite_array(square.values.data(), TR_F64, square.layout, file);
  const std::string why = written == 0 ? tr_error() : "";
  CHECK(same_on_all_ranks(why));
  CHECK_EQ(tr_fclose(file), 0);
  if (written == 0) CHECK(why.find("TAILRACE_MEMORY") != std::string::npos);
  return written;
}

int open_portions(const std::string& path, tr_index rows) {
  const tr_index shape[] = {8 * side, side}, portion[] = {rows, side};
  tr_window* window = nullptr;
  const int code = tr_window_open(path.c_str(), "w", TR_F64, 2, shape, portion, nullptr, 1, nullptr, &window);
  CHECK(same_on_all_ranks(code == TR_OK ? "" : tr_error()));
  if (code == TR_OK) CHECK_EQ(tr_window_close(&window), TR_OK);
  return code;
}

}  // namespace

MPI_TEST(budget, refuses_what_does_not_fit_and_the_session_goes_on) {
  const std::string directory = fresh_directory("budget");
  CapturedStderr captured;
  {
    const Session session("memory=40MiB io_buffer=64MiB staging=1MiB log=info");
    const Square square;
    const std::size_t all = side * side;
    CHECK_EQ(write_square(square, directory + "/array", "wp"), all);
    CHECK_EQ(write_square(square, directory + "/array", "wps"), std::size_t{0});  // stripes of 64 MiB
    CHECK_EQ(write_square(square, directory + "/array", "wp"), all);
    CHECK_EQ(open_portions(directory + "/portions", 4 * side), TR_ERR_MEMORY);
    CHECK_EQ(open_portions(directory + "/portions", side / 8), TR_OK);
  }
  const std::string told = captured.text();
  if (rank() != 0) return;
  for (const char* text :
       {"plan: memory=40MiB on each node: staging=1MiB", "of 40MiB, at most ", "stripes 16", "portions "})
    CHECK(told.find(text) != std::string::npos);
}

MPI_TEST(budget, has_room_for_staging) {
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, "memory=1MiB staging=2MiB"), TR_ERR_SETTINGS);
  CHECK(same_on_all_ranks(tr_error()));
  const std::string why = tr_error();
  CHECK(why.find("TAILRACE_STAGING asks for 2MiB of the 1MiB that TAILRACE_MEMORY") != std::string::npos);
}

/// The stripes leave 1 MiB. A rank's last part of the local file takes 0.7 MiB; its first part, and the
/// pieces for another node, do not fit and are let through one by one.
MPI_TEST(budget, that_is_full_holds_up_writes_and_fails_none) {
  const std::string directory = fresh_directory("budget-full");
  const std::size_t all = side * side;
  CapturedStderr captured;
  {
    const Session session("memory=17MiB io_buffer=32MiB staging=512KiB log=info");
    const Square square;
    for (int i = 0; i < 3; ++i) CHECK_EQ(write_square(square, directory + "/array", "wp"), all);
    CHECK_EQ(write_square(square, directory + "/local.%d", "wls"), square.values.size());
  }
  if (const std::string told = captured.text(); rank() == 0) {
    CHECK(told.find("of 17MiB, at most 16.") != std::string::npos);
    CHECK(told.find("stripes 16.") != std::string::npos);
  }
  const Session session(nullptr);
  const Square square;
  std::vector<double> read(square.values.size(), 0.0);
  for (const char* const name : {"/array", "/local.%d"}) {
    tr_file* const file = tr_fopen((directory + name).c_str(), name[1] == 'a' ? "rp" : "rl");
    if (!CHECK(file != nullptr)) return;
    CHECK_EQ(tr_fread_array(read.data(), TR_F64, square.layout, file), name[1] == 'a' ? all : read.size());
    CHECK(read == square.values);
    std::fill(read.begin(), read.end(), 0.0);
    CHECK_EQ(tr_fclose(file), 0);
  }
}

MPI_TEST_MAIN
