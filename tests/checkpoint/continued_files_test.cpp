// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Collective files go on where a checkpoint has recorded them: bytes written behind the record are gone, and
// in the end the files have the bytes of a run that was never stopped. Files that cutting cannot bring back
// are refused.
#include "checkpoint/continued_files.hpp"

#include <sys/stat.h>

#include "support/held_storage.hpp"

using namespace tailrace::files_test;

namespace {

/// The program: writes a line and two arrays for each step. `salt` changes the bytes that are to be lost.
void write_steps(tr_file* file, std::int64_t from, std::int64_t to, int salt = 0, bool local = false) {
  Grid grid;
  const tr_index count = local ? grid.own() : rows * columns;
  for (std::int64_t step = from; step < to; ++step) {
    CHECK(tr_fprintf(file, "step %d%s\n", static_cast<int>(step), salt != 0 ? " of a run that is lost" : "") >
          0);
    grid.fill(static_cast<double>(step + salt));
    if (!CHECK_EQ(tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file), count))
      std::fprintf(stderr, "  %s\n", tr_error());
    grid.fill(static_cast<double>(-step - salt));
    CHECK_EQ(tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file), count);
  }
}

/// A run of steps [0, 9), which saves at 4, and is stopped at 7 as by a kill: steps behind 4 are not saved.
void stopped_run(const std::string& path, const std::string& mode, const std::string& name,
                 const std::string& how, bool closes) {
  tr_checkpoint* cp = create(name, how);
  CHECK_EQ(load(cp), -1);
  tr_file* file = open_file(path, mode);
  write_steps(file, 0, 4, 0, is_local(mode));
  CHECK_EQ(save(cp, 4), TR_OK);
  write_steps(file, 4, 7, 1000, is_local(mode));
  if (closes) CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
}

void continued_run(const std::string& path, const std::string& mode, const std::string& name) {
  tr_checkpoint* cp = create(name);
  CHECK_EQ(load(cp), 4);
  tr_file* file = open_file(path, mode);
  if (file == nullptr) return;
  write_steps(file, 4, 6, 0, is_local(mode));
  CHECK_EQ(save(cp, 6), TR_OK);
  write_steps(file, 6, 9, 0, is_local(mode));
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
}

void go_on(const std::string& directory, const std::string& mode, int first, int second,
           const std::string& how, const std::string& settings = "") {
  const bool local = is_local(mode);
  const std::string dots = local ? ".%d" : "";
  const std::string whole = directory + "/whole" + dots, path = directory + "/log" + dots;
  on_ranks(second, [&] {
    tr_file* const file = open_file(whole, mode);
    write_steps(file, 0, 9, 0, local);
    CHECK_EQ(tr_fclose(file), 0);
  });
  const std::string expected = all_contents(whole, local);
  CHECK(expected.size() > 9u * 2 * rows * columns * sizeof(double));
  on_ranks(
      first, [&] { stopped_run(path, mode, directory + "/cp", how, first % 2 == 0); }, settings);
  CHECK(all_contents(path, local) != expected);
  on_ranks(
      second, [&] { continued_run(path, mode, directory + "/cp"); }, settings);
  if (!CHECK(all_contents(path, local) == expected) && rank() == 0)
    std::fprintf(stderr, "  mode %s, %d ranks, then %d, %s %s\n", mode.c_str(), first, second, how.c_str(),
                 settings.c_str());
  // The second time it is a file like any other.
  on_ranks(second, [&] {
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(load(cp), 6);
    CHECK_EQ(tr_fclose(open_file(path, mode)), 0);
    CHECK_EQ(tr_fclose(open_file(path, "w" + std::string(local ? "l" : ""))), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  });
  CHECK_EQ(all_contents(path, local), std::string());
  MPI_Barrier(state().comm);
  if (rank() == 0) std::filesystem::remove_all(directory);
  MPI_Barrier(state().comm);
}

/// Collective. Writes and closes a file; rank 0 then puts a pipe or a directory in its place.
void close_and_replace(const Session& session, const std::string& name, bool is_pipe) {
  tr_file* file = open_file(name, "w");
  CHECK(tr_fputs("x", file) >= 0);
  CHECK_EQ(tr_fclose(file), 0);
  MPI_Barrier(session.compute());
  if (rank() == 0) {
    std::filesystem::remove(name);
    CHECK_EQ(is_pipe ? mkfifo(name.c_str(), 0600) : mkdir(name.c_str(), 0700), 0);
  }
  MPI_Barrier(session.compute());
}

}  // namespace

MPI_TEST(continued_files, every_mode_goes_on_with_the_bytes_of_a_run_that_was_never_stopped) {
  for (const char* mode : {"w", "wb+", "wp", "ws", "wps", "w+ps", "a", "ap", "aps", "a+s", "wl", "wls", "al"})
    go_on(fresh_directory("checkpoint-files"), mode, size(), size(), "");
}

MPI_TEST(continued_files, other_ranks_go_on) {
  for (const char* mode : {"w", "wp", "wps", "ap"}) {
    go_on(fresh_directory("checkpoint-files-ranks"), mode, size(), std::max(size() - 1, 1), "mode=local");
    go_on(fresh_directory("checkpoint-files-ranks"), mode, 1, size(), "async=off");
  }
}

MPI_TEST(continued_files, several_aggregators_and_no_threads_go_on) {
  for (const char* settings : {"aggregators=3", "io_threads=0"}) {
    for (const char* mode : {"wp", "wps"})
      go_on(fresh_directory("checkpoint-files-settings"), mode, size(), size(), "", settings);
  }
}

namespace {

/// Expects a save to be refused with this file's name, on every rank alike, and to leave nothing behind. A
/// load then gives step `before` (-1: nothing).
void check_refused(const std::string& directory, tr_checkpoint* cp, const std::string& path,
                   std::int64_t before) {
  CHECK_EQ(save(cp, 77), TR_ERR_STATE);
  CHECK(same_on_all_ranks(tr_error()));
  if (!CHECK(mentions(tr_error(), path + " was written over at byte")))
    std::fprintf(stderr, "  %s\n", tr_error());
  CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_FAILED);
  CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);  // told once
  CHECK_EQ(std::filesystem::exists(directory + "/cp.0"), before >= 0);
}

}  // namespace

MPI_TEST(continued_files, files_that_were_written_over_are_refused_by_name) {
  const std::string directory = fresh_directory("checkpoint-files-over");
  for (const char* mode : {"w", "wp", "ws", "wps", "r+", "r+p", "w+", "wl"}) {
    const bool local = is_local(mode);
    const std::string path = directory + "/log" + (local ? ".%d" : "");
    if (mode[0] == 'r' && rank() == 0) write_file(path, std::string(20000, 'x'));
    const CapturedStderr captured;
    const Session session("parallel_threshold=1KiB");
    tr_checkpoint* cp = create(directory + "/cp");
    Grid grid;
    tr_file* other = open_file(directory + "/other", "w");
    tr_file* file = open_file(path, mode);
    if (mode[0] != 'r') {
      tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file);
      CHECK_EQ(tr_fseek(file, 0, SEEK_SET), 0);
    }
    // The array goes beside the stream, the text through it.
    if (std::string(mode).find('p') != std::string::npos)
      tr_fwrite_array(grid.values.data(), TR_F64, grid.layout, file);
    else
      CHECK(tr_fputs("a new head", file) >= 0);
    CHECK_EQ(tr_fseek(file, 0, SEEK_END), 0);
    check_refused(directory, cp, local ? directory + "/log.0" : path, -1);
    // The program goes on, and its saves too, without that file.
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(save(cp, 5), TR_OK);
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(load(cp), -100 - TR_ERR_STATE);  // `other` is open
    CHECK(mentions(tr_error(), directory + "/other was opened before the checkpoint was loaded"));
    CHECK(same_on_all_ranks(tr_error()));
    CHECK_EQ(tr_fclose(other), 0);
    CHECK_EQ(load(cp), 5);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    MPI_Barrier(state().comm);
    if (rank() == 0) {
      std::filesystem::remove_all(directory);
      std::filesystem::create_directories(directory);
    }
    MPI_Barrier(state().comm);
  }
  remove_directory(directory);
}

MPI_TEST(continued_files, seeking_and_appending_to_what_was_there_are_not_refused) {
  const std::string directory = fresh_directory("checkpoint-files-grow");
  const std::string path = directory + "/log";
  if (rank() == 0) write_file(path, "from an older run\n");
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    tr_file* file = open_file(path, "r+");
    char head[5] = {};
    CHECK_EQ(tr_fread(head, 1, 4, file), 4);
    CHECK_EQ(tr_fseek(file, 0, SEEK_END), 0);
    CHECK(tr_fputs("first\n", file) >= 0);
    CHECK_EQ(tr_fseek(file, 5, SEEK_SET), 0);  // the position while it is saved
    CHECK_EQ(save(cp, 1), TR_OK);
    CHECK_EQ(tr_ftell(file), 5);
    CHECK_EQ(tr_fseek(file, 0, SEEK_END), 0);
    CHECK(tr_fputs("is lost\n", file) >= 0);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  for (const char* mode : {"r+", "w+", "a+"}) {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(load(cp), 1);
    tr_file* file = open_file(directory + "/./log", mode);
    CHECK_EQ(tr_ftell(file), 5);
    char text[6] = {};
    CHECK_EQ(tr_fread(text, 1, 5, file), 5);
    CHECK_EQ(std::string(text), "an ol");
    CHECK_EQ(tr_fseek(file, 0, SEEK_END), 0);
    CHECK_EQ(tr_ftell(file), 24);
    CHECK(tr_fputs("second\n", file) >= 0);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(contents(path), "from an older run\nfirst\nsecond\n");
  }
  remove_directory(directory);
}

MPI_TEST(continued_files, what_a_checkpoint_has_recorded_and_is_written_over_is_warned_of) {
  const std::string directory = fresh_directory("checkpoint-files-warn");
  CapturedStderr captured;
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    tr_file* file = open_file(directory + "/log", "w");
    tr_file* again = open_file(directory + "/again", "w");
    tr_fputs("0123456789", file);
    tr_fputs("0123456789", again);
    CHECK_EQ(save(cp, 1), TR_OK);
    for (int each = 0; each < 3; ++each) {
      CHECK_EQ(tr_fseek(file, 4, SEEK_SET), 0);
      tr_fputs("xx", file);
      CHECK_EQ(tr_fflush(file), 0);
      CHECK_EQ(tr_fclose(again), 0);
      again = open_file(directory + "/again", "w");
    }
    check_refused(directory, cp, directory + "/log", 1);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(tr_fclose(again), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  const std::string text = captured.text();
  if (rank() == 0) {
    const std::string over = "/log is written over at byte 4; a checkpoint has recorded its first 10 bytes";
    const std::string anew = "/again is begun anew; a checkpoint has recorded 10 bytes";
    CHECK(mentions(text, over));
    CHECK(mentions(text, anew));
    CHECK(text.find(over) == text.rfind(over) && text.find(anew) == text.rfind(anew));
  }
  remove_directory(directory);
}

namespace {

/// A run that saves while `names` are open with ten bytes each.
void save_with_files(const std::string& directory, const std::vector<std::string>& names) {
  const Session session;
  tr_checkpoint* cp = create(directory + "/cp");
  std::vector<tr_file*> open;
  for (const std::string& name : names) {
    open.push_back(open_file(directory + "/" + name, "w"));
    tr_fputs("0123456789", open.back());
  }
  CHECK_EQ(save(cp, 1), TR_OK);
  for (tr_file* file : open) {
    tr_fputs("lost", file);
    CHECK_EQ(tr_fclose(file), 0);
  }
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
}

}  // namespace

MPI_TEST(continued_files, a_file_that_is_too_short_or_gone_is_an_error_on_every_rank) {
  const std::string directory = fresh_directory("checkpoint-files-short");
  save_with_files(directory, {"short", "gone", "whole"});
  if (rank() == 0) {
    std::filesystem::resize_file(directory + "/short", 9);
    std::filesystem::remove(directory + "/gone");
  }
  MPI_Barrier(state().comm);
  const Session session;
  tr_checkpoint* cp = create(directory + "/cp");
  CHECK_EQ(load(cp), 1);
  for (const char* mode : {"w", "a", "r+", "wp", "ws"}) {
    errno = 0;
    CHECK(tr_fopen((directory + "/short").c_str(), mode) == nullptr);
    CHECK_EQ(errno, EIO);
    CHECK(agreed(0, errno));
    CHECK(mentions(tr_error(),
                   directory + "/short has 9 bytes, the checkpoint that was loaded has recorded 10"));
    errno = 0;
    CHECK(tr_fopen((directory + "/gone").c_str(), mode) == nullptr);
    CHECK_EQ(errno, ENOENT);
    CHECK(agreed(0, errno));
    CHECK(mentions(tr_error(), directory + "/gone"));
  }
  CHECK(!std::filesystem::exists(directory + "/gone"));
  // Reading does not count.
  tr_file* file = open_file(directory + "/whole", "r");
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(contents(directory + "/whole"), "0123456789lost");
  CHECK_EQ(tr_fclose(open_file(directory + "/whole", "w")), 0);
  CHECK_EQ(contents(directory + "/whole"), "0123456789");
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  MPI_Barrier(state().comm);
  remove_directory(directory);
}

MPI_TEST(continued_files, what_is_not_opened_again_is_recorded_by_the_next_saves_too) {
  const std::string directory = fresh_directory("checkpoint-files-carried");
  save_with_files(directory, {"a", "b", "c"});
  for (int step = 1; step <= 2; ++step) {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(load(cp), step);
    tr_file* file = open_file(directory + (step == 1 ? "/b" : "/c"), "a");
    tr_fputs("more", file);
    // By then b is closed, and nothing that goes on; a waits, and so does c at first.
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(save(cp, step + 1), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(load(cp), 3);
    for (const char* name : {"/a", "/b", "/c"}) CHECK_EQ(tr_fclose(open_file(directory + name, "w")), 0);
    CHECK_EQ(contents(directory + "/a"), "0123456789");
    CHECK_EQ(contents(directory + "/b"), "");
    CHECK_EQ(contents(directory + "/c"), "");
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(continued_files, files_of_some_ranks_and_of_freopen_go_on_and_temporary_ones_do_not) {
  const std::string directory = fresh_directory("checkpoint-files-groups");
  const int color = rank() % 2;
  const std::string part = directory + "/part" + std::to_string(color), again = directory + "/reopened";
  for (int run = 0; run < 2; ++run) {
    const Session session;
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(session.compute(), color, rank(), &half);
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(load(cp), run == 0 ? -1 : 1);
    tr_file* const file = tr_fopen_comm(half, part.c_str(), "w");
    tr_file* scratch = tr_tmpfile();
    tr_file* reopened = open_file(directory + "/first", "w");
    reopened = tr_freopen(again.c_str(), "w", reopened);
    CHECK(file != nullptr && scratch != nullptr && reopened != nullptr);
    tr_fputs("temporary", scratch);
    tr_rewind(scratch);
    tr_fputs("T", scratch);
    for (tr_file* each : {file, reopened}) CHECK(tr_fprintf(each, "run %d\n", run) > 0);
    if (run == 0) CHECK_EQ(save(cp, 1), TR_OK);
    for (tr_file* each : {file, reopened}) CHECK(tr_fprintf(each, "behind\n") > 0);
    for (tr_file* each : {file, reopened, scratch}) CHECK_EQ(tr_fclose(each), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    MPI_Comm_free(&half);
  }
  for (const std::string& path : {part, again}) CHECK_EQ(contents(path), "run 0\nrun 1\nbehind\n");
  remove_directory(directory);
}

MPI_TEST(continued_files, a_failed_sync_fails_the_save_by_name) {
  const std::string directory = fresh_directory("checkpoint-files-sync");
  for (const char* options : {"async=on", "async=off"}) {
    const CapturedStderr captured;
    // The first sync of this save on rank 0 is that of the copy's new file, the second is that of the file.
    Session session("fault=\"rank=0 nth=2 fault=eio calls=sync\"");
    tr_checkpoint* cp = create(directory + "/cp" + (options + 6), options);
    tr_file* file = open_file(directory + "/log", "w");
    tr_fputs("0123456789", file);
    int code = save(cp, 1);
    if (code == TR_OK) code = tr_checkpoint_wait(cp);
    CHECK_EQ(code, TR_ERR_IO);
    CHECK(same_on_all_ranks(tr_error()));
    CHECK(mentions(tr_error(), directory + "/log"));
    CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_FAILED);
    // Data that storage has lost once does not come back: no later save may count on it.
    code = save(cp, 2);
    if (code == TR_OK) code = tr_checkpoint_wait(cp);
    CHECK_EQ(code, TR_ERR_IO);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(save(cp, 3), TR_OK);
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(load(cp), 3);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(continued_files, a_file_that_cannot_be_written_fails_the_save_by_name) {
  const std::string directory = fresh_directory("checkpoint-files-full");
  const CapturedStderr captured;
  Session session("fault=\"rank=0 nth=1 fault=enospc calls=write\"");
  tr_checkpoint* cp = create(directory + "/cp");
  tr_file* file = open_file(directory + "/log", "w");
  tr_fputs_nr("0123456789", file);
  CHECK_EQ(save(cp, 1), TR_ERR_SPACE);
  CHECK(same_on_all_ranks(tr_error()));
  CHECK(mentions(tr_error(), directory + "/log"));
  CHECK(!std::filesystem::exists(directory + "/cp.0"));
  tr_fclose(file);
  CHECK_EQ(save(cp, 2), TR_OK);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  remove_directory(directory);
}

MPI_TEST(continued_files, a_file_is_made_durable_behind_a_program_that_has_closed_it) {
  const std::string directory = fresh_directory("checkpoint-files-behind");
  tailrace::HeldStorage& storage = tailrace::HeldStorage::get();
  {
    const Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    tr_file* file = open_file(directory + "/log", "w");
    tr_fputs("0123456789", file);
    CHECK_EQ(tr_fflush(file), 0);
    // Storage takes nothing until it is released, and yet the program goes on.
    storage.hold();
    CHECK_EQ(save(cp, 1), TR_OK);
    CHECK_EQ(tr_checkpoint_status(cp), TR_SAVE_CAPTURED);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(storage.own_calls(), 0);
    CHECK(!storage.has_synced(directory + "/log"));
    storage.release();
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(storage.has_synced(directory + "/log"), rank() == 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  }
  remove_directory(directory);
}

/// A save first makes the copy's new file durable, and then the files that the program has closed before.
MPI_TEST(continued_files, files_that_were_closed_since_the_last_save_are_durable_once_the_next_is_committed) {
  const std::string directory = fresh_directory("checkpoint-files-closed");
  for (const char* mode : {"w", "wp", "wl"}) {
    const CapturedStderr captured;
    const std::string path = directory + "/closed" + (is_local(mode) ? ".%d" : "");
    Session session("fault=\"rank=0 nth=2 fault=eio calls=sync\"");
    tr_checkpoint* cp = create(directory + "/cp" + mode, "async=off");
    tr_file* file = open_file(path, mode);
    CHECK(tr_fputs("what is not to be lost", file) >= 0);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(save(cp, 1), TR_ERR_IO);
    CHECK(mentions(tr_error(), directory + "/closed"));
    CHECK(same_on_all_ranks(tr_error()));
    CHECK_EQ(save(cp, 2), TR_OK);
    // A file that was removed keeps nobody from saving.
    file = open_file(path, mode);
    CHECK_EQ(tr_fclose(file), 0);
    MPI_Barrier(session.compute());
    if (rank() == 0) std::filesystem::remove(directory + "/closed" + (is_local(mode) ? ".0" : ""));
    MPI_Barrier(session.compute());
    CHECK_EQ(save(cp, 3), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  remove_directory(directory);
}

/// There are so many files, with their sidecars, that the oldest cannot wait for the save. Later names come
/// first in their order.
MPI_TEST(continued_files, very_many_closed_files_are_synchronised_before_the_save_which_tells_what_failed) {
  const std::string directory = fresh_directory("checkpoint-files-many");
  const auto name = [&](int number) { return directory + "/f" + std::to_string(9999 - number); };
  const CapturedStderr captured;
  Session session("fault=\"rank=0 nth=1 fault=eio calls=sync\"");
  tr_checkpoint* cp = create(directory + "/cp", "async=off");
  for (int number = 0; number < 520; ++number) {
    tr_file* const file = open_file(name(number) + ".%d", "wl");
    if (file == nullptr) break;
    CHECK(tr_fputs("x", file) >= 0);
    CHECK_EQ(tr_fclose(file), 0);
  }
  CHECK_EQ(save(cp, 1), TR_ERR_IO);
  if (!CHECK(mentions(tr_error(), name(0)))) std::fprintf(stderr, "  %s\n", tr_error());
  CHECK(same_on_all_ranks(tr_error()));
  CHECK_EQ(save(cp, 2), TR_OK);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  remove_directory(directory);
}

/// Programs usually replace a file by writing another one and renaming it. The save's first sync is that of
/// the copy's new file.
MPI_TEST(continued_files, a_file_that_was_renamed_since_it_was_closed_is_durable_under_its_new_name) {
  const std::string directory = fresh_directory("checkpoint-files-renamed");
  const CapturedStderr captured;
  Session session("fault=\"rank=0 nth=2 fault=eio calls=sync\"");
  tr_checkpoint* cp = create(directory + "/cp", "async=off");
  tr_file* file = open_file(directory + "/new", "w");
  CHECK(tr_fputs("what is not to be lost", file) >= 0);
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_rename((directory + "/new").c_str(), (directory + "/name").c_str()), 0);
  CHECK_EQ(save(cp, 1), TR_ERR_IO);
  CHECK(mentions(tr_error(), directory + "/name"));
  CHECK_EQ(save(cp, 2), TR_OK);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  remove_directory(directory);
}

/// A directory or a pipe may have the name of a file that was closed and removed: neither is a file's data.
MPI_TEST(continued_files, what_is_renamed_and_no_file_keeps_nobody_from_saving) {
  const std::string directory = fresh_directory("checkpoint-files-no-file");
  Session session;
  tr_checkpoint* cp = create(directory + "/cp", "async=off");
  for (const bool is_pipe : {false, true}) {
    const std::string name = directory + (is_pipe ? "/pipe" : "/directory");
    close_and_replace(session, name, is_pipe);
    CHECK_EQ(tr_rename(name.c_str(), (name + ".renamed").c_str()), 0);
    CHECK_EQ(save(cp, is_pipe ? 2 : 1), TR_OK);
  }
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  remove_directory(directory);
}

/// Opening a pipe would wait for a writer.
MPI_TEST(continued_files, a_pipe_or_a_directory_in_the_place_of_a_closed_file_keeps_nobody_from_saving) {
  const std::string directory = fresh_directory("checkpoint-files-replaced");
  Session session;
  tr_checkpoint* cp = create(directory + "/cp", "async=off");
  for (const bool is_pipe : {true, false}) {
    const std::string name = directory + (is_pipe ? "/pipe" : "/directory");
    close_and_replace(session, name, is_pipe);
    CHECK_EQ(save(cp, is_pipe ? 1 : 2), TR_OK);
  }
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  remove_directory(directory);
}

namespace {

/// Rank 0 writes a line for each step to a file of its own, as a program does without the library.
void write_own(const std::string& path, std::int64_t from, std::int64_t to, const char* word) {
  MPI_Barrier(state().comm);
  if (rank() == 0) {
    std::ofstream file(path, std::ios::app);
    for (std::int64_t step = from; step < to; ++step) file << word << ' ' << step << '\n';
  }
  MPI_Barrier(state().comm);
}

std::string own_lines(std::int64_t to) {
  std::string text;
  for (std::int64_t step = 0; step < to; ++step) text += "own " + std::to_string(step) + "\n";
  return text;
}

/// Expects that a load fails on every rank alike, and names the file and the reason.
void check_not_loaded(const std::string& directory, const std::string& path, const std::string& reason) {
  Session session;
  tr_checkpoint* cp = create(directory + "/cp");
  CHECK_EQ(load(cp), -100 - TR_ERR_CORRUPT);
  CHECK(same_on_all_ranks(tr_error()));
  if (!CHECK(mentions(tr_error(), path + " " + reason))) std::fprintf(stderr, "  %s\n", tr_error());
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
}

}  // namespace

MPI_TEST(continued_files, a_file_of_the_program_that_a_checkpoint_covers_is_cut_back_by_the_load) {
  const std::string directory = fresh_directory("checkpoint-files-covered");
  const std::string path = directory + "/own.log", later = directory + "/later.log";
  {
    Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(load(cp), -1);
    CHECK_EQ(tr_checkpoint_covers(cp, directory.c_str()), TR_ERR_ARGUMENT);
    CHECK(mentions(tr_error(), directory + " is no file"));
    CHECK(same_on_all_ranks(tr_error()));
    CHECK_EQ(tr_checkpoint_covers(cp, ""), TR_ERR_ARGUMENT);
    CHECK_EQ(tr_checkpoint_covers(cp, path.c_str()), TR_OK);
    CHECK_EQ(tr_checkpoint_covers(cp, later.c_str()), TR_OK);  // not there yet: it has no bytes
    write_own(path, 0, 4, "own");
    CHECK_EQ(save(cp, 4), TR_OK);
    write_own(path, 4, 9, "lost");
    write_own(later, 0, 2, "lost");
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  for (const std::int64_t from : {4, 6}) {  // the second run need not name the file
    Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(load(cp), from);
    CHECK_EQ(contents(path), own_lines(from));
    CHECK_EQ(contents(later), std::string());
    write_own(path, from, from + 2, "own");
    CHECK_EQ(save(cp, from + 2), TR_OK);
    write_own(path, from + 2, from + 3, "lost");
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  flip_byte(path, 3);
  check_not_loaded(directory, path, "has other bytes than the checkpoint has recorded");
  MPI_Barrier(state().comm);
  if (rank() == 0) std::filesystem::resize_file(path, 10);
  MPI_Barrier(state().comm);
  check_not_loaded(directory, path, "has 10 bytes, the checkpoint has recorded");
  CHECK(mentions(tr_error(), "put the recorded one back under this name"));
  remove_directory(directory);
}

MPI_TEST(continued_files, a_load_that_fails_on_one_rank_leaves_the_outputs_of_all_as_they_are) {
  const std::string directory = fresh_directory("checkpoint-files-covered-fails");
  const std::string path = directory + "/own.log", log = directory + "/log", part = directory + "/part.%d";
  {
    Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(tr_checkpoint_covers(cp, path.c_str()), TR_OK);
    tr_file* file = open_file(log, "w");
    tr_fputs("0123456789", file);
    tr_file* own = open_file(part, "wl");
    tr_fputs("0123456789", own);
    write_own(path, 0, 4, "own");
    CHECK_EQ(save(cp, 4), TR_OK);
    write_own(path, 4, 9, "lost");
    tr_fputs("behind", file);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(tr_fclose(own), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  const std::string lost = contents(path);
  Session session;
  tr_checkpoint* cp = create(directory + "/cp");
  // The last rank alone cannot go on: the covered file is not cut.
  MPI_Comm last = MPI_COMM_NULL;
  MPI_Comm_split(session.compute(), rank() == size() - 1 ? 1 : 0, 0, &last);
  const std::string here = directory + "/part." + std::to_string(size() - 1);
  tr_file* file = rank() == size() - 1 ? tr_fopen_comm(last, here.c_str(), "a") : nullptr;
  CHECK_EQ(load(cp), -100 - TR_ERR_STATE);
  CHECK(same_on_all_ranks(tr_error()));
  if (file != nullptr) CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(contents(path), lost);
  MPI_Comm_free(&last);
  // The first rank alone cannot: no rank takes the other files for those of the checkpoint.
  MPI_Barrier(session.compute());
  flip_byte(path, 3);
  CHECK_EQ(load(cp), -100 - TR_ERR_CORRUPT);
  CHECK(same_on_all_ranks(tr_error()));
  CHECK_EQ(tr_fclose(open_file(log, "w")), 0);
  CHECK_EQ(contents(log), std::string());
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  remove_directory(directory);
}

MPI_TEST(continued_files, a_commit_without_data_is_a_generation_of_all_outputs_and_of_the_restart_file) {
  const std::string directory = fresh_directory("checkpoint-files-commits");
  const std::string path = directory + "/own.log", log = directory + "/log",
                    restart = directory + "/restart.";
  std::int64_t step = -5;
  int found = 1;
  {
    Session session;
    tr_checkpoint* cp = create(directory + "/cp", "capture=copy_on_write");
    CHECK_EQ(tr_checkpoint_resume(cp, &step, &found), TR_OK);
    CHECK(step == -5 && found == 0);
    CHECK_EQ(tr_checkpoint_covers(cp, path.c_str()), TR_OK);
    tr_file* file = open_file(log, "w");
    for (const std::int64_t at : {4, 9}) {
      tr_fprintf(file, "step %d\n", static_cast<int>(at));
      write_own(path, at == 4 ? 0 : 4, at, "own");
      write_own(restart + std::to_string(at), 0, at, "state");
      CHECK_EQ(tr_checkpoint_commit(cp, at, (restart + std::to_string(at)).c_str()), TR_OK);
    }
    tr_fputs("lost\n", file);
    write_own(path, 9, 11, "lost");
    CHECK_EQ(tr_checkpoint_commit(cp, 11, (restart + "11").c_str()), TR_ERR_ARGUMENT);
    CHECK(mentions(tr_error(), restart + "11 is no file: write and close the restart file before"));
    CHECK(same_on_all_ranks(tr_error()));
    CHECK_EQ(tr_checkpoint_generation(cp), 2);
    CHECK_EQ(tr_checkpoint_begin(cp, TR_SAVE, nullptr), TR_OK);
    CHECK_EQ(tr_checkpoint_commit(cp, 11, nullptr), TR_ERR_STATE);
    CHECK_EQ(tr_checkpoint_end(cp), TR_ERR_ARGUMENT);  // without items: a commit says that it means it
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  if (rank() == 0) std::filesystem::remove(restart + "4");  // of an older generation: nobody needs it
  {
    Session session;
    tr_checkpoint* cp = create(directory + "/cp");
    CHECK_EQ(tr_checkpoint_resume(cp, &step, &found), TR_OK);
    CHECK(step == 9 && found == 1);
    CHECK_EQ(contents(path), own_lines(9));
    tr_file* file = open_file(log, "w");
    // Without a restart file; that of step 9 is not covered any more, and may go.
    CHECK_EQ(tr_checkpoint_commit(cp, 10, nullptr), TR_OK);
    CHECK_EQ(tr_checkpoint_wait(cp), TR_OK);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(contents(log), std::string("step 4\nstep 9\n"));
    CHECK_EQ(tr_checkpoint_commit(cp, 12, (restart + "9").c_str()), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  flip_byte(restart + "9", 3);
  check_not_loaded(directory, restart + "9",
                   "has other bytes than the checkpoint has recorded. It was the restart");
  remove_directory(directory);
}

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
  for (const bool flushes_again : {false, true}) {
    {
      Session session;
      tr_checkpoint* cp = create(directory + "/cp", "async=off");
      tr_shared* pages = open_pages(path, "w+");
      flush_pages(pages, 'a');
      flush_pages(pages, 'b');
      CHECK_EQ(save(cp, 1), TR_OK);
      if (flushes_again) flush_pages(pages, 'c');
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
      const std::string expected = !flushes_again ? ""
                                   : was_killed   ? "left open, 1 flush ahead of the checkpoint"
                                                  : "has other bytes than at its flush before the checkpoint";
      if (rank() == 0)
        CHECK(expected.empty() ? text.empty() : mentions(text, "shared file " + path + " " + expected));
      MPI_Barrier(state().comm);
      if (rank() == 0) std::filesystem::remove(path + ".undo");
    }
  }
  remove_directory(directory);
}

MPI_TEST_MAIN
