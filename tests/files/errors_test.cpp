// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// An error of a collective file, on any rank, is told to all ranks alike: the same value, the same errno and
// the same text. Nobody waits for ever.
#include <sys/stat.h>

#include <functional>

#include "files/fixture.hpp"

using namespace tailrace::files_test;

namespace {

/// Expects opening to fail with this errno and a text that says so, on every rank.
void cannot_open(const char* path, const char* mode, int error, const std::string& part) {
  errno = 0;
  tr_file* const file = tr_fopen(path, mode);
  const int got = errno;
  CHECK(file == nullptr);
  CHECK_EQ(got, error);
  CHECK(agreed(file != nullptr ? 1 : 0, got));
  if (!CHECK(mentions(tr_error(), part))) std::fprintf(stderr, "  \"%s\"\n", tr_error());
  if (file != nullptr) tr_fclose(file);
}

/// Expects a call to fail with this errno on every rank.
void fails(const std::string& what, long failure, int error, const std::function<long()>& call) {
  errno = 0;
  const long value = call();
  const int got = errno;
  if (!CHECK_EQ(value, failure) || !CHECK_EQ(got, error)) std::fprintf(stderr, "  in %s\n", what.c_str());
  CHECK(agreed(value, got));
}

}  // namespace

MPI_TEST(errors, what_cannot_be_opened_says_why_on_every_rank) {
  const std::string directory = fresh_directory("errors");
  const Session session;
  cannot_open((directory + "/none").c_str(), "r", ENOENT, "working directory of the I/O rank");
  cannot_open((directory + "/none/file").c_str(), "w", ENOENT, "none/file");
  cannot_open(directory.c_str(), "r", EISDIR, "Is a directory");
  cannot_open(directory.c_str(), "w", EISDIR, "Is a directory");
  cannot_open((directory + "/f").c_str(), "q", EINVAL, "none of r, w and a");
  cannot_open((directory + "/f").c_str(), "wpl", EINVAL, "choose one");
  cannot_open((directory + "/f").c_str(), "wbb", EINVAL, "twice");
  cannot_open((directory + "/f").c_str(), "", EINVAL, "empty");
  cannot_open(nullptr, "r", EINVAL, "`path` is a null pointer");
  cannot_open((directory + "/f").c_str(), nullptr, EINVAL, "`mode` is a null pointer");
  CHECK(!std::filesystem::exists(directory + "/f"));
  remove_directory(directory);
}

MPI_TEST(errors, ranks_that_open_differently_truncate_nothing) {
  const std::string directory = fresh_directory("differ");
  if (rank() == 0) write_file(directory + "/kept", "precious");
  MPI_Barrier(state().comm);
  {
    const Session session;
    if (size() > 1) {
      errno = 0;
      CHECK(tr_fopen((directory + "/kept").c_str(), rank() == size() - 1 ? "r" : "w") == nullptr);
      CHECK_EQ(errno, EINVAL);
      CHECK(mentions(tr_error(), "ranks disagree"));
      CHECK(tr_fopen((directory + "/kept").c_str(), rank() == size() - 1 ? "?" : "w") == nullptr);
      CHECK_EQ(errno, EINVAL);
      CHECK(agreed(0, errno));
    }
    CHECK(contents(directory + "/kept") == "precious");
    tr_file* const file = tr_fopen((directory + "/kept").c_str(), "r");  // nobody is out of step
    CHECK(file != nullptr);
    CHECK_EQ(tr_fgetc(file), 'p');
    CHECK_EQ(tr_fclose(file), 0);
  }
  remove_directory(directory);
}

MPI_TEST(errors, of_calls_are_the_same_on_every_rank) {
  const std::string directory = fresh_directory("calls");
  const Session session;
  tr_file* const writes = tr_fopen((directory + "/w").c_str(), "w");
  char text[8];
  int number = 0;
  fails("fgetc", EOF, EBADF, [&] { return tr_fgetc(writes); });
  CHECK(mentions(tr_error(), "tr_fgetc(" + directory + "/w)"));
  fails("fgets", 0, EBADF, [&] { return tr_fgets(text, sizeof text, writes) != nullptr ? 1 : 0; });
  fails("fread", 0, EBADF, [&] { return static_cast<long>(tr_fread(text, 1, 4, writes)); });
  fails("fscanf", EOF, EBADF, [&] { return tr_fscanf(writes, "%d", &number); });
  CHECK_EQ(tr_ferror(writes), 1);
  tr_clearerr(writes);
  CHECK_EQ(tr_ferror(writes), 0);
  fails("fseek", -1, EINVAL, [&] { return tr_fseek(writes, -1, SEEK_SET); });
  fails("fputs", EOF, EINVAL, [&] { return tr_fputs(nullptr, writes); });
  fails("fwrite", 0, EFAULT, [&] { return static_cast<long>(tr_fwrite(nullptr, 1, 4, writes)); });
  fails("fsetpos", -1, EFAULT, [&] { return tr_fsetpos(writes, nullptr); });
  CHECK_EQ(tr_fclose(writes), 0);

  tr_file* const reads = tr_fopen((directory + "/w").c_str(), "r");
  fails("fputc", EOF, EBADF, [&] { return tr_fputc('x', reads); });
  fails("fprintf", -1, EBADF, [&] { return tr_fprintf(reads, "%d", 1); });
  fails("fscanf", EOF, EINVAL, [&] { return tr_fscanf(reads, "%ms", text); });
  CHECK(mentions(tr_error(), "\"%m\" is no conversion of ISO C99"));
  fails("fread", 0, EFAULT, [&] { return static_cast<long>(tr_fread(nullptr, 1, 4, reads)); });
  tr_clearerr(reads);
  tr_fputs_nr("lost", reads);  // told by the next call that may fail
  fails("fclose", EOF, EBADF, [&] { return tr_fclose(reads); });
  fails("closed", EOF, EBADF, [&] { return tr_fclose(reads); });
  fails("null", EOF, EBADF, [&] { return tr_fgetc(nullptr); });
  CHECK(mentions(tr_error(), "tr_fgetc: not an open file"));
  fails("remove", -1, ENOENT, [&] { return tr_remove((directory + "/none").c_str()); });
  fails("rename", -1, ENOENT, [&] { return tr_rename((directory + "/none").c_str(), "other"); });
  fails("remove", -1, EINVAL, [&] { return tr_remove(nullptr); });
  remove_directory(directory);
}

MPI_TEST(errors, the_others_null_pointers_are_their_own_and_nobody_waits) {
  const std::string directory = fresh_directory("null");
  if (rank() == 0) write_file(directory + "/f", "abcdefgh");
  MPI_Barrier(state().comm);
  {
    const Session session;
    tr_file* const file = tr_fopen((directory + "/f").c_str(), "r");
    char data[4] = {};
    const bool odd = rank() == size() - 1 && size() > 1;
    errno = 0;
    const std::size_t got = tr_fread(odd ? nullptr : data, 1, 4, file);
    CHECK_EQ(got, odd ? 0 : 4);
    CHECK_EQ(errno, odd ? EFAULT : 0);
    CHECK_EQ(tr_fgetc(file), 'e');
    CHECK_EQ(tr_fclose(file), 0);
  }
  remove_directory(directory);
}

MPI_TEST(errors, a_full_disk_is_told_by_the_call_that_meets_it) {
  const Session session;
  tr_file* file = tr_fopen("/dev/full", "w");
  CHECK(file != nullptr);
  CHECK_EQ(tr_fprintf(file, "small\n"), 6);  // still in the buffer
  fails("fflush", EOF, ENOSPC, [&] { return tr_fflush(file); });
  CHECK_EQ(tr_ferror(file), 1);
  tr_fprintf_nr(file, "more\n");
  fails("fclose", EOF, ENOSPC, [&] { return tr_fclose(file); });
  file = tr_fopen("/dev/full", "ws");
  for (int i = 0; i < 1000; ++i) tr_fprintf_nr(file, "line %d\n", i);
  fails("fflush", EOF, ENOSPC, [&] { return tr_fflush(file); });
  fails("fputc", EOF, ENOSPC, [&] {
    tr_setbuf(file, nullptr);
    return tr_fputc('x', file);
  });
  tr_fclose(file);
}

MPI_TEST(errors, outside_of_a_session_there_are_no_files) {
  errno = 0;
  CHECK(tr_fopen("x", "r") == nullptr);
  CHECK(mentions(tr_error(), "tr_init comes first"));
  CHECK(tr_stdout == nullptr);
  CHECK_EQ(tr_printf("nothing"), -1);
  CHECK_EQ(errno, EBADF);
}

MPI_TEST(errors, files_left_open_are_closed_and_their_failure_is_told) {
  const std::string directory = fresh_directory("left");
  {
    Session session;
    tr_file* const good = tr_fopen((directory + "/good").c_str(), "w");
    tr_fputs_nr("kept\n", good);
    tr_file* const bad = tr_fopen("/dev/full", "w");
    tr_fputs_nr("lost\n", bad);
    CHECK_EQ(session.finish(), TR_ERR_SPACE);
    CHECK(mentions(tr_error(), "/dev/full"));
    CHECK(agreed(0, 0));
  }
  CHECK(contents(directory + "/good") == "kept\n");
  remove_directory(directory);
}

namespace {

/// Writes or reads a file from opening to closing. Returns true if a call told a failure.
bool live(const std::string& path, const char* letters, std::string& verdict) {
  bool failed = false;
  const auto note = [&](bool bad) {
    const int error = errno;
    failed = failed || bad;
    verdict += bad ? " failed " + std::to_string(error) : " good";
  };
  tr_file* file = tr_fopen(path.c_str(), (std::string("w+") + letters).c_str());
  note(file == nullptr);
  if (file == nullptr) return true;
  const std::string block(3'000'000, 'b');
  note(tr_fwrite(block.data(), 1, block.size(), file) < block.size());
  for (int i = 0; i < 100; ++i) tr_fprintf_nr(file, "line %d\n", i);
  note(tr_fflush(file) != 0);
  tr_rewind(file);
  note(tr_fgetc(file) != 'b');
  note(tr_fseek(file, 0, SEEK_END) != 0);
  note(tr_fputs("the end\n", file) == EOF);
  note(tr_fflush_durable(file) != 0);
  note(tr_fclose(file) != 0);
  file = tr_fopen(path.c_str(), (std::string("a") + letters).c_str());
  note(file == nullptr);
  if (file == nullptr) return true;
  tr_fputs_nr("appended\n", file);
  note(tr_fclose(file) != 0);
  note(tr_rename(path.c_str(), (path + ".old").c_str()) != 0);
  note(tr_remove((path + ".old").c_str()) != 0);
  return failed;
}

/// The n-th storage call of the victim fails, for all n. Every rank is told alike each time.
void every_fault(int victim, const char* letters, const std::string& kind) {
  const std::string directory = fresh_directory("fault");
  int quiet = 0;  // runs in a row in which nothing failed: there was no n-th call any more
  for (int n = 1; n < 120 && quiet < 8; ++n) {
    const std::string plan =
        "rank=" + std::to_string(victim) + " nth=" + std::to_string(n) + " calls=all " + kind;
    bool failed = false;
    std::string verdict;
    {
      const Session session("log=error fault=\"" + plan + "\"");
      failed = live(directory + "/file", letters, verdict);
    }
    if (!CHECK(same_on_all_ranks(verdict))) std::fprintf(stderr, "  %s:%s\n", plan.c_str(), verdict.c_str());
    if (n == 1) CHECK_EQ(failed, victim == 0);  // the plan strikes at all, and on no other rank
    if (!CHECK(!failed || quiet == 0)) std::fprintf(stderr, "  before %s: nobody was told\n", plan.c_str());
    quiet = failed ? 0 : quiet + 1;
  }
  CHECK_EQ(quiet, 8);
  remove_directory(directory);
}

}  // namespace

MPI_TEST(errors, every_storage_failure_on_the_io_rank_is_one_verdict) {
  every_fault(0, "", "");
  every_fault(0, "s", "fault=enospc for=good");
}

MPI_TEST(errors, storage_failures_of_ranks_that_touch_no_storage_are_none) {
  for (int victim = 1; victim < size(); ++victim) every_fault(victim, "", "");
}

namespace {

/// Reads `bytes` with the n-th read of storage failing, for several n.
void read_with_failures(std::size_t bytes, const std::string& settings) {
  const std::string directory = fresh_directory("partly");
  const std::string path = directory + "/file";
  if (rank() == 0) write_file(path, std::string(bytes, 'b'));
  MPI_Barrier(state().comm);
  std::size_t most = 0;
  for (int n = 1; n <= 6; ++n) {
    const Session session(settings + " log=error fault=\"rank=0 nth=" + std::to_string(n) +
                          " calls=read for=good\"");
    tr_file* const file = tr_fopen(path.c_str(), "r");
    if (!CHECK(file != nullptr)) return;
    std::string data(bytes, '-');
    errno = 0;
    const std::size_t got = tr_fread(data.data(), 1, bytes, file);
    CHECK(agreed(static_cast<long>(got), errno));
    CHECK(got == bytes || errno == EIO);
    CHECK(data == std::string(got, 'b') + std::string(bytes - got, '-'));
    if (got < bytes) most = std::max(most, got);
    tr_fclose(file);
  }
  CHECK(most > 0);  // a part was read at all
  remove_directory(directory);
}

}  // namespace

MPI_TEST(errors, what_was_read_before_a_failure_arrives_everywhere) {
  read_with_failures(4 << 20, "parallel_threshold=1GiB");
  read_with_failures(40 << 20, "parallel_threshold=1MiB");
}

namespace {

/// Runs `body` in a session in which all ranks read a file of sixteen digits.
void with_digits(const std::function<void(tr_file*)>& body) {
  const std::string directory = fresh_directory("digits");
  const std::string path = directory + "/file";
  {
    const Session session("log=error");
    if (rank() == 0) write_file(path, "0123456789abcdef");
    MPI_Barrier(state().comm);
    tr_file* const file = tr_fopen(path.c_str(), "r");
    if (CHECK(file != nullptr)) body(file);
    if (file != nullptr) CHECK_EQ(tr_fclose(file), 0);
  }
  remove_directory(directory);
}

}  // namespace

MPI_TEST(errors, ranks_that_ask_for_less_are_not_written_over) {
  with_digits([](tr_file* file) {
    char data[9] = "--------";
    const std::size_t wanted = rank() == 0 ? 8 : 2;
    const std::size_t got = tr_fread(data, 1, wanted, file);
    CHECK_EQ(got, rank() == 0 ? 8u : 0u);
    CHECK_EQ(std::string(data), rank() == 0 ? "01234567" : "--------");
    CHECK(rank() == 0 || (errno == EINVAL && mentions(tr_error(), "gives room for 2")));
    char line[9] = "--------";
    CHECK((tr_fgets(line, rank() == 0 ? 8 : 3, file) == line) == (rank() == 0));
    CHECK_EQ(std::string(line), rank() == 0 ? "89abcde" : "--------");
  });
}

MPI_TEST(errors, a_rank_that_asks_something_else_does_not_take_the_answer) {
  with_digits([](tr_file* file) {
    const long answer = rank() == 0 ? tr_ftell(file) : tr_fgetc(file);
    CHECK_EQ(answer, rank() == 0 ? 0 : -1);
    CHECK(rank() == 0 || (errno == EINVAL && mentions(tr_error(), "the I/O rank is in tr_ftell")));
    CHECK_EQ(tr_fgetc(file), '0');
  });
}

MPI_TEST(errors, lists_of_arrays_that_are_none_are_told) {
  const std::string directory = fresh_directory("lists");
  {
    const Session session("log=error");
    tr_file* const file = tr_fopen((directory + "/file").c_str(), "w+");
    if (!CHECK(file != nullptr)) return;
    errno = 0;
    CHECK_EQ(tr_fwrite_arrays(nullptr, 1, file), 0u);
    CHECK_EQ(errno, EFAULT);
    errno = 0;
    CHECK_EQ(tr_fwrite_arrays(nullptr, -1, file), 0u);
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(tr_fwrite_arrays(nullptr, 0, file), 0u);
    CHECK_EQ(tr_fclose(file), 0);
  }
  remove_directory(directory);
}

MPI_TEST_MAIN
