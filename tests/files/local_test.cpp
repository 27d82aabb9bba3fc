// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Files of the local mode: each rank has its own by a pattern, nobody communicates, and a reader with another
// layout is refused in words. Written against the public face.
#include <tailrace.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/mpi_test.hpp"

using namespace tailrace::mpi_test;

namespace {

class Session {
 public:
  explicit Session(const char* options = nullptr) {
    CHECK_EQ(tr_init(state().comm, &compute_, options), TR_OK);
  }
  ~Session() { CHECK_EQ(tr_finalize(), TR_OK); }

 private:
  MPI_Comm compute_ = MPI_COMM_NULL;
};

/// Returns a name of this test run, the same on all ranks.
std::string name(const std::string& pattern) {
  int id = ::getpid();
  MPI_Bcast(&id, 1, MPI_INT, 0, state().comm);
  return "local_test." + std::to_string(id) + "." + pattern;
}

tr_layout* block(tr_index rows, tr_index columns, const tr_index* halo = nullptr) {
  const tr_index shape[] = {rows, columns};
  tr_layout* layout = nullptr;
  CHECK_EQ(tr_layout_block(2, shape, halo, &layout), TR_OK);
  return layout;
}

std::vector<double> values_of(const tr_layout* layout, tr_index more = 0) {
  tr_index count = 0;
  CHECK_EQ(tr_layout_count(layout, &count), TR_OK);
  std::vector<double> values(static_cast<std::size_t>(count + more));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = rank() * 1e6 + static_cast<double>(i);
  return values;
}

std::string own_file(const std::string& before) {
  char number[16];
  std::snprintf(number, sizeof number, "%03d", rank());
  return before + number;
}

}  // namespace

MPI_TEST(local, files_hold_what_each_rank_owns) {
  const Session session;
  const std::string pattern = name("%03d");
  const std::string mine = own_file(name(""));
  tr_layout* layout = block(50, 70);
  for (const char* mode : {"wl", "wbi", "wsL"}) {
    tr_file* file = tr_fopen(pattern.c_str(), mode);
    if (!CHECK(file != nullptr)) return;
    std::vector<double> values = values_of(layout);
    tr_fprintf_nr(file, "rank %d\n", rank());
    CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), values.size());
    CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), values.size());
    std::fill(values.begin(), values.end(), -1.0);  // captured or written: the array may change
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(std::filesystem::file_size(mine), 7 + 2 * values.size() * 8 + (rank() > 9 ? 1 : 0));
    for (const char* reading : {"rl", "rbsI"}) {
      file = tr_fopen(pattern.c_str(), reading);
      if (!CHECK(file != nullptr)) return;
      char line[32] = "";
      CHECK(tr_fgets(line, sizeof line, file) == line);
      CHECK_EQ(std::string(line), "rank " + std::to_string(rank()) + "\n");
      std::vector<double> read(values.size(), 0);
      std::vector<double> again(values.size(), 0);
      CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), read.size());
      CHECK_EQ(tr_fread_array(again.data(), TR_F64, layout, file), again.size());
      CHECK_EQ(tr_fwait(file), 0);
      CHECK(read == values_of(layout));
      CHECK(again == values_of(layout));
      CHECK_EQ(tr_fclose(file), 0);
    }
    CHECK_EQ(tr_remove_local(pattern.c_str()), 0);
    CHECK(!std::filesystem::exists(mine));
    CHECK(!std::filesystem::exists(mine + ".layout"));
  }
  CHECK_EQ(tr_remove_local(pattern.c_str()), -1);
  CHECK_EQ(errno, ENOENT);
  tr_layout_free(&layout);
}

MPI_TEST(local, files_are_opened_again_by_their_pattern) {
  const Session session;
  const std::string pattern = name("again.%03d");
  tr_layout* layout = block(50, 70);
  std::vector<double> values = values_of(layout);
  tr_file* file = tr_fopen(pattern.c_str(), "wl");
  if (!CHECK(file != nullptr)) return;
  CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), values.size());
  file = tr_freopen(nullptr, "r", file);
  if (!CHECK(file != nullptr)) return;
  std::vector<double> read(values.size(), 0);
  CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), read.size());
  CHECK(read == values);
  CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), 0u);
  CHECK(tr_feof(file) != 0 && tr_ferror(file) == 0);
  tr_rewind(file);
  CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), read.size());
  file = tr_freopen(pattern.c_str(), "rsl", file);
  if (!CHECK(file != nullptr)) return;
  CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), read.size());
  CHECK(tr_freopen(nullptr, "rp", file) == nullptr);
  CHECK_EQ(errno, EINVAL);
  MPI_Barrier(state().comm);
  CHECK_EQ(tr_remove_local(pattern.c_str()), 0);
  CHECK_EQ(tr_layout_free(&layout), TR_OK);
}

MPI_TEST(local, files_are_refused_to_another_layout) {
  const Session session;
  const std::string pattern = name("%d");
  tr_layout* layout = block(40, 30);
  tr_layout* other = block(30, 40);
  std::vector<double> values = values_of(layout);
  tr_file* file = tr_fopen(pattern.c_str(), "wl");
  if (!CHECK(file != nullptr)) return;
  CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), values.size());
  CHECK_EQ(tr_fclose(file), 0);
  file = tr_fopen(pattern.c_str(), "rl");
  if (!CHECK(file != nullptr)) return;
  std::vector<double> read = values_of(other, 16);
  CHECK_EQ(tr_fread_array(read.data(), TR_F64, other, file), 0);
  CHECK(std::string(tr_error()).find("was written as float64 block 40,30") != std::string::npos);
  CHECK_EQ(tr_fread_array(read.data(), TR_F32, layout, file), 0);
  CHECK(std::string(tr_error()).find("is read as float32 block 40,30") != std::string::npos);
  // A refusal has moved nothing.
  std::vector<double> whole(values.size(), 0);
  CHECK_EQ(tr_fread_array(whole.data(), TR_F64, layout, file), whole.size());
  CHECK(whole == values_of(layout));
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_remove_local(pattern.c_str()), 0);
  tr_layout_free(&layout);
  tr_layout_free(&other);
}

namespace {

/// Sections of which rank 0 alone owns something, of one shape and of another, and then the whole array.
struct Sections {
  explicit Sections(tr_layout* layout, std::vector<double>& values)
      : arrays{{values.data(), TR_F64, layout, start, stop, nullptr},
               {values.data(), TR_F64, layout, start, other_stop, nullptr},
               {values.data(), TR_F64, layout, nullptr, nullptr, nullptr}} {}
  tr_index start[1] = {0}, stop[1] = {5}, other_stop[1] = {7};
  tr_array arrays[3];
};

}  // namespace

MPI_TEST(local, arrays_that_a_rank_owns_nothing_of_are_read_back_with_those_behind_them) {
  const Session session;
  const std::string pattern = name("nothing.%d");
  const tr_index shape[] = {60 * size()};
  tr_layout* layout = nullptr;
  CHECK_EQ(tr_layout_block(1, shape, nullptr, &layout), TR_OK);
  std::vector<double> values = values_of(layout);
  const std::vector<double> expected = values;
  const Sections sections(layout, values);
  const std::size_t all = values.size() + (rank() == 0 ? 12 : 0);
  for (const char* mode : {"wl", "wls", "w+l"}) {
    tr_file* file = tr_fopen(pattern.c_str(), mode);
    if (!CHECK(file != nullptr)) return;
    CHECK_EQ(tr_fwrite_arrays(sections.arrays, 3, file), all);
    if (mode[1] != '+') {
      CHECK_EQ(tr_fclose(file), 0);
      file = tr_fopen(pattern.c_str(), "r+l");
      if (!CHECK(file != nullptr)) return;
    }
    for (int time = 0; time < 2; ++time) {
      tr_rewind(file);
      std::fill(values.begin(), values.end(), -1.0);
      if (!CHECK_EQ(tr_fread_arrays(sections.arrays, 3, file), all))
        std::fprintf(stderr, "  mode %s: %s\n", mode, tr_error());
      CHECK(values == expected);
      // Writing over an array keeps the entries of which nothing can be written over.
      CHECK_EQ(tr_fseek(file, rank() == 0 ? 12 * 8 : 0, SEEK_SET), 0);
      CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), values.size());
    }
    CHECK_EQ(tr_fclose(file), 0);
    // Another section is refused even if the rank has nothing of it, and the data stays readable.
    file = tr_fopen(pattern.c_str(), "rl");
    if (!CHECK(file != nullptr)) return;
    Sections others(layout, values);
    others.stop[0] = 6;
    CHECK_EQ(tr_fread_arrays(others.arrays, 3, file), 0);
    CHECK(std::string(tr_error()).find("is read as float64 block") != std::string::npos);
    CHECK_EQ(tr_fread_arrays(sections.arrays, 3, file), all);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK_EQ(tr_remove_local(pattern.c_str()), 0);
  }
  tr_layout_free(&layout);
}

MPI_TEST(local, files_are_removed_with_all_that_a_full_disk_or_a_kill_has_left_beside_them) {
  const std::string pattern = name("full.%d");
  const std::string mine = name("full.") + std::to_string(rank());
  {
    // The second write is that of the sidecar.
    const Session session("log=error fault=\"nth=2 fault=enospc calls=write for=good\"");
    tr_layout* layout = block(20, 20);
    const std::vector<double> values = values_of(layout);
    tr_file* const file = tr_fopen(pattern.c_str(), "wl");
    if (!CHECK(file != nullptr)) return;
    CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), values.size());
    errno = 0;
    CHECK_EQ(tr_fclose(file), EOF);
    CHECK_EQ(errno, ENOSPC);
    CHECK(std::filesystem::exists(mine));
    CHECK(!std::filesystem::exists(mine + ".layout") && !std::filesystem::exists(mine + ".layout.new"));
    tr_layout_free(&layout);
  }
  std::ofstream(mine + ".layout.new") << "tailrace loc";
  const Session session;
  CHECK_EQ(tr_remove_local(pattern.c_str()), 0);
  CHECK(!std::filesystem::exists(mine) && !std::filesystem::exists(mine + ".layout.new"));
  CHECK_EQ(tr_remove_local(pattern.c_str()), -1);
  CHECK_EQ(errno, ENOENT);
}

MPI_TEST(local, a_write_over_an_array_that_fails_leaves_no_array_to_read_there) {
  const std::string pattern = name("torn.%d");
  // Writes the array, larger than what is written at once. Returns how many elements were written.
  const auto write = [&](const char* mode) -> std::size_t {
    tr_layout* layout = block(300 * size(), 1000);
    const std::vector<double> values = values_of(layout);
    tr_file* const file = tr_fopen(pattern.c_str(), mode);
    if (!CHECK(file != nullptr)) return 0;
    const std::size_t written = tr_fwrite_array(values.data(), TR_F64, layout, file);
    (void)tr_fclose(file);
    tr_layout_free(&layout);
    return written;
  };
  std::size_t whole = 0;
  {
    const Session session;
    whole = write("wl");
    CHECK(whole > 0);
  }
  {
    const Session session("log=error fault=\"nth=1 fault=enospc calls=write\"");
    CHECK(write("r+l") < whole);
  }
  const Session session;
  tr_layout* layout = block(300 * size(), 1000);
  std::vector<double> values = values_of(layout);
  tr_file* const file = tr_fopen(pattern.c_str(), "rl");
  if (!CHECK(file != nullptr)) return;
  CHECK_EQ(tr_fread_array(values.data(), TR_F64, layout, file), 0);
  CHECK(std::string(tr_error()).find("no array was written at byte 0") != std::string::npos);
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_remove_local(pattern.c_str()), 0);
  tr_layout_free(&layout);
}

MPI_TEST(local, calls_do_not_wait_for_other_ranks) {
  const Session session;
  const std::string pattern = name("%02d");
  tr_layout* layout = block(20, 20);
  // Ranks come one after another, each with its whole file: a call that communicated would hang here.
  for (int turn = 0; turn < size(); ++turn) {
    MPI_Barrier(state().comm);
    if (turn != rank()) continue;
    tr_file* const file = tr_fopen(pattern.c_str(), "w+l");
    if (!CHECK(file != nullptr)) continue;
    const std::vector<double> values = values_of(layout);
    CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), values.size());
    CHECK_EQ(tr_fflush(file), 0);
    CHECK_EQ(tr_ftell(file), static_cast<long>(values.size() * 8));
    tr_rewind(file);
    std::vector<double> read(values.size());
    CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), read.size());
    CHECK(read == values);
    CHECK_EQ(tr_fclose(file), 0);
  }
  MPI_Barrier(state().comm);
  CHECK_EQ(tr_remove_local(pattern.c_str()), 0);
  tr_layout_free(&layout);
}

MPI_TEST(local, names_that_make_no_sense_are_refused) {
  const Session session;
  const struct {
    const char* pattern;
    const char* said;
  } bad[] = {{"a%s", "only %d stands for the rank"},
             {"a%d%d", "has the rank twice"},
             {"a%", "has the conversion %"},
             {"a%099d", "a width above"}};
  for (const auto& each : bad) {
    CHECK(tr_fopen(each.pattern, "wl") == nullptr);
    CHECK_EQ(errno, EINVAL);
    CHECK(std::string(tr_error()).find(each.said) != std::string::npos);
  }
  CHECK(tr_fopen("a", "wlp") == nullptr);
  CHECK(std::string(tr_error()).find("choose one") != std::string::npos);
}

namespace {

std::string text_in(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns the name that a rank's file has if the program has given the rank no place in it.
std::string with_rank(const std::string& plain, int of) {
  char number[16];
  std::snprintf(number, sizeof number, ".%04d", of);
  return size() == 1 ? plain : plain + number;
}

void write_line(const char* path, const char* mode) {
  tr_file* file = tr_fopen(path, mode);
  if (!CHECK(file != nullptr)) return;
  tr_fprintf_nr(file, "rank %d\n", rank());
  CHECK_EQ(tr_fclose(file), 0);
}

const std::string own_line() { return "rank " + std::to_string(rank()) + "\n"; }

}  // namespace

MPI_TEST(local, names_without_a_rank_get_it_behind) {
  const Session session;
  const std::string plain = name("DATA.DAT");
  write_line(plain.c_str(), "wl");
  CHECK_EQ(text_in(with_rank(plain, rank())), own_line());
  tr_file* file = tr_fopen(plain.c_str(), "rl");
  int number = -1;
  if (CHECK(file != nullptr)) CHECK(tr_fscanf(file, "rank %d", &number) == 1 && number == rank());
  CHECK_EQ(tr_fclose(file), 0);
  MPI_Barrier(state().comm);
  CHECK_EQ(tr_remove_local(plain.c_str()), 0);
  CHECK(!std::filesystem::exists(with_rank(plain, rank())));
  CHECK_EQ(tr_remove_local(plain.c_str()), -1);
  CHECK_EQ(errno, ENOENT);
}

MPI_TEST(local, files_are_renamed_with_what_describes_them) {
  const Session session;
  const std::string from = name("from.%03d");
  const std::string to = name("to.%03d");
  tr_layout* layout = block(50, 70);
  std::vector<double> values = values_of(layout);
  tr_file* file = tr_fopen(from.c_str(), "wl");
  if (!CHECK(file != nullptr)) return;
  CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), values.size());
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_rename_local(from.c_str(), to.c_str()), 0);
  CHECK(!std::filesystem::exists(own_file(name("from."))));
  CHECK(std::filesystem::exists(own_file(name("to.")) + ".layout"));
  file = tr_fopen(to.c_str(), "rl");
  std::vector<double> read(values.size());
  if (CHECK(file != nullptr)) CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), read.size());
  CHECK(read == values);
  CHECK_EQ(tr_fclose(file), 0);
  CHECK_EQ(tr_rename_local(from.c_str(), to.c_str()), -1);
  CHECK_EQ(errno, ENOENT);
  CHECK_EQ(tr_rename_local(to.c_str(), name("%s").c_str()), -1);
  CHECK(std::string(tr_error()).find("only %d stands for the rank") != std::string::npos);
  CHECK_EQ(tr_rename_local(to.c_str(), rank() == 0 ? nullptr : to.c_str()), -1);
  CHECK_EQ(errno, EINVAL);
  CHECK_EQ(tr_remove_local(to.c_str()), 0);
  CHECK_EQ(tr_layout_free(&layout), TR_OK);
}

MPI_TEST(local, temporary_files_are_each_rank_s_own) {
  const Session session;
  tr_file* file = tr_tmpfile_local();
  if (!CHECK(file != nullptr)) return;
  for (int i = 0; i <= rank(); ++i) CHECK_EQ(tr_fputc('x', file), 'x');
  CHECK_EQ(tr_ftell(file), long{rank()} + 1);
  CHECK_EQ(tr_fclose(file), 0);
  std::vector<char> names(static_cast<std::size_t>(size()) * L_tmpnam);
  char mine[L_tmpnam] = "";
  CHECK(tr_tmpnam_local(mine) == mine);
  MPI_Allgather(mine, L_tmpnam, MPI_CHAR, names.data(), L_tmpnam, MPI_CHAR, state().comm);
  int same = 0;
  for (int i = 0; i < size(); ++i)
    same += std::string(&names[static_cast<std::size_t>(i) * L_tmpnam]) == mine;
  CHECK_EQ(same, 1);
}

MPI_TEST(local, files_of_all_become_local_and_back) {
  const Session session;
  const std::string common = name("common");
  const std::string own = name("own.%03d");
  tr_file* file = tr_fopen(common.c_str(), "w");
  for (tr_file* each : {file, tr_stdout}) {
    each = tr_freopen(own.c_str(), "wl", each);
    if (!CHECK(each != nullptr)) return;
    tr_fprintf_nr(each, "rank %d\n", rank());
    CHECK_EQ(tr_fprintf(each, "%s", rank() == 0 ? "first" : "other rank"), rank() == 0 ? 5 : 10);
    CHECK_EQ(tr_fflush(each), 0);
    CHECK_EQ(text_in(own_file(name("own."))), own_line() + (rank() == 0 ? "first" : "other rank"));
    each = tr_freopen(common.c_str(), "w+", each);
    if (!CHECK(each != nullptr)) return;
    CHECK_EQ(tr_fprintf(each, "%d", rank() + 100), 3);  // the I/O rank's
    CHECK_EQ(tr_ftell(each), 3);
    CHECK_EQ(tr_fflush(each), 0);
    MPI_Barrier(state().comm);
    CHECK_EQ(text_in(common), "100");
    if (each == file) CHECK_EQ(tr_fclose(each), 0);
  }
  // Standard output went along: the calls without a file write there, too.
  CHECK(tr_stdout != nullptr);
  CHECK(tr_freopen(own.c_str(), "wl", tr_stdout) == tr_stdout);
  CHECK_EQ(tr_printf("%s", own_line().c_str()), static_cast<int>(own_line().size()));
  CHECK_EQ(tr_fflush(tr_stdout), 0);
  CHECK_EQ(text_in(own_file(name("own."))), own_line());
  CHECK(tr_freopen(common.c_str(), "w", tr_stdout) == tr_stdout);
  MPI_Barrier(state().comm);
  CHECK_EQ(tr_remove_local(own.c_str()), 0);
  CHECK_EQ(tr_remove(common.c_str()), 0);
}

MPI_TEST(local, ranks_that_reopen_in_different_modes_get_an_error) {
  const Session session;
  const std::string pattern = name("differ.%d");
  tr_file* file = tr_fopen(name("differ").c_str(), "w");
  if (!CHECK(file != nullptr)) return;
  const bool odd = size() > 1 && rank() == size() - 1;
  file = tr_freopen(pattern.c_str(), odd ? "w" : "wl", file);
  CHECK_EQ(file != nullptr, size() == 1);
  if (size() > 1) CHECK_EQ(errno, EINVAL);
  CHECK(file == nullptr || tr_fclose(file) == 0);
  CHECK_EQ(tr_remove(name("differ").c_str()), 0);
  CHECK_EQ(tr_remove_local(pattern.c_str()), size() == 1 ? 0 : -1);  // nothing was opened
  file = tr_fopen(pattern.c_str(), "wl");
  CHECK(tr_freopen(pattern.c_str(), "wlx", file) == nullptr);  // each rank for itself
  MPI_Barrier(state().comm);
  CHECK_EQ(tr_remove_local(pattern.c_str()), 0);
}

MPI_TEST_MAIN
