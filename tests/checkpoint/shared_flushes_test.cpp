// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A load tells of shared files with safety= that are at another flush than the checkpoint has recorded.
#include "checkpoint/continued_files.hpp"

using namespace tailrace::files_test;

namespace {

tr_shared* open_pages(const std::string& path, const char* mode) {
  tr_shared* file = nullptr;
  if (!CHECK_EQ(tr_shared_open(path.c_str(), mode, "safety=journal", &file), TR_OK))
    std::fprintf(stderr, "  %s\n", tr_error());
  return file;
}

void flush_pages(tr_shared* file, char letter) {
  const std::string text(2000, letter);
  if (rank() == 0) CHECK_EQ(tr_shared_pwrite(file, text.data(), 2000, 100), TR_OK);
  CHECK_EQ(tr_shared_flush(file), TR_OK);
}

/// Loads, and returns what rank 0 has printed.
std::string printed_by_load(const std::string& directory) {
  Session session;
  tr_checkpoint* cp = create(directory + "/cp");
  CapturedStderr captured;
  CHECK_EQ(load(cp), 1);
  std::string text = captured.text();
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  return text;
}

}  // namespace

MPI_TEST(continued_files, a_load_names_shared_files_at_another_flush_than_the_checkpoint_has_recorded) {
  const std::string directory = fresh_directory("checkpoint-files-shared");
  const std::string path = directory + "/pages", left = directory + "/left";
  enum class Then { nothing, flushes, opens, opens_and_flushes };
  for (const Then then : {Then::nothing, Then::flushes, Then::opens, Then::opens_and_flushes}) {
    {
      Session session;
      tr_checkpoint* cp = create(directory + "/cp", "async=off");
      tr_shared* pages = open_pages(path, "w+");
      flush_pages(pages, 'a');
      flush_pages(pages, 'b');
      CHECK_EQ(save(cp, 1), TR_OK);
      if (then >= Then::opens) {
        CHECK_EQ(tr_shared_close(&pages), TR_OK);
        pages = open_pages(path, "r+");
      }
      // The second of them has the number and the size that the checkpoint has recorded.
      if (then == Then::opens_and_flushes) flush_pages(pages, 'd');
      if (then == Then::opens_and_flushes || then == Then::flushes) flush_pages(pages, 'c');
      MPI_Barrier(session.compute());
      if (rank() == 0)
        std::filesystem::copy(path + ".undo", left, std::filesystem::copy_options::overwrite_existing);
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    for (const bool was_killed : {false, true}) {
      MPI_Barrier(state().comm);
      if (rank() == 0 && was_killed) std::filesystem::copy(left, path + ".undo");
      MPI_Barrier(state().comm);
      const std::string text = printed_by_load(directory);
      const std::string expected =
          then == Then::nothing || then == Then::opens ? ""
          : !was_killed           ? "has other bytes than at its flush before the checkpoint"
          : then == Then::flushes ? "left open, 1 flush ahead of the checkpoint"
                                  : "left open by a program that has opened it anew since the checkpoint";
      if (rank() == 0)
        CHECK(expected.empty() ? text.empty() : mentions(text, "shared file " + path + " " + expected));
      MPI_Barrier(state().comm);
      if (rank() == 0) std::filesystem::remove(path + ".undo");
    }
  }
  remove_directory(directory);
}

MPI_TEST(continued_files, a_load_passes_over_shared_files_that_are_open_by_a_link) {
  const std::string directory = fresh_directory("checkpoint-files-link");
  const std::string link = directory + "/link/to_pages", plain = directory + "/behind/pages";
  if (rank() == 0) {
    std::filesystem::create_directory(directory + "/behind");
    std::filesystem::create_directory_symlink("behind", directory + "/link");
    std::filesystem::create_symlink("pages", directory + "/behind/to_pages");
  }
  MPI_Barrier(state().comm);
  for (const auto& [first, second] : {std::pair(link, link), {link, plain}, {plain, link}}) {
    {
      Session session;
      tr_checkpoint* cp = create(directory + "/cp", "async=off");
      tr_shared* pages = open_pages(first, "w+");
      flush_pages(pages, 'a');
      CHECK_EQ(save(cp, 1), TR_OK);
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    Session session;
    tr_shared* pages = open_pages(second, "r+");
    flush_pages(pages, 'b');
    tr_checkpoint* cp = create(directory + "/cp");
    CapturedStderr captured;
    CHECK_EQ(load(cp), 1);
    CHECK_EQ(captured.text(), std::string());
    CHECK_EQ(tr_shared_close(&pages), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  remove_directory(directory);
}
