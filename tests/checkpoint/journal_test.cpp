// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Files that are written over and go on from checkpoints with overwritten=journal: they are brought back to
// their contents at the save of the loaded copy, and in the end have the bytes of a run that was never
// stopped.
#include <cstring>

#include "checkpoint/continued_files.hpp"

using namespace tailrace::files_test;

namespace {

constexpr long table = 64;  // bytes of the array that each step writes over, behind a line
const std::string journal = "overwritten=journal ";

/// The program: each step writes over a head and an array, and adds a line and an array. `salt` changes the
/// bytes, and in local files the type, that are to be lost.
void write_steps(tr_file* file, std::int64_t from, std::int64_t to, int salt, bool local) {
  Grid grid;
  const tr_index count = local ? grid.own() : rows * columns;
  for (std::int64_t step = from; step < to; ++step) {
    grid.fill(static_cast<double>(step + salt));
    CHECK_EQ(tr_fseek(file, 0, SEEK_SET), 0);
    CHECK(tr_fprintf(file, "%08d steps and %06d\n", static_cast<int>(step), salt) > 0);
    CHECK_EQ(tr_fseek(file, table, SEEK_SET), 0);
    const int type = local && salt != 0 ? TR_I64 : TR_F64;
    if (!CHECK_EQ(tr_fwrite_array(grid.values.data(), type, grid.layout, file), count))
      std::fprintf(stderr, "  %s\n", tr_error());
    CHECK_EQ(tr_fseek(file, 0, SEEK_END), 0);
    CHECK(tr_fprintf(file, "step %d and %d\n", static_cast<int>(step), salt) > 0);
    CHECK_EQ(tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file), count);
  }
}

/// Expects the head and array that step `step` has written over.
void check_table(tr_file* file, std::int64_t step, bool local) {
  Grid grid, expected;
  expected.fill(static_cast<double>(step));
  const long stands = tr_ftell(file);
  CHECK_EQ(tr_fseek(file, table, SEEK_SET), 0);
  if (!CHECK_EQ(tr_fread_array(grid.values.data(), TR_F64, grid.layout, file),
                local ? grid.own() : rows * columns))
    std::fprintf(stderr, "  %s\n", tr_error());
  CHECK_EQ(tr_fwait(file), 0);
  CHECK(grid.values == expected.values);
  CHECK_EQ(tr_fseek(file, stands, SEEK_SET), 0);
}

std::vector<std::string> undo_files(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".u") != std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A run of steps [0, 8): saved before 3 and before 5, stopped at 8 as by a kill.
void stopped_run(const std::string& path, const std::string& mode, const std::string& name,
                 const std::string& how) {
  const bool local = is_local(mode);
  tr_checkpoint* cp = create(name, journal + how);
  CHECK_EQ(load(cp), -1);
  tr_file* file = open_file(path, mode);
  write_steps(file, 0, 3, 0, local);
  CHECK_EQ(save(cp, 3), TR_OK);
  write_steps(file, 3, 5, 0, local);
  if (!CHECK_EQ(save(cp, 5), TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
  write_steps(file, 5, 8, 1000, local);
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
}

/// Steps `from` to 9, in runs that each save and stop before the last.
void continued_runs(const std::string& path, const std::string& mode, const std::string& name,
                    std::int64_t from, const std::string& how) {
  const bool local = is_local(mode);
  tr_checkpoint* cp = create(name, journal + how);
  CHECK_EQ(load(cp), from);
  tr_file* file = open_file(path, mode);
  if (file == nullptr) return;
  check_table(file, from - 1, local);
  write_steps(file, from, 7, 2000, local);  // and this is lost, too
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(load(cp), from);
  file = open_file(path, mode);
  if (file == nullptr) return;
  check_table(file, from - 1, local);
  write_steps(file, from, 8, 0, local);
  CHECK_EQ(save(cp, 8), TR_OK);
  write_steps(file, 8, 9, 0, local);
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
}

/// The newest copy is not whole any more.
void break_newest(const std::string& name) { flip_byte(name + ".1", 20); }

void go_on(const std::string& mode, int first, int second, const std::string& how = "",
           const std::string& settings = "", bool breaks = false) {
  const std::string directory = fresh_directory("checkpoint-journal");
  const bool local = is_local(mode);
  const std::string dots = local ? ".%d" : "";
  const std::string whole = directory + "/whole" + dots, path = directory + "/log" + dots;
  if (mode[0] == 'r' && rank() == 0) {
    write_file(whole, "from an older run, which had more");
    write_file(path, "from an older run, which had more");
  }
  on_ranks(second, [&] {
    tr_file* const file = open_file(whole, mode);
    write_steps(file, 0, 9, 0, local);
    CHECK_EQ(tr_fclose(file), 0);
  });
  const std::string expected = all_contents(whole, local);
  CHECK(expected.size() > 9u * rows * columns * sizeof(double));
  on_ranks(
      first, [&] { stopped_run(path, mode, directory + "/cp", how); }, settings);
  CHECK(all_contents(path, local) != expected);
  if (breaks) break_newest(directory + "/cp");
  CapturedStderr captured;  // a warning of the broken copy, and none of files
  on_ranks(
      second, [&] { continued_runs(path, mode, directory + "/cp", breaks ? 3 : 5, how); }, settings);
  if (!CHECK(all_contents(path, local) == expected) && rank() == 0)
    std::fprintf(stderr, "  mode %s, %d ranks, then %d, %s %s\n", mode.c_str(), first, second, how.c_str(),
                 settings.c_str());
  CHECK(!mentions(captured.text(), "written over"));
  remove_directory(directory);
}

}  // namespace

MPI_TEST(journal, every_mode_goes_on_with_the_bytes_of_a_run_that_was_never_stopped) {
  for (const char* mode : {"w+", "w+p", "w+s", "w+ps", "r+", "r+p", "w+l", "w+ls"})
    go_on(mode, size(), size());
}

MPI_TEST(journal, other_ranks_and_an_older_copy_go_on) {
  for (const char* mode : {"w+", "w+p", "w+ps"}) {
    go_on(mode, size(), std::max(size() - 1, 1), "mode=local");
    go_on(mode, 1, size(), "async=off", "", true);
  }
  go_on("w+l", size(), size(), "", "", true);
}

MPI_TEST(journal, several_aggregators_and_no_threads_go_on) {
  for (const char* settings : {"aggregators=3", "io_threads=0"}) {
    for (const char* mode : {"w+p", "w+ps"}) go_on(mode, size(), size(), "", settings);
  }
}

MPI_TEST(journal, undo_files_go_with_the_copies_that_need_them) {
  const std::string directory = fresh_directory("checkpoint-journal-undo");
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp", journal + "async=off");
    tr_file* file = open_file(directory + "/log", "w+");
    for (std::int64_t step = 1; step <= 5; ++step) {
      CHECK_EQ(tr_fseek(file, 0, SEEK_SET), 0);
      CHECK(tr_fprintf(file, "step %d", static_cast<int>(step)) > 0);
      CHECK_EQ(save(cp, step), TR_OK);
      MPI_Barrier(session.compute());
      const std::vector<std::string> names = undo_files(directory);
      // Bytes kept since generation n - 1 are needed as long as that copy, the older one, is there.
      CHECK_EQ(names.size(), step == 1 ? 0u : 1u);
      if (!names.empty()) CHECK(names[0].starts_with("cp.u" + std::to_string(step - 1) + "."));
      MPI_Barrier(session.compute());
    }
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(journal, a_file_that_is_begun_anew_after_a_save_is_brought_back) {
  for (const char* mode : {"w", "ws", "wp", "wps", "wl"}) {
    const std::string directory = fresh_directory("checkpoint-journal-anew");
    const std::string path = directory + "/log" + (is_local(mode) ? ".%d" : "");
    CapturedStderr captured;
    for (int run = 0; run < 2; ++run) {
      const Session session("parallel_threshold=1KiB");
      tr_checkpoint* cp = create(directory + "/cp", journal);
      CHECK_EQ(load(cp), run == 0 ? -1 : 1);
      tr_file* file = open_file(path, mode);
      Grid grid;
      grid.fill(1);
      if (run == 0) {
        CHECK(tr_fputs("of the first run", file) >= 0);
        tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file);
        CHECK_EQ(save(cp, 1), TR_OK);
        CHECK_EQ(tr_fclose(file), 0);
        file = open_file(path, mode);
        CHECK(tr_fputs("is lost", file) >= 0);
      }
      CHECK_EQ(tr_fclose(file), 0);
      if (run == 1) {
        const std::string all = all_contents(path, is_local(mode));
        CHECK(all.starts_with("of the first run"));
        CHECK(all.size() >= 16 + rows * columns * sizeof(double));
      }
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    }
    CHECK(!mentions(captured.text(), "begun anew"));
    remove_directory(directory);
  }
}

MPI_TEST(journal, what_is_not_opened_again_is_brought_back_by_a_later_run) {
  const std::string directory = fresh_directory("checkpoint-journal-left");
  for (int run = 0; run < 3; ++run) {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp", journal);
    CHECK_EQ(load(cp), run == 0 ? -1 : std::int64_t{run} * 10);
    if (run == 0) {
      tr_file* file = open_file(directory + "/log", "w+");
      CHECK(tr_fputs("as it was saved", file) >= 0);
      CHECK_EQ(save(cp, 10), TR_OK);
      CHECK_EQ(tr_fseek(file, 3, SEEK_SET), 0);
      CHECK(tr_fputs("WRITTEN OVER, and longer", file) >= 0);
      CHECK_EQ(tr_fclose(file), 0);
    }
    // There are more saves than copies. The undo file stays, as the file needs it.
    for (int each = 0; run == 1 && each < 3; ++each) CHECK_EQ(save(cp, 20), TR_OK);
    if (run == 2) {
      tr_file* file = open_file(directory + "/log", "a");
      CHECK(tr_fputs(", and went on", file) >= 0);
      CHECK_EQ(tr_fclose(file), 0);
      CHECK_EQ(contents(directory + "/log"), "as it was saved, and went on");
    }
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(journal, each_of_two_checkpoints_brings_back_its_own_state) {
  for (const char* loaded : {"/one", "/two"}) {
    const std::string directory = fresh_directory("checkpoint-journal-two");
    for (int run = 0; run < 2; ++run) {
      const Session session;
      tr_checkpoint* one = create(directory + "/one", journal);
      tr_checkpoint* two = create(directory + "/two", journal);
      const bool first = std::string(loaded) == "/one";
      if (run == 1) CHECK_EQ(load(first ? one : two), first ? 1 : 2);
      tr_file* file = open_file(directory + "/log", "w+");
      const auto put = [&](int at, const char* text) {
        CHECK_EQ(tr_fseek(file, at, SEEK_SET), 0);
        CHECK(tr_fputs(text, file) >= 0);
      };
      if (run == 0) {
        put(0, "aaaaaa");
        CHECK_EQ(save(one, 1), TR_OK);
        put(1, "bbb");
        CHECK_EQ(save(two, 2), TR_OK);
        put(0, "ccccccccc");
      }
      CHECK_EQ(tr_fclose(file), 0);
      if (run == 1) CHECK_EQ(contents(directory + "/log"), first ? "aaaaaa" : "abbbaa");
      CHECK_EQ(tr_checkpoint_close(&one), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&two), TR_OK);
    }
    remove_directory(directory);
  }
}

namespace {

/// Runs `body` between the load, which has to find `step`, and the end.
void run_from(const std::string& directory, std::int64_t step,
              const std::function<void(tr_checkpoint*)>& body) {
  const Session session;
  tr_checkpoint* cp = create(directory + "/cp", journal + "async=off");
  CHECK_EQ(load(cp), step);
  body(cp);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
}

void put_at(const std::string& path, const char* mode, long at, const char* text) {
  tr_file* const file = open_file(path, mode);
  if (file == nullptr) return;
  CHECK_EQ(tr_fseek(file, at, SEEK_SET), 0);
  CHECK(tr_fputs(text, file) >= 0);
  CHECK_EQ(tr_fclose(file), 0);
}

/// Saves while the file, which holds `text`, is open.
void save_text(tr_checkpoint* cp, std::int64_t step, const std::string& path, const char* text) {
  tr_file* const file = open_file(path, "w");
  CHECK(tr_fputs(text, file) >= 0);
  CHECK_EQ(save(cp, step), TR_OK);
  CHECK_EQ(tr_fclose(file), 0);
}

void check_text(const std::string& path, const char* expected) {
  CHECK_EQ(tr_fclose(open_file(path, "r+")), 0);
  CHECK_EQ(contents(path), expected);
}

}  // namespace

MPI_TEST(journal, a_program_that_begins_anew_leaves_what_the_copies_need) {
  const std::string directory = fresh_directory("checkpoint-journal-begin-anew");
  const std::string path = directory + "/log";
  run_from(directory, -1, [&](tr_checkpoint* cp) { save_text(cp, 1, path, "as it was saved"); });
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp", journal);
    put_at(path, "w", 0, "anew");
    CHECK_EQ(contents(path), "anew");
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  run_from(directory, 1, [&](tr_checkpoint*) { check_text(path, "as it was saved"); });
  remove_directory(directory);
}

/// Each page is stored by whichever rank needs its memory, over and over.
MPI_TEST(journal, what_is_written_over_in_a_shared_file_is_brought_back) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "as it was saved" + std::to_string(i % 7);
  for (const char* mode : {"r+", "w+"}) {
    const std::string directory = fresh_directory("checkpoint-journal-shared");
    const std::string path = directory + "/log";
    run_from(directory, -1, [&](tr_checkpoint* cp) {
      save_text(cp, 1, path, text.c_str());
      tr_shared* file = nullptr;
      const std::string options = "page=4KiB memory=" + std::to_string(16 * size()) + "KiB";
      CHECK_EQ(tr_shared_open(path.c_str(), mode, options.c_str(), &file), TR_OK);
      for (int round = 0; round < 3; ++round) {
        const std::string piece(300, static_cast<char>('A' + round));
        for (std::int64_t i = rank(); i < 1000; i += size())
          CHECK_EQ(tr_shared_pwrite(file, piece.data(), 300, i * 300), TR_OK);
        CHECK_EQ(tr_shared_resize(file, round == 1 ? 100'000 : 310'000), TR_OK);
      }
      CHECK_EQ(tr_shared_close(&file), TR_OK);
    });
    CHECK_EQ(contents(path).size(), 310'000u);
    run_from(directory, 1, [&](tr_checkpoint*) {
      CHECK_EQ(tr_fclose(open_file(path, "r+")), 0);
      CHECK(contents(path) == text);
    });
    remove_directory(directory);
  }
}

MPI_TEST(journal, a_file_that_is_open_as_a_shared_one_too_is_not_saved) {
  const std::string directory = fresh_directory("checkpoint-journal-both");
  const std::string path = directory + "/log";
  run_from(directory, -1, [&](tr_checkpoint* cp) {
    tr_file* const file = open_file(path, "w");
    CHECK(tr_fputs("text", file) >= 0);
    CHECK_EQ(tr_fflush(file), 0);
    tr_shared* shared = nullptr;
    CHECK_EQ(tr_shared_open(path.c_str(), "r+", nullptr, &shared), TR_OK);
    CHECK_EQ(save(cp, 1), TR_ERR_STATE);
    CHECK(mentions(tr_error(), "log is open as a shared file"));
    CHECK_EQ(tr_shared_close(&shared), TR_OK);
    // The rank that has it open, for itself, is not the one that writes the file for all.
    const bool is_mine = rank() == size() - 1;
    if (is_mine) CHECK_EQ(tr_shared_open_comm(MPI_COMM_SELF, path.c_str(), "r+", nullptr, &shared), TR_OK);
    CHECK_EQ(save(cp, 1), TR_ERR_STATE);
    CHECK(mentions(tr_error(), "log is open as a shared file"));
    CHECK(mentions(tr_error(), ("on rank " + std::to_string(size() - 1)).c_str()));
    if (is_mine) CHECK_EQ(tr_shared_close(&shared), TR_OK);
    const std::string link = directory + "/link";
    if (rank() == 0) std::filesystem::create_symlink("log", link);
    MPI_Barrier(state().comm);
    CHECK_EQ(tr_shared_open(link.c_str(), "r+", nullptr, &shared), TR_OK);
    CHECK_EQ(save(cp, 1), TR_ERR_STATE);
    CHECK(mentions(tr_error(), "log is open as a shared file"));
    CHECK_EQ(tr_shared_close(&shared), TR_OK);
    // A link within a directory behind a link: its ".." is not that of the name.
    if (rank() == 0) {
      std::filesystem::create_directories(directory + "/a/b");
      std::filesystem::create_directory_symlink("a/b", directory + "/to_b");
      std::filesystem::create_symlink("../../log", directory + "/a/b/to_log");
    }
    MPI_Barrier(state().comm);
    CHECK_EQ(tr_shared_open((directory + "/to_b/to_log").c_str(), "r+", nullptr, &shared), TR_OK);
    CHECK_EQ(save(cp, 1), TR_ERR_STATE);
    CHECK(mentions(tr_error(), "log is open as a shared file"));
    CHECK_EQ(tr_shared_close(&shared), TR_OK);
    CHECK_EQ(save(cp, 1), TR_OK);
    CHECK_EQ(tr_fclose(file), 0);
  });
  {
    // What it writes over before the checkpoint is open would be kept nowhere. One rank knows of it.
    const bool is_mine = rank() == size() - 1;
    const Session session;
    tr_shared* shared = nullptr;
    if (is_mine) CHECK_EQ(tr_shared_open_comm(MPI_COMM_SELF, path.c_str(), "r+", nullptr, &shared), TR_OK);
    tr_checkpoint* cp = nullptr;
    CHECK_EQ(tr_checkpoint_create((directory + "/cp").c_str(), (journal + "async=off").c_str(), &cp),
             TR_ERR_STATE);
    CHECK(mentions(tr_error(), "log is open as a shared file"));
    if (is_mine) CHECK_EQ(tr_shared_close(&shared), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(journal, a_file_that_the_newest_copy_does_not_have_is_brought_back_by_the_one_before) {
  const std::string directory = fresh_directory("checkpoint-journal-absent");
  const std::string path = directory + "/log";
  run_from(directory, -1, [&](tr_checkpoint* cp) {
    save_text(cp, 1, path, "abcdefghijkl");
    CHECK_EQ(save(cp, 2), TR_OK);
    put_at(path, "r+", 2, "111");
    // The same again, in the same generation.
    CHECK_EQ(load(cp), 2);
    put_at(path, "r+", 3, "222");
  });
  run_from(directory, 2, [&](tr_checkpoint*) { put_at(path, "r+", 1, "333333"); });
  CHECK_EQ(contents(path), "a333333hijkl");
  break_newest(directory + "/cp");
  const CapturedStderr captured;
  run_from(directory, 1, [&](tr_checkpoint*) { check_text(path, "abcdefghijkl"); });
  remove_directory(directory);
}

MPI_TEST(journal, windows_keep_what_they_write_over) {
  const std::string directory = fresh_directory("checkpoint-journal-window");
  const std::string path = directory + "/array";
  const tr_index shape[] = {24}, portion[] = {4};
  int run = 0;
  for (const char* mode : {"r+", "w", "r+"}) {
    run_from(directory, run == 0 ? -1 : 1, [&](tr_checkpoint* cp) {
      if (run++ == 0)
        save_text(cp, 1, path, "of 24 bytes, as of array, and more");
      else
        check_text(path, "of 24 bytes, as of array, and more");
      tr_window* window = nullptr;
      CHECK_EQ(tr_window_open(path.c_str(), mode, TR_BYTE, 1, shape, portion, nullptr, 1, nullptr, &window),
               TR_OK);
      void* data = nullptr;
      while (tr_window_next(window, &data, nullptr, nullptr) == TR_OK && data != nullptr) {
        std::memset(data, 'x', 4);
        CHECK_EQ(tr_window_dirty(window), TR_OK);
      }
      CHECK_EQ(tr_window_close(&window), TR_OK);
      CHECK(contents(path).starts_with(std::string(24, 'x')));
    });
  }
  run_from(directory, 1, [&](tr_checkpoint*) { check_text(path, "of 24 bytes, as of array, and more"); });
  remove_directory(directory);
}

MPI_TEST(journal, a_file_that_was_replaced_by_a_shorter_one_is_not_filled_up_with_a_hole) {
  const std::string directory = fresh_directory("checkpoint-journal-hole");
  const std::string path = directory + "/log", text(200'000, 'a');
  run_from(directory, -1, [&](tr_checkpoint* cp) {
    save_text(cp, 1, path, text.c_str());
    put_at(path, "r+", 199'990, "b");
  });
  MPI_Barrier(state().comm);
  if (rank() == 0) std::filesystem::resize_file(path, 100);
  MPI_Barrier(state().comm);
  run_from(directory, 1, [&](tr_checkpoint*) {
    const CapturedStderr captured;
    for (int times = 0; times < 2; ++times) {
      CHECK(tr_fopen(path.c_str(), "r+") == nullptr);
      CHECK_EQ(errno, EIO);
      CHECK(mentions(tr_error(), "has 100 bytes, the checkpoint that was loaded has recorded 200000"));
    }
  });
  CHECK_EQ(contents(path).size(), 100u);
  remove_directory(directory);
}

MPI_TEST(journal, a_file_that_two_ranks_have_open_each_for_itself_is_refused) {
  const std::string directory = fresh_directory("checkpoint-journal-twice");
  run_from(directory, -1, [&](tr_checkpoint* cp) {
    const CapturedStderr captured;
    tr_file* const file = tr_fopen_comm(MPI_COMM_SELF, (directory + "/log").c_str(), "a");
    CHECK(file != nullptr);
    CHECK_EQ(save(cp, 1), size() == 1 ? TR_OK : TR_ERR_STATE);
    if (size() > 1) CHECK(mentions(tr_error(), "/log is open on ranks 0 and 1, on each for itself"));
    CHECK(same_on_all_ranks(tr_error()));
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(save(cp, 2), TR_OK);
  });
  remove_directory(directory);
}

MPI_TEST(journal, bytes_that_cannot_be_kept_are_not_written_over) {
  const std::string directory = fresh_directory("checkpoint-journal-full");
  for (const char* mode : {"w+", "w+p"}) {
    const CapturedStderr captured;
    const std::string path = directory + "/log-" + mode;
    {
      const Session session("parallel_threshold=1KiB");
      tr_checkpoint* cp = create(directory + "/cp-" + mode, journal + "async=off");
      tr_file* file = open_file(path, mode);
      Grid grid;
      grid.fill(1);
      tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file);
      CHECK_EQ(save(cp, 1), TR_OK);
      CHECK_EQ(tr_fclose(file), 0);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    }
    const std::string before = contents(path);
    {
      // The first write after the load is that of the kept bytes.
      Session session("parallel_threshold=1KiB fault=\"rank=0 nth=1 fault=enospc calls=write\"");
      tr_checkpoint* cp = create(directory + "/cp-" + mode, journal + "async=off");
      CHECK_EQ(load(cp), 1);
      tr_file* file = open_file(path, mode);
      CHECK_EQ(tr_fseek(file, 0, SEEK_SET), 0);
      Grid grid;
      grid.fill(7);
      errno = 0;
      const tr_index wrote = tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file);
      const int flushed = tr_fflush(file);
      CHECK(wrote < rows * columns || flushed != 0);
      CHECK(agreed(wrote, errno));
      CHECK(same_on_all_ranks(tr_error()));
      if (mode[2] == 'p') {
        CHECK_EQ(wrote, 0);
        CHECK(mentions(tr_error(), "has to be kept for checkpoint " + directory + "/cp-" + mode));
      }
      MPI_Barrier(session.compute());
      CHECK(contents(path) == before);
      MPI_Barrier(session.compute());
      // The program goes on once storage works.
      tr_clearerr(file);
      CHECK_EQ(tr_fseek(file, 0, SEEK_SET), 0);
      CHECK_EQ(tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file), rows * columns);
      tr_fclose(file);
      CHECK(contents(path) != before);
      CHECK_EQ(load(cp), 1);
      CHECK_EQ(tr_fclose(open_file(path, mode)), 0);
      CHECK(contents(path) == before);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      session.finish();
    }
  }
  remove_directory(directory);
}

MPI_TEST(journal, a_damaged_undo_file_is_an_error_on_every_rank) {
  const std::string directory = fresh_directory("checkpoint-journal-damage");
  const CapturedStderr captured;
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp", journal);
    tr_file* file = open_file(directory + "/log", "w+");
    CHECK(tr_fputs("as it was saved", file) >= 0);
    CHECK_EQ(save(cp, 1), TR_OK);
    CHECK_EQ(tr_fseek(file, 3, SEEK_SET), 0);
    CHECK(tr_fputs("WRITTEN OVER", file) >= 0);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  const std::vector<std::string> names = undo_files(directory);
  CHECK_EQ(names.size(), 1u);
  flip_byte(directory + "/" + names.front(), 512 + 5);
  const Session session;
  tr_checkpoint* cp = create(directory + "/cp", journal);
  CHECK_EQ(load(cp), 1);
  for (const char* mode : {"w", "r+p"}) {
    errno = 0;
    CHECK(tr_fopen((directory + "/log").c_str(), mode) == nullptr);
    CHECK_EQ(errno, EIO);
    CHECK(agreed(0, errno));
    CHECK(same_on_all_ranks(tr_error()));
    CHECK(mentions(tr_error(), "/log cannot be brought back"));
    CHECK(mentions(tr_error(), names.front() + " is damaged"));
  }
  CHECK_EQ(contents(directory + "/log"), "as WRITTEN OVER");
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  remove_directory(directory);
}

MPI_TEST_MAIN
