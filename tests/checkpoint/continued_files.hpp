// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Helpers for tests of files that go on from checkpoints: sessions of some of the ranks, a grid, and calls
// that print why they failed.
#pragma once

#include <algorithm>
#include <fstream>
#include <functional>
#include <vector>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"

namespace tailrace::files_test {

inline constexpr tr_index rows = 31, columns = 17;

/// An array over the session's ranks, whose values are computed from their places and a salt.
class Grid {
 public:
  static inline int made = 0;
  Grid() {
    ++made;
    const tr_index shape[] = {rows, columns}, halo[] = {1, 0};
    CHECK_EQ(tr_layout_block(2, shape, halo, &layout), TR_OK);
    CHECK_EQ(tr_layout_bounds(layout, 0, lower_, upper_), TR_OK);
    values.resize(static_cast<std::size_t>((upper_[0] - lower_[0] + 2) * (upper_[1] - lower_[1])));
  }
  ~Grid() { tr_layout_free(&layout); }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;
  void fill(double salt) {
    std::size_t at = static_cast<std::size_t>(upper_[1] - lower_[1]);
    for (tr_index y = lower_[0]; y < upper_[0]; ++y) {
      for (tr_index x = lower_[1]; x < upper_[1]; ++x)
        values[at++] = salt * 1e4 + static_cast<double>(y * columns + x);
    }
  }
  [[nodiscard]] tr_index own() const { return (upper_[0] - lower_[0]) * (upper_[1] - lower_[1]); }
  tr_layout* layout = nullptr;
  std::vector<double> values;

 private:
  tr_index lower_[2] = {}, upper_[2] = {};
};

/// Runs `body` in a session of the first `ranks` ranks alone.
inline void on_ranks(int ranks, const std::function<void()>& body, const std::string& options = "") {
  MPI_Comm part = MPI_COMM_NULL;
  const int before = Grid::made;
  MPI_Comm_split(state().comm, rank() < ranks ? 0 : 1, rank(), &part);
  if (rank() < ranks) {
    MPI_Comm compute = MPI_COMM_NULL;
    const std::string all = "staging=1MiB parallel_threshold=1KiB " + options;
    if (!CHECK_EQ(tr_init(part, &compute, all.c_str()), TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
    body();
    if (!CHECK_EQ(tr_finalize(), TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
  }
  MPI_Comm_free(&part);
  // Layouts are numbered, and the numbers must be the same on all ranks of later sessions. So the other ranks
  // make as many layouts in sessions of their own.
  int made = Grid::made - before;
  MPI_Bcast(&made, 1, MPI_INT, 0, state().comm);
  if (rank() >= ranks) {
    MPI_Comm compute = MPI_COMM_NULL;
    CHECK_EQ(tr_init(MPI_COMM_SELF, &compute, "staging=1MiB"), TR_OK);
    while (Grid::made - before < made) Grid();
    CHECK_EQ(tr_finalize(), TR_OK);
  }
  MPI_Barrier(state().comm);
}

inline tr_checkpoint* create(const std::string& name, const std::string& options = "") {
  tr_checkpoint* cp = nullptr;
  if (!CHECK_EQ(tr_checkpoint_create(name.c_str(), options.c_str(), &cp), TR_OK))
    std::fprintf(stderr, "  %s\n", tr_error());
  return cp;
}

inline int save(tr_checkpoint* cp, std::int64_t step) {
  const int begun = tr_checkpoint_begin(cp, TR_SAVE, nullptr);
  tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr);
  const int ended = tr_checkpoint_end(cp);
  return begun != TR_OK ? begun : ended;
}

/// Loads the checkpoint. Returns the step, or -1 if there was none, or after an error -100 minus its code.
inline std::int64_t load(tr_checkpoint* cp) {
  std::int64_t step = -1;
  int found = 0;
  if (const int code = tr_checkpoint_begin(cp, TR_LOAD, &found); code != TR_OK) return -100 - code;
  if (found != 0) tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr);
  const int ended = tr_checkpoint_end(cp);
  return ended == TR_OK ? step : -100 - ended;
}

inline tr_file* open_file(const std::string& path, const std::string& mode) {
  tr_file* const file = tr_fopen(path.c_str(), mode.c_str());
  if (!CHECK(file != nullptr))
    std::fprintf(stderr, "  %s, mode %s: %s\n", path.c_str(), mode.c_str(), tr_error());
  return file;
}

inline bool is_local(const std::string& mode) { return mode.find('l') != std::string::npos; }

/// Returns the bytes of the file. In the local mode returns those of the files of all ranks, whose names the
/// pattern gives, and of their sidecars.
inline std::string all_contents(const std::string& pattern, bool local) {
  if (!local) return contents(pattern);
  std::string all;
  for (int each = 0; each < size(); ++each) {
    std::string path = pattern;
    path.replace(path.find("%d"), 2, std::to_string(each));
    all += contents(path) + contents(path + ".layout");
  }
  return all;
}

/// Collective. Changes a byte of the file to another value.
inline void flip_byte(const std::string& path, std::int64_t at) {
  MPI_Barrier(state().comm);
  if (rank() == 0) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int before = file.get();
    CHECK(before != EOF);
    file.seekp(at);
    file.put(static_cast<char>(before ^ 0x55));
    CHECK(file.good());
  }
  MPI_Barrier(state().comm);
}

}  // namespace tailrace::files_test
