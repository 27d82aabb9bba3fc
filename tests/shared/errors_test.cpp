// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// An error of a collective call on a shared file is told to all ranks alike. An error of a local call is the
// caller's alone, and everybody goes on.
#include <functional>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::files_test;

namespace {

void ok(int code) {
  if (!CHECK_EQ(code, TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
}

/// Expects a collective call to fail with this code, and a text that has `part`, on every rank.
void fails_everywhere(int code, int wanted, const std::string& part) {
  CHECK_EQ(code, wanted);
  CHECK(agreed(code, 0));
  if (!CHECK(mentions(tr_error(), part))) std::fprintf(stderr, "  \"%s\"\n", tr_error());
}

/// Expects a local call to fail with this code.
void fails(int code, int wanted, const std::string& part) {
  CHECK_EQ(code, wanted);
  if (!CHECK(mentions(tr_error(), part))) std::fprintf(stderr, "  \"%s\"\n", tr_error());
}

void cannot_open(const char* path, const char* mode, const char* options, int code, const std::string& part) {
  tr_shared* file = reinterpret_cast<tr_shared*>(1);
  fails_everywhere(tr_shared_open(path, mode, options, &file), code, part);
  CHECK(file == nullptr);
}

tr_shared* open(const std::string& path, const char* mode, const char* options = nullptr) {
  tr_shared* file = nullptr;
  ok(tr_shared_open(path.c_str(), mode, options, &file));
  return file;
}

}  // namespace

MPI_TEST(shared_errors, what_cannot_be_opened_says_why_on_every_rank) {
  const std::string directory = fresh_directory("shared-errors");
  const std::string path = directory + "/f";
  const Session session;
  cannot_open((directory + "/none").c_str(), "r", nullptr, TR_ERR_IO, "No such file");
  cannot_open((directory + "/none").c_str(), "r+", nullptr, TR_ERR_IO, "No such file");
  cannot_open((directory + "/none/f").c_str(), "w", nullptr, TR_ERR_IO, "none/f");
  cannot_open(directory.c_str(), "w", nullptr, TR_ERR_IO, "Is a directory");
  cannot_open(path.c_str(), "q", nullptr, TR_ERR_ARGUMENT, "not \"q\"");
  cannot_open(path.c_str(), "rx", nullptr, TR_ERR_ARGUMENT, "not \"rx\"");
  cannot_open(path.c_str(), "", nullptr, TR_ERR_ARGUMENT, "not \"\"");
  cannot_open(nullptr, "r", nullptr, TR_ERR_ARGUMENT, "`path` is a null pointer");
  cannot_open(path.c_str(), nullptr, nullptr, TR_ERR_ARGUMENT, "`mode` is a null pointer");
  cannot_open(path.c_str(), "w", "pages=4KiB", TR_ERR_SETTINGS, "did you mean \"page\"");
  cannot_open(path.c_str(), "w", "page=5000", TR_ERR_SETTINGS, "power of 2");
  cannot_open(path.c_str(), "w", "page=1", TR_ERR_SETTINGS, "4KiB");
  cannot_open(path.c_str(), "w", "page=1MiB memory=1MiB", TR_ERR_MEMORY, "memory=");
  CHECK(!std::filesystem::exists(path));
  fails(tr_shared_open(path.c_str(), "w", nullptr, nullptr), TR_ERR_ARGUMENT, "`file` is a null pointer");
  if (rank() == 0) write_file(path, "precious");
  MPI_Barrier(state().comm);
  cannot_open(path.c_str(), "wx", nullptr, TR_ERR_IO, "File exists");
  CHECK(contents(path) == "precious");
  remove_directory(directory);
}

MPI_TEST(shared_errors, ranks_that_open_differently_empty_nothing) {
  if (size() == 1) return;
  const std::string directory = fresh_directory("shared-differ");
  if (rank() == 0) write_file(directory + "/kept", "precious");
  MPI_Barrier(state().comm);
  {
    const Session session;
    tr_shared* file = nullptr;
    const std::string path = directory + "/kept";
    fails_everywhere(tr_shared_open(path.c_str(), rank() == 0 ? "w" : "w+", nullptr, &file), TR_ERR_ORDER,
                     "");
    fails_everywhere(tr_shared_open(rank() == size() - 1 ? nullptr : path.c_str(), "w", nullptr, &file),
                     TR_ERR_ARGUMENT, "`path`");
  }
  CHECK(contents(directory + "/kept") == "precious");
  remove_directory(directory);
}

MPI_TEST(shared_errors, a_bad_call_of_one_rank_is_its_own) {
  const std::string directory = fresh_directory("shared-misuse");
  const std::string path = directory + "/f";
  const Session session;
  tr_shared* file = open(path, "w");
  tr_index bytes = 7;
  char text[8] = "abcdefg";
  const tr_piece pieces[] = {{text, 4, 0}, {text, -4, 0}};
  if (rank() == 0) {
    fails(tr_shared_read(file, text, 4, &bytes), TR_ERR_STATE, "not opened for reading");
    CHECK_EQ(bytes, 0);
    fails(tr_shared_pwrite(file, text, -1, 0), TR_ERR_ARGUMENT, "below 0");
    fails(tr_shared_pwrite(file, text, 4, -1), TR_ERR_ARGUMENT, "below 0");
    fails(tr_shared_pwrite(file, nullptr, 4, 0), TR_ERR_ARGUMENT, "null pointer");
    fails(tr_shared_pwrite(file, text, 4, INT64_MAX - 1), TR_ERR_ARGUMENT, "last byte");
    fails(tr_shared_writev(file, pieces, 2), TR_ERR_ARGUMENT, "piece 1");
    fails(tr_shared_writev(file, nullptr, 2), TR_ERR_ARGUMENT, "null pointer");
    fails(tr_shared_writev(file, pieces, -2), TR_ERR_ARGUMENT, "below 0");
    fails(tr_shared_seek(file, -1, SEEK_SET, &bytes), TR_ERR_ARGUMENT, "before the file's begin");
    fails(tr_shared_seek(file, 0, 77, &bytes), TR_ERR_ARGUMENT, "SEEK_SET");
    fails(tr_shared_tell(file, nullptr), TR_ERR_ARGUMENT, "null pointer");
    fails(tr_shared_size(file, nullptr), TR_ERR_ARGUMENT, "null pointer");
    fails(tr_shared_size(nullptr, &bytes), TR_ERR_STATE, "not an open shared file");
    fails(tr_shared_close(nullptr), TR_ERR_STATE, "not an open shared file");
    ok(tr_shared_pwrite(file, nullptr, 0, 5));
    ok(tr_shared_pwrite(file, text, 4, 0));
  }
  ok(tr_shared_sync(file));
  fails_everywhere(tr_shared_resize(file, -5), TR_ERR_ARGUMENT, "negative");
  if (size() > 1) fails_everywhere(tr_shared_resize(file, rank()), TR_ERR_ORDER, "");
  ok(tr_shared_close(&file));
  CHECK(contents(path) == "abcd");
  file = open(path, "r");
  fails(tr_shared_pwrite(file, text, 4, 0), TR_ERR_STATE, "not opened for writing");
  fails(tr_shared_append(file, text, 4, &bytes), TR_ERR_STATE, "not opened for writing");
  fails(tr_shared_read(file, text, 8, nullptr), TR_ERR_IO, "ends after 4 of the 8 bytes");
  fails_everywhere(tr_shared_resize(file, 9), TR_ERR_STATE, "not opened for writing");
  ok(tr_shared_flush(file));
  tr_shared* const closed = file;
  ok(tr_shared_close(&file));
  fails(tr_shared_read(closed, text, 4, &bytes), TR_ERR_STATE, "not an open shared file");
  remove_directory(directory);
}

MPI_TEST(shared_errors, a_file_ends_before_the_last_byte_that_can_be_counted) {
  const std::string directory = fresh_directory("shared-largest");
  const Session session;
  tr_shared* file = open(directory + "/f", "w");
  constexpr tr_index largest = INT64_MAX - (tr_index{1} << 30);
  fails(tr_shared_pwrite(file, "12345678", 8, largest - 7), TR_ERR_ARGUMENT, "behind the last byte");
  fails_everywhere(tr_shared_resize(file, largest + 1), TR_ERR_ARGUMENT, "behind the last byte");
  ok(tr_shared_resize(file, largest - 10));
  fails(tr_shared_append(file, "12345678901", 11, nullptr), TR_ERR_ARGUMENT, "behind the last byte");
  tr_index size = 0;
  ok(tr_shared_size(file, &size));
  CHECK_EQ(size, largest - 10);
  ok(tr_shared_sync(file));
  ok(tr_shared_resize(file, 3));
  ok(tr_shared_close(&file));
  CHECK(contents(directory + "/f") == std::string(3, '\0'));
  remove_directory(directory);
}

// Writes to pages of other nodes are on their way then.
MPI_TEST(shared_errors, a_rank_that_syncs_while_others_end_hangs_nobody) {
  if (size() == 1) return;
  const std::string directory = fresh_directory("shared-order");
  const CapturedStderr captured;
  {
    Session session;
    tr_shared* const file = open(directory + "/f", "w+", "page=4KiB");
    tr_global* global = nullptr;
    ok(tr_global_create(TR_I64, 10000, "page=4KiB", &global));
    const std::string text(20000, 'x');
    ok(tr_shared_pwrite(file, text.data(), 20000, 20000 * rank()));
    for (tr_index i = 0; i < 10000; i += 100) ok(tr_global_scatter(global, 1, &i, &i));
    if (rank() == 0) fails(tr_shared_sync(file), TR_ERR_ORDER, "");
    CHECK(session.finish() != TR_OK);
  }
  remove_directory(directory);
}

MPI_TEST(shared_errors, a_file_left_open_is_closed_with_a_warning) {
  const std::string directory = fresh_directory("shared-left");
  const std::string path = directory + "/f";
  CapturedStderr captured;
  {
    const Session session;
    tr_shared* const file = open(path, "w");
    ok(tr_shared_pwrite(file, "left", 4, 4 * rank()));
  }
  const std::string text = captured.text();
  CHECK_EQ(mentions(text, "was left open"), rank() == 0);
  MPI_Barrier(state().comm);
  CHECK_EQ(contents(path).size(), static_cast<std::size_t>(4 * size()));
  remove_directory(directory);
}

MPI_TEST(shared_errors, closing_what_nobody_has_changed_touches_nothing) {
  const std::string directory = fresh_directory("shared-unchanged");
  const std::string path = directory + "/f";
  if (rank() == 0) write_file(path, "as it was");
  MPI_Barrier(state().comm);
  const auto before = std::filesystem::last_write_time(path);
  const Session session("fault=\"nth=1 calls=write,sync,truncate for=good\"");
  tr_shared* file = open(path, "r+");
  char text[4];
  ok(tr_shared_read(file, text, 4, nullptr));
  ok(tr_shared_flush(file));
  ok(tr_shared_close(&file));
  CHECK(std::filesystem::last_write_time(path) == before);
  remove_directory(directory);
}

MPI_TEST(shared_errors, what_safety_cannot_do_is_told_on_every_rank) {
  const std::string directory = fresh_directory("shared-safety");
  const std::string path = directory + "/f";
  if (rank() == 0) write_file(path, "precious");
  MPI_Barrier(state().comm);
  const Session session;
  cannot_open(path.c_str(), "r+", "safety=jornal", TR_ERR_SETTINGS, "did you mean \"journal\"");
  cannot_open(path.c_str(), "r+", "safety=rename", TR_ERR_SETTINGS, "safety=journal");
  cannot_open(path.c_str(), "a", "safety=rename", TR_ERR_SETTINGS, "safety=journal");
  for (const char* safety : {"safety=journal", "safety=rename"}) {
    tr_shared* file = open(path, mentions(safety, "rename") ? "w" : "r+", safety);
    ok(tr_shared_pwrite(file, "new", 3, 0));
    ok(tr_shared_flush(file));
    cannot_open(path.c_str(), "r+", "safety=journal", TR_ERR_STATE, "already");
    cannot_open(path.c_str(), "w", "safety=rename", TR_ERR_STATE, "already");
    cannot_open(path.c_str(), "r+", nullptr, TR_ERR_STATE, "already");
    tr_shared* reader = open(path, "r");
    ok(tr_shared_close(&reader));
    ok(tr_shared_close(&file));
  }
  CHECK(contents(path) == "new");
  if (rank() == 0) write_file(path + ".undo", "somebody's own");
  MPI_Barrier(state().comm);
  for (const char* options : {"", "safety=journal"})
    cannot_open(path.c_str(), "r+", options, TR_ERR_CORRUPT, "f.undo");
  CHECK(contents(path) == "new");
  CHECK(contents(path + ".undo") == "somebody's own");
  remove_directory(directory);
}

MPI_TEST(shared_safety, the_old_file_stays_until_the_new_one_is_flushed) {
  namespace fs = std::filesystem;
  const std::string directory = fresh_directory("shared-rename");
  const std::string path = directory + "/f";
  const std::string link = directory + "/link";
  const auto permissions = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read;
  if (rank() == 0) {
    write_file(path, "precious");
    fs::permissions(path, permissions);
    fs::create_symlink("f", link);
  }
  MPI_Barrier(state().comm);
  const Session session;
  for (const bool flushes : {true, false}) {
    const std::string before = contents(path);
    tr_shared* file = open(link, "w+", "safety=rename page=4KiB");
    ok(tr_shared_pwrite(file, "abcdefgh", 8, 8 * rank()));
    ok(tr_shared_sync(file));
    CHECK(contents(path) == before);
    if (flushes) {
      ok(tr_shared_flush(file));
      CHECK_EQ(contents(path).size(), static_cast<std::size_t>(8 * size()));
      ok(tr_shared_resize(file, 5));
    }
    ok(tr_shared_close(&file));
    CHECK_EQ(contents(path).size(), static_cast<std::size_t>(flushes ? 5 : 8 * size()));
    CHECK(fs::is_symlink(link));
    CHECK(fs::status(path).permissions() == permissions);
    MPI_Barrier(state().comm);
  }
  CHECK_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 2);
  remove_directory(directory);
}

MPI_TEST_MAIN
