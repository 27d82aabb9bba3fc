// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Checkpoints of the local mode on disks of the nodes: each rank works in a directory of its own, where it
// sees only its own files, and the first rank those that all share.
#include <tailrace.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "support/mpi_test.hpp"

using namespace tailrace::mpi_test;

namespace {

/// A directory that only this rank works in, for the length of a case.
class OwnDisk {
 public:
  explicit OwnDisk(const std::string& name)
      : before_(std::filesystem::current_path()),
        path_(before_ / ("own_disk_" + name + "." + std::to_string(size()) + "." + std::to_string(rank()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    CHECK_EQ(::chdir(path_.c_str()), 0);
  }
  ~OwnDisk() {
    CHECK_EQ(::chdir(before_.c_str()), 0);
    std::filesystem::remove_all(path_);
  }
  OwnDisk(const OwnDisk&) = delete;
  OwnDisk& operator=(const OwnDisk&) = delete;

 private:
  std::filesystem::path before_;
  std::filesystem::path path_;
};

/// A program with an array, a table that all ranks have and a number.
class Program {
 public:
  Program() {
    MPI_Comm compute = MPI_COMM_NULL;
    CHECK_EQ(tr_init(state().comm, &compute, nullptr), TR_OK);
    const tr_index shape[] = {40, 30};
    const tr_index length[] = {200};
    CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout_), TR_OK);
    CHECK_EQ(tr_layout_replicated(1, length, &everywhere_), TR_OK);
    tr_index count = 0;
    CHECK_EQ(tr_layout_count(layout_, &count), TR_OK);
    field_.resize(static_cast<std::size_t>(count) + 1);
    table_.resize(200);
    const tr_variable variables[] = {{"field", field_.data(), TR_F64, layout_},
                                     {"table", table_.data(), TR_F64, everywhere_},
                                     {"step", &step_, TR_I32, nullptr}};
    if (!CHECK_EQ(tr_checkpoint_create_registered("cp", variables, 3, nullptr, 0, "l", &checkpoint_), TR_OK))
      std::fprintf(stderr, "%s\n", tr_error());
  }
  ~Program() {
    CHECK_EQ(tr_checkpoint_close(&checkpoint_), TR_OK);
    tr_layout_free(&layout_);
    tr_layout_free(&everywhere_);
    CHECK_EQ(tr_finalize(), TR_OK);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void save(int step, bool async) {
    step_ = step;
    std::iota(field_.begin(), field_.end(), 1e6 * rank() + step);
    std::iota(table_.begin(), table_.end(), 1e3 * step);
    CHECK_EQ(tr_checkpoint_save(checkpoint_, async ? 1 : 0), TR_OK);
  }
  int wait() { return tr_checkpoint_wait(checkpoint_); }
  int load(int& found) { return tr_checkpoint_load(checkpoint_, &found); }
  void check(int step) const {
    CHECK_EQ(step_, step);
    CHECK_EQ(field_.front(), 1e6 * rank() + step);
    CHECK_EQ(field_[field_.size() - 2], 1e6 * rank() + step + static_cast<double>(field_.size() - 2));
    CHECK(table_.front() == 1e3 * step && table_.back() == 1e3 * step + 199);
  }

 private:
  tr_layout* layout_ = nullptr;
  tr_layout* everywhere_ = nullptr;
  tr_checkpoint* checkpoint_ = nullptr;
  std::vector<double> field_;
  std::vector<double> table_;
  int step_ = 0;
};

}  // namespace

MPI_TEST(own_disks, local_copies_are_loaded_where_each_rank_sees_its_own) {
  const OwnDisk disk("load");
  {
    Program program;
    for (int step = 1; step <= 4; ++step) program.save(step, step % 2 == 0);
    CHECK_EQ(program.wait(), TR_OK);
  }
  CHECK_EQ(std::filesystem::exists("cp.0"), rank() == 0);
  {
    Program again;
    int found = 0;
    CHECK_EQ(again.load(found), TR_OK);
    CHECK_EQ(found, 1);
    again.check(4);
    again.save(5, true);
    CHECK_EQ(again.wait(), TR_OK);
  }
  Program third;
  int found = 0;
  CHECK_EQ(third.load(found), TR_OK);
  third.check(5);
}

MPI_TEST(own_disks, a_part_that_is_gone_takes_all_ranks_to_the_copy_before_and_then_to_an_error) {
  const OwnDisk disk("lost");
  {
    Program program;
    program.save(1, false);
    program.save(2, false);
  }
  char part[32];
  std::snprintf(part, sizeof part, "cp.1.r%05d", rank());
  const bool last = rank() == size() - 1;
  if (last) CHECK(std::filesystem::remove(part));
  {
    Program program;
    int found = 0;
    CHECK_EQ(program.load(found), TR_OK);
    program.check(1);
  }
  std::snprintf(part, sizeof part, "cp.0.r%05d", rank());
  if (last) CHECK(std::filesystem::remove(part));
  Program program;
  int found = 1;
  CHECK(program.load(found) != TR_OK);
  CHECK(std::string(tr_error()).find("no copy is whole") != std::string::npos);
  CHECK_EQ(found, 0);
}

MPI_TEST_MAIN
