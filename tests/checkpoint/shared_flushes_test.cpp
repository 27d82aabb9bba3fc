// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A load brings shared files with safety= back to the flush that the checkpoint has recorded, or names them.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

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

/// True on rank 0 if the file holds what flush_pages() has flushed with this letter; true on other ranks.
bool holds(const std::string& path, char letter) {
  if (rank() != 0) return true;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return bytes == std::string(100, '\0') + std::string(2000, letter);
}

/// A checkpoint of one number, with copies in these places.
tr_checkpoint* create_in(const std::string& name, std::int64_t& step, const std::string& first,
                         const std::string& second) {
  const tr_variable variables[] = {{"step", &step, TR_I64, nullptr}};
  const char* const files[] = {first.c_str(), second.c_str()};
  tr_checkpoint* cp = nullptr;
  ok(tr_checkpoint_create_registered(name.c_str(), variables, 1, files, 2, "p", &cp), "create_registered");
  return cp;
}

/// What the program does behind its save.
enum class Then { nothing, flushes, opens, opens_and_flushes, begins_anew };

/// Runs a program that saves at its flush of letter b. Returns once it has ended well, or with `is_killed`
/// leaves what it would have left before it closed the file.
void run_program(const std::string& directory, Then then, bool is_killed) {
  const std::string path = directory + "/pages", left = directory + ".left";
  Session session;
  tr_checkpoint* cp = create(directory + "/cp", "async=off");
  tr_shared* pages = open_pages(path, "w+");
  flush_pages(pages, 'a');
  flush_pages(pages, 'b');
  CHECK_EQ(save(cp, 1), TR_OK);
  if (then >= Then::opens) {
    CHECK_EQ(tr_shared_close(&pages), TR_OK);
    pages = open_pages(path, then == Then::begins_anew ? "w+" : "r+");
  }
  if (then != Then::nothing && then != Then::opens) {
    flush_pages(pages, 'd');
    flush_pages(pages, 'c');
    // Not flushed, but perhaps stored.
    if (rank() == 0) CHECK_EQ(tr_shared_pwrite(pages, "later", 5, 50), TR_OK);
    CHECK_EQ(tr_shared_sync(pages), TR_OK);
  }
  MPI_Barrier(session.compute());
  if (rank() == 0 && is_killed)
    std::filesystem::copy(directory, left, std::filesystem::copy_options::recursive);
  MPI_Barrier(session.compute());
  CHECK_EQ(tr_shared_close(&pages), TR_OK);
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  MPI_Barrier(state().comm);
  if (rank() == 0 && is_killed) {
    std::filesystem::remove_all(directory);
    std::filesystem::rename(left, directory);
  }
  MPI_Barrier(state().comm);
}

}  // namespace

MPI_TEST(continued_files, a_load_brings_shared_files_back_to_the_flush_that_the_checkpoint_has_recorded) {
  for (const Then then :
       {Then::nothing, Then::flushes, Then::opens, Then::opens_and_flushes, Then::begins_anew}) {
    for (const bool is_killed : {false, true}) {
      const std::string directory = fresh_directory("checkpoint-files-shared");
      run_program(directory, then, is_killed);
      const std::string text = printed_by_load(directory);
      if (then != Then::begins_anew) {
        CHECK_EQ(text, std::string());
        CHECK(holds(directory + "/pages", 'b'));
        // Once more: it stays so.
        CHECK_EQ(printed_by_load(directory), std::string());
        CHECK(holds(directory + "/pages", 'b'));
      } else if (rank() == 0) {
        CHECK(mentions(text,
                       "shared file " + directory + "/pages " +
                           (is_killed ? "left open by a program that has opened it anew since the checkpoint"
                                      : "has other bytes than at its flush before the checkpoint")));
      }
      MPI_Barrier(state().comm);
      remove_directory(directory);
    }
  }
}

/// What nobody has kept must not be taken for what the checkpoint has: the file stays, and is named.
MPI_TEST(continued_files,
         a_load_names_shared_files_that_something_else_has_changed_or_whose_undo_files_are_gone) {
  for (const int what : {0, 1, 2}) {
    const std::string directory = fresh_directory("checkpoint-files-changed");
    const std::string path = directory + "/pages";
    run_program(directory, Then::opens_and_flushes, false);
    if (rank() == 0 && what == 0) std::fstream(path, std::ios::in | std::ios::out).put('x');
    if (rank() == 0 && what == 1) {
      std::filesystem::copy(path, path + ".other");
      std::filesystem::rename(path + ".other", path);
    }
    if (rank() == 0 && what == 2) {
      for (const auto& each : std::filesystem::directory_iterator(directory)) {
        if (each.path().filename().string().starts_with("pages.undo.u")) std::filesystem::remove(each.path());
      }
    }
    MPI_Barrier(state().comm);
    const std::string text = printed_by_load(directory);
    if (rank() == 0)
      CHECK(mentions(text, "shared file " + path +
                               (what == 2 ? " was written over since the checkpoint"
                                          : " was changed or replaced since")));
    MPI_Barrier(state().comm);
    remove_directory(directory);
  }
}

/// A save records also files that the program has closed, and those of the loaded copy that it has not
/// opened.
MPI_TEST(continued_files, a_save_records_shared_files_that_are_closed) {
  const std::string directory = fresh_directory("checkpoint-files-closed");
  const std::string path = directory + "/pages";
  for (const bool is_loaded : {false, true}) {
    {
      Session session;
      tr_checkpoint* cp = create(directory + "/cp", "async=off");
      tr_shared* pages = nullptr;
      if (is_loaded) {
        CHECK_EQ(load(cp), 1);
      } else {
        pages = open_pages(path, "w+");
        flush_pages(pages, 'a');
        CHECK_EQ(save(cp, 0), TR_OK);
        flush_pages(pages, 'b');
        CHECK_EQ(tr_shared_close(&pages), TR_OK);
      }
      // More saves than copies: none of them has the flush before.
      for (int i = 0; i < 3; ++i) CHECK_EQ(save(cp, 1), TR_OK);
      pages = open_pages(path, "r+");
      flush_pages(pages, 'c');
      flush_pages(pages, 'd');
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    CHECK(holds(path, 'd'));
    CHECK_EQ(printed_by_load(directory), std::string());
    CHECK(holds(path, 'b'));
    MPI_Barrier(state().comm);
  }
  remove_directory(directory);
}

/// Nobody finds copies in given places by the name of their checkpoint.
MPI_TEST(continued_files, saves_of_one_checkpoint_leave_what_copies_of_another_one_need) {
  for (const bool is_given : {false, true}) {
    const std::string directory = fresh_directory("checkpoint-files-two");
    const std::string path = directory + "/pages", name = directory + "/other";
    std::int64_t step = 1;
    const auto make = [&] {
      return is_given ? create_in(name, step, directory + "/first", directory + "/second")
                      : create(name, "async=off");
    };
    {
      Session session;
      tr_checkpoint *cp = create(directory + "/cp", "async=off"), *other = make();
      tr_shared* pages = open_pages(path, "w+");
      flush_pages(pages, 'a');
      ok(is_given ? tr_checkpoint_save(other, 0) : save(other, 1), "the other save");
      for (const char letter : {'b', 'c', 'd', 'e'}) {
        flush_pages(pages, letter);
        ok(save(cp, 2), "a save");
      }
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&other), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    {
      Session session;
      tr_checkpoint* other = make();
      CapturedStderr captured;
      int found = 0;
      if (is_given)
        ok(tr_checkpoint_load(other, &found), "the load");
      else
        found = load(other) == 1 ? 1 : 0;
      CHECK_EQ(found, 1);
      CHECK_EQ(captured.text(), std::string());
      CHECK_EQ(tr_checkpoint_close(&other), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    CHECK(holds(path, 'a'));
    remove_directory(directory);
  }
}

/// The other checkpoint records the file once it is closed. Saves of the first one then leave that flush
/// behind.
MPI_TEST(continued_files, a_checkpoint_that_has_recorded_a_closed_file_keeps_the_way_back) {
  for (const bool is_loaded : {false, true}) {
    const std::string directory = fresh_directory("checkpoint-files-claim");
    const std::string path = directory + "/pages", said = "does not record shared file " + path;
    const auto begin = [&](tr_checkpoint* cp) {
      tr_shared* pages = open_pages(path, "w+");
      flush_pages(pages, 'a');
      ok(save(cp, 1), "the first save");
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
    };
    if (is_loaded) {
      Session session;
      tr_checkpoint* cp = create(directory + "/cp", "async=off");
      begin(cp);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    {
      Session session;
      tr_checkpoint *cp = create(directory + "/cp", "async=off"),
                    *other = create(directory + "/other", "async=off");
      if (is_loaded)
        CHECK_EQ(load(cp), 1);
      else
        begin(cp);
      int lock = -1;
      if (rank() == 0) {
        lock = ::open((path + ".undo.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        CHECK_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
      }
      MPI_Barrier(state().comm);
      for (const bool is_held : {true, false}) {
        CapturedStderr captured;
        ok(save(other, 2), "a save of the other checkpoint");
        CHECK_EQ(mentions(captured.text(), said), is_held && rank() == 0);
        if (lock >= 0 && is_held) ::close(lock);
        MPI_Barrier(state().comm);
      }
      tr_shared* pages = open_pages(path, "r+");
      for (const char letter : {'b', 'c', 'd', 'e'}) {
        flush_pages(pages, letter);
        ok(save(cp, 3), "a later save");
      }
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&other), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    Session session;
    tr_checkpoint* other = create(directory + "/other");
    CapturedStderr captured;
    CHECK_EQ(load(other), 2);
    CHECK_EQ(captured.text(), std::string());
    CHECK_EQ(tr_checkpoint_close(&other), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
    CHECK(holds(path, 'a'));
    remove_directory(directory);
  }
}

/// Storage fails in a close, and the program goes on. Its next save records the flush before the close, to
/// which the file goes back, and not that of the save before.
MPI_TEST(continued_files, a_save_behind_a_close_that_failed_records_the_flush_before_it) {
  int failed_closes = 0;
  for (int n = 1; n <= 10; ++n) {
    const std::string directory = fresh_directory("checkpoint-files-close");
    const std::string path = directory + "/pages";
    bool is_told = false;
    {
      Session session("fault=\"rank=0 nth=" + std::to_string(n) + " fault=eio calls=remove\"");
      CapturedStderr captured;
      tr_checkpoint* cp = create(directory + "/cp", "async=off");
      tr_shared* pages = nullptr;
      if (tr_shared_open(path.c_str(), "w+", "safety=journal", &pages) == TR_OK) {
        flush_pages(pages, 'a');
        ok(save(cp, 0), "the first save");
        flush_pages(pages, 'b');
        if (rank() == 0) CHECK_EQ(tr_shared_pwrite(pages, "later", 5, 50), TR_OK);
        is_told = tr_shared_close(&pages) != TR_OK;
        ok(save(cp, 1), "the second save");
      }
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    if (is_told) {
      ++failed_closes;
      CHECK_EQ(printed_by_load(directory), std::string());
      CHECK(holds(path, 'b'));
    }
    remove_directory(directory);
  }
  CHECK(failed_closes > 0);
}

/// By two names in one run: a save records it once, at its last flush.
MPI_TEST(continued_files, a_shared_file_that_was_closed_by_another_name_is_recorded_once) {
  const std::string directory = fresh_directory("checkpoint-files-names");
  if (rank() == 0) {
    std::filesystem::create_directory(directory + "/behind");
    std::filesystem::create_directory_symlink("behind", directory + "/link");
  }
  MPI_Barrier(state().comm);
  const std::string path = directory + "/behind/pages";
  for (const auto& [first, second] : {std::pair(std::string("/link/pages"), std::string("/behind/pages")),
                                      {"/behind/pages", "/link/pages"}}) {
    {
      Session session;
      tr_checkpoint* cp = create(directory + "/cp", "async=off");
      tr_shared* pages = open_pages(directory + first, "w+");
      flush_pages(pages, 'a');
      ok(save(cp, 0), "the first save");
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
      pages = open_pages(directory + second, "r+");
      flush_pages(pages, 'b');
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
      ok(save(cp, 1), "the second save");
      pages = open_pages(directory + first, "r+");
      flush_pages(pages, 'c');
      CHECK_EQ(tr_shared_close(&pages), TR_OK);
      CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
      CHECK_EQ(session.finish(), TR_OK);
    }
    CHECK_EQ(printed_by_load(directory), std::string());
    CHECK(holds(path, 'b'));
    MPI_Barrier(state().comm);
  }
  remove_directory(directory);
}

/// Something that keeps nothing writes it between two saves of the run that has closed it.
MPI_TEST(continued_files, a_save_says_once_that_it_does_not_record_a_shared_file_any_more) {
  const std::string directory = fresh_directory("checkpoint-files-dropped");
  const std::string path = directory + "/pages";
  {
    Session session;
    tr_checkpoint* cp = create(directory + "/cp", "async=off");
    tr_shared* pages = open_pages(path, "w+");
    flush_pages(pages, 'a');
    ok(save(cp, 0), "the first save");
    CHECK_EQ(tr_shared_close(&pages), TR_OK);
    ok(tr_shared_open(path.c_str(), "r+", "", &pages), "the open without safety=");
    flush_pages(pages, 'b');
    CHECK_EQ(tr_shared_close(&pages), TR_OK);
    CapturedStderr captured;
    for (int i = 0; i < 3; ++i) ok(save(cp, 1), "a later save");
    const std::string text = captured.text(), said = "shared file " + path + " was begun anew or written";
    CHECK(rank() != 0 || mentions(text, said));
    CHECK(text.find(said) == text.rfind(said));
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
  }
  CHECK_EQ(printed_by_load(directory), std::string());
  CHECK(holds(path, 'b'));
  remove_directory(directory);
}

MPI_TEST(continued_files, a_load_needs_no_lock_of_a_shared_file_that_is_where_the_checkpoint_has_it) {
  const std::string directory = fresh_directory("checkpoint-files-locked");
  run_program(directory, Then::nothing, false);
  int lock = -1;
  if (rank() == 0) {
    lock = ::open((directory + "/pages.undo.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    CHECK_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  }
  MPI_Barrier(state().comm);
  CHECK_EQ(printed_by_load(directory), std::string());
  CHECK(holds(directory + "/pages", 'b'));
  if (rank() == 0) ::close(lock);
  remove_directory(directory);
}

/// Storage does not tell which flushes are kept: the load must not go on as if none were.
MPI_TEST(continued_files, a_load_fails_where_storage_does_not_give_what_lies_beside_a_shared_file) {
  const std::string directory = fresh_directory("checkpoint-files-unread");
  const std::string kept = directory + "/pages.undo.kept";
  run_program(directory, Then::flushes, false);
  if (rank() == 0) CHECK(std::filesystem::remove(kept) && std::filesystem::create_directory(kept));
  MPI_Barrier(state().comm);
  Session session;
  tr_checkpoint* cp = create(directory + "/cp");
  CHECK(load(cp) < -100);
  CHECK(mentions(tr_error(), "pages"));
  CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
  CHECK_EQ(session.finish(), TR_OK);
  remove_directory(directory);
}

MPI_TEST(continued_files, a_load_leaves_shared_files_that_are_open_also_by_a_link) {
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
    const std::string text = captured.text();
    if (rank() == 0)
      CHECK(mentions(text, "/pages was opened before the checkpoint was loaded, and stays as it is"));
    CHECK_EQ(tr_shared_close(&pages), TR_OK);
    CHECK_EQ(tr_checkpoint_close(&cp), TR_OK);
    CHECK_EQ(session.finish(), TR_OK);
    CHECK(holds(plain, 'b'));
  }
  remove_directory(directory);
}
