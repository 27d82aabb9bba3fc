// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Many files, several communicators, and files that are not regular.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"
#include "support/process_memory.hpp"
#include "support/variable.hpp"

using namespace tailrace::files_test;
using tailrace::process_memory;
using tailrace::Variable;

namespace {

std::string numbered(const std::string& directory, int number) {
  return directory + "/f" + std::to_string(number);
}

}  // namespace

MPI_TEST(groups, have_the_memory_of_asynchronous_calls_from_the_start_where_its_size_is_set) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  const std::int64_t before = process_memory("RssShmem");
  {
    const Session session;
    CHECK(process_memory("RssShmem") - before < 32 * mib);
  }
  const Session session("io_buffer=64MiB");
  CHECK(process_memory("RssShmem") - before >= 64 * mib);
}

namespace {

/// Returns true if this rank reads back what it has written, in each mode.
void arrays_come_back(const std::string& path) {
  constexpr tr_index rows = 3000, columns = 1000;
  const tr_index shape[] = {rows, columns};
  tr_layout* layout = nullptr;
  CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_OK);
  tr_index count = 0;
  CHECK_EQ(tr_layout_count(layout, &count), TR_OK);
  std::vector<double> values(static_cast<std::size_t>(count)), read(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = rank() * 1e7 + static_cast<double>(i);
  for (const char* mode : {"w+s", "w+", "w+p", "w+ps"}) {
    tr_file* const file = tr_fopen(path.c_str(), mode);
    if (!CHECK(file != nullptr)) return;
    CHECK_EQ(tr_fwrite_array(values.data(), TR_F64, layout, file), static_cast<std::size_t>(rows * columns));
    tr_rewind(file);
    CHECK_EQ(tr_fread_array(read.data(), TR_F64, layout, file), static_cast<std::size_t>(rows * columns));
    CHECK_EQ(tr_fclose(file), 0);
    CHECK(read == values);
  }
  tr_layout_free(&layout);
}

}  // namespace

// Each rank has an environment of its own, which not every launcher passes on to other nodes.
MPI_TEST(groups, settings_that_all_ranks_need_alike_are_those_of_rank_0) {
  const std::string directory = fresh_directory("differ");
  const char* const buffer = "TAILRACE_IO_BUFFER";
  const std::int64_t before = process_memory("RssShmem");
  for (const char* others : {"64MiB", "100MiB", "8MiB"}) {
    const bool is_set_on_0 = std::string(others) != "64MiB";
    const Variable mine(rank() != 0 || is_set_on_0 ? buffer : "ANOTHER", rank() == 0 ? "64MiB" : others);
    const Variable aggregators("TAILRACE_AGGREGATORS", rank() == 0 ? "2" : "1");
    const Variable threshold("TAILRACE_PARALLEL_THRESHOLD", rank() == 0 ? "1MiB" : "1GiB");
    CapturedStderr captured;
    const Session session;
    const std::string heard = captured.text();
    const std::string told = std::string(buffer) + " is " + (is_set_on_0 ? "64MiB" : "100MiB") +
                             " on rank 0 and " + others + " on rank 1: rank 0's counts on all ranks";
    CHECK_EQ(mentions(heard, told), rank() == 0 && size() > 1);
    CHECK_EQ(process_memory("RssShmem") - before >= 64 << 20, is_set_on_0);
    arrays_come_back(directory + "/f");
  }
  {
    const Variable servers("TAILRACE_SERVERS", rank() == 0 ? "1" : "0");
    CapturedStderr captured;
    const Session session;
    CHECK_EQ(session.compute() == MPI_COMM_NULL, rank() == size() - 1);
  }
  remove_directory(directory);
}

// Layouts are numbered, so that ranks that pass different ones hear of it. A server makes none.
MPI_TEST(groups, arrays_are_the_same_on_a_rank_that_was_a_server_before) {
  const std::string directory = fresh_directory("served");
  if (size() > 1) {
    {
      const Session session("servers=1");
      if (session.compute() != MPI_COMM_NULL) arrays_come_back(directory + "/f");
    }
    const Session session;
    arrays_come_back(directory + "/f");
  }
  remove_directory(directory);
}

MPI_TEST(groups, thousands_of_opens_on_one_communicator) {
  const std::string directory = fresh_directory("many");
  {
    const Session session;
    for (int i = 0; i < 3000; ++i) {
      tr_file* const file = tr_fopen(numbered(directory, i % 7).c_str(), i % 2 == 0 ? "w" : "a");
      if (!CHECK(file != nullptr)) break;
      tr_fprintf_nr(file, "%d\n", i);
      if (!CHECK_EQ(tr_fclose(file), 0)) break;
    }
    std::vector<tr_file*> open;
    for (int i = 0; i < 300; ++i) open.push_back(tr_fopen(numbered(directory, i).c_str(), "w+"));
    for (int i = 0; i < 300; ++i)
      CHECK_EQ(tr_fprintf(open[static_cast<std::size_t>(i)], "%d", i * i), std::to_string(i * i).size());
    for (int i = 299; i >= 0; --i) {
      tr_file* const file = open[static_cast<std::size_t>(i)];
      tr_rewind(file);
      int number = -1;
      CHECK_EQ(tr_fscanf(file, "%d", &number), 1);
      CHECK_EQ(number, i * i);
      CHECK_EQ(tr_fclose(file), 0);
    }
  }
  remove_directory(directory);
}

MPI_TEST(groups, files_of_a_part_of_the_ranks_live_beside_those_of_all) {
  const std::string directory = fresh_directory("parts");
  {
    const Session session;
    const int color = rank() % 2;
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(session.compute(), color, -rank(), &part);  // the highest rank is its I/O rank
    int place = 0;
    MPI_Comm_rank(part, &place);
    tr_file* const all = tr_fopen(numbered(directory, 9).c_str(), "w+");
    tr_file* const own = tr_fopen_comm(part, numbered(directory, color).c_str(), "w+");
    CHECK(all != nullptr && own != nullptr);
    tr_fprintf_nr(own, "rank %d\n", rank());
    // The parts make different numbers of calls.
    for (int i = 0; i < 10 * (color + 1); ++i) CHECK_EQ(tr_fputc('x', own), 'x');
    CHECK_EQ(tr_fprintf(all, "rank %d\n", rank()), 7);
    tr_rewind(own);
    tr_rewind(all);
    int number = -1;
    CHECK_EQ(tr_fscanf(own, "rank %d", &number), 1);
    const int last = size() - 1;
    CHECK_EQ(number, last % 2 == color ? last : last - 1);
    CHECK_EQ(tr_fscanf(all, "rank %d", &number), 1);
    CHECK_EQ(number, 0);
    MPI_Comm_free(&part);  // the file keeps what it needs
    CHECK_EQ(tr_fgetc(own), '\n');
    CHECK_EQ(tr_fclose(own), 0);
    CHECK_EQ(tr_fclose(all), 0);
  }
  remove_directory(directory);
}

MPI_TEST(groups, communicators_come_and_go_without_a_trace) {
  const std::string directory = fresh_directory("come");
  {
    const Session session;
    // If one context were kept each time, MPICH would not have enough.
    for (int i = 0; i < 1500; ++i) {
      MPI_Comm part = MPI_COMM_NULL;
      MPI_Comm_dup(session.compute(), &part);
      tr_file* const file = tr_fopen_comm(part, numbered(directory, 0).c_str(), "w");
      if (!CHECK(file != nullptr)) break;
      if (i % 2 == 0) MPI_Comm_free(&part);
      CHECK_EQ(tr_fclose(file), 0);
      if (i % 2 != 0) MPI_Comm_free(&part);
    }
  }
  remove_directory(directory);
}

MPI_TEST(groups, five_thousand_files_on_a_thousand_communicators_need_none_of_their_own) {
  const std::string directory = fresh_directory("thousand");
  {
    const Session session;
    // MPICH has 2,046 contexts in all: one more for each of these would be too many.
    std::vector<MPI_Comm> parts(1100, MPI_COMM_NULL);
    for (std::size_t i = 0; i < parts.size(); ++i)
      MPI_Comm_split(session.compute(), (rank() + static_cast<int>(i)) % 2, rank(), &parts[i]);
    for (int i = 0; i < 5500; ++i) {
      MPI_Comm part = parts[static_cast<std::size_t>(i) % parts.size()];
      int first = rank();
      MPI_Bcast(&first, 1, MPI_INT, 0, part);
      tr_file* const file = tr_fopen_comm(part, numbered(directory, first).c_str(), "w");
      if (!CHECK(file != nullptr)) break;
      CHECK_EQ(tr_fprintf(file, "%d", i), std::to_string(i).size());
      CHECK_EQ(tr_fclose(file), 0);
    }
    for (MPI_Comm& part : parts) MPI_Comm_free(&part);
  }
  remove_directory(directory);
}

MPI_TEST(groups, a_communicator_that_cannot_be_used_is_refused) {
  const Session session;
  errno = 0;
  CHECK(tr_fopen_comm(MPI_COMM_NULL, "x", "w") == nullptr);
  CHECK_EQ(errno, EINVAL);
  CHECK(mentions(tr_error(), "MPI_COMM_NULL"));
  CHECK_EQ(tr_remove_comm(MPI_COMM_NULL, "x"), -1);
}

MPI_TEST(groups, a_communicator_that_joins_two_or_has_ranks_of_none_is_refused_on_every_rank) {
  if (size() < 2) return;
  const std::string directory = fresh_directory("joined");
  const auto refused = [&](MPI_Comm comm, const std::string& why) {
    errno = 0;
    tr_file* const file = tr_fopen_comm(comm, numbered(directory, 0).c_str(), "w");
    CHECK(file == nullptr);
    CHECK_EQ(errno, EINVAL);
    CHECK(mentions(tr_error(), why));
    CHECK(agreed(file == nullptr ? 0 : 1, errno));
    CHECK_EQ(tr_remove_comm(comm, numbered(directory, 0).c_str()), -1);
    CHECK(mentions(tr_error(), why));
    CHECK(tr_tmpfile_comm(comm) == nullptr);
  };
  const auto works = [&](MPI_Comm comm) {
    tr_file* const file = tr_fopen_comm(comm, numbered(directory, 1).c_str(), "w");
    if (!CHECK(file != nullptr)) return;
    CHECK_EQ(tr_fputs("it works", file) >= 0, true);
    CHECK_EQ(tr_fclose(file), 0);
    CHECK(contents(numbered(directory, 1)) == "it works");
    MPI_Barrier(comm);
  };
  {
    const Session session;
    const int half = size() / 2;
    MPI_Comm part = MPI_COMM_NULL, joined = MPI_COMM_NULL, merged = MPI_COMM_NULL;
    MPI_Comm_split(session.compute(), rank() < half ? 0 : 1, rank(), &part);
    MPI_Intercomm_create(part, 0, session.compute(), rank() < half ? half : 0, 7, &joined);
    refused(joined, "the communicator is an inter-communicator; merge it first");
    MPI_Intercomm_merge(joined, rank() < half ? 1 : 0, &merged);
    works(merged);
    for (MPI_Comm* each : {&part, &joined, &merged}) MPI_Comm_free(each);
  }
  {
    MPI_Comm everybody = MPI_COMM_NULL;
    MPI_Comm_dup(state().comm, &everybody);
    const Session session("servers=1");
    if (session.compute() != MPI_COMM_NULL) {
      errno = 0;
      CHECK(tr_fopen_comm(everybody, numbered(directory, 0).c_str(), "w") == nullptr);
      CHECK_EQ(errno, EINVAL);
      CHECK(mentions(tr_error(), "has ranks that are none of the session's compute ranks"));
      works(session.compute());
    }
    MPI_Comm_free(&everybody);
  }
  remove_directory(directory);
}

MPI_TEST(groups, a_communicator_that_is_made_again_works_anew) {
  const std::string directory = fresh_directory("again");
  {
    const Session session;
    std::vector<std::pair<tr_file*, int>> kept;  // their communicators are freed
    const auto ends = [&](tr_file* file, int expected) {
      tr_rewind(file);
      int number = -1;
      CHECK_EQ(tr_fscanf(file, "%d", &number), 1);
      CHECK_EQ(number, expected);
      CHECK_EQ(tr_fclose(file), 0);
    };
    for (int i = 0; i < 60; ++i) {
      // A handle may have the value of one that was freed, while its ranks are others.
      const int color = i % 3 == 0 ? 0 : i % 3 == 1 ? rank() % 2 : rank() / 2 % 2;
      MPI_Comm part = MPI_COMM_NULL;
      MPI_Comm_split(session.compute(), color, i % 2 == 0 ? rank() : -rank(), &part);
      int first = rank();
      MPI_Bcast(&first, 1, MPI_INT, 0, part);
      const std::string path = numbered(directory, i) + "." + std::to_string(first);
      tr_file* const file = tr_fopen_comm(part, path.c_str(), "w+");
      if (!CHECK(file != nullptr)) break;
      CHECK(tr_fprintf(file, "%d ", 1000 * first + rank()) > 0);  // that of its I/O rank
      if (i % 2 != 0) CHECK_EQ(tr_fclose(file), 0);
      MPI_Comm_free(&part);
      if (i % 2 == 0) kept.emplace_back(file, 1001 * first);
      if (i % 4 == 3) {
        for (const auto& [each, expected] : kept) ends(each, expected);
        kept.clear();
      }
    }
  }
  remove_directory(directory);
}

namespace {

/// A communicator of the session's ranks with a file. Its first rank's words go into the file.
struct Writer {
  MPI_Comm comm = MPI_COMM_NULL;
  tr_file* file = nullptr;
  std::string expected = {};
  int first = 0;

  void write(int round) {
    const std::string mine = "rank " + std::to_string(rank()) + " in round " + std::to_string(round) + "\n";
    const std::string theirs = "rank " + std::to_string(first) + " in round " + std::to_string(round) + "\n";
    expected += theirs;
    if (round % 3 == 0)
      tr_fprintf_nr(file, "%s", mine.c_str());
    else
      CHECK_EQ(tr_fprintf(file, "%s", mine.c_str()), theirs.size());
  }
  void read_back() {
    tr_rewind(file);
    std::string found(expected.size() + 1, ' ');
    CHECK_EQ(tr_fread(found.data(), 1, found.size(), file), expected.size());
    found.pop_back();
    CHECK(found == expected);
  }
};

}  // namespace

MPI_TEST(groups, files_of_overlapping_communicators_are_used_in_turn) {
  const std::string directory = fresh_directory("overlap");
  {
    const Session session;
    const int half = (size() + 1) / 2;
    const std::pair<int, int> splits[] = {{0, rank()},
                                          {rank() % 2, rank()},
                                          {rank() < half ? 0 : 1, rank()},
                                          {0, -rank()},
                                          {rank() / 2 % 2, -rank()}};
    std::vector<Writer> writers;
    for (const auto& [color, key] : splits) {
      Writer& writer = writers.emplace_back();
      MPI_Comm_split(session.compute(), color, key, &writer.comm);
      writer.first = rank();
      MPI_Bcast(&writer.first, 1, MPI_INT, 0, writer.comm);
      const std::string path =
          numbered(directory, static_cast<int>(writers.size())) + "." + std::to_string(writer.first);
      writer.file = tr_fopen_comm(writer.comm, path.c_str(), "w+");
      CHECK(writer.file != nullptr);
    }
    for (int round = 0; round < 30; ++round) {
      for (std::size_t i = 0; i < writers.size(); ++i) {
        // The order is the same on all ranks, but some ranks come to it late.
        writers[(i + static_cast<std::size_t>(round)) % writers.size()].write(round);
        if ((rank() + round) % 3 == 0) tr_progress();
      }
    }
    for (Writer& each : writers) each.read_back();
    for (Writer& each : writers) CHECK_EQ(tr_fclose(each.file), 0);
    for (Writer& each : writers) MPI_Comm_free(&each.comm);
  }
  remove_directory(directory);
}

MPI_TEST(groups, arrays_on_two_communicators_are_written_and_read_at_once) {
  const std::string directory = fresh_directory("arrays");
  {
    const Session session("parallel_threshold=0");
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(session.compute(), 0, -rank(), &reversed);
    for (const tr_index each : {tr_index{1}, tr_index{1} << 18}) {  // 8 bytes, and 2 MiB of each rank
      const tr_index all = each * size();
      tr_layout* layout = nullptr;
      CHECK_EQ(tr_layout_block(1, &all, nullptr, &layout), TR_OK);
      tr_file* const files[] = {tr_fopen_comm(session.compute(), numbered(directory, 0).c_str(), "w+p"),
                                tr_fopen_comm(reversed, numbered(directory, 1).c_str(), "w+ps"),
                                tr_fopen_comm(reversed, numbered(directory, 2).c_str(), "w+p"),
                                tr_fopen_comm(session.compute(), numbered(directory, 3).c_str(), "w+ps")};
      std::vector<double> values[4], read[4];
      for (int i = 0; i < 4; ++i) {
        values[i].assign(static_cast<std::size_t>(each), rank() + 10.0 * i);
        read[i].resize(values[i].size());
        CHECK_EQ(tr_fwrite_array(values[i].data(), TR_F64, layout, files[i]), all);
      }
      for (int i = 0; i < 4; ++i) {
        tr_rewind(files[i]);
        CHECK_EQ(tr_fread_array(read[i].data(), TR_F64, layout, files[i]), all);
      }
      for (int i = 3; i >= 0; --i) {
        CHECK_EQ(tr_fclose(files[i]), 0);
        CHECK(read[i] == values[i]);
      }
      tr_layout_free(&layout);
    }
    MPI_Comm_free(&reversed);
  }
  remove_directory(directory);
}

MPI_TEST(groups, the_standard_streams_of_another_communicator) {
  const Session session;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(session.compute(), rank() / 2, rank(), &part);
  tr_file* const out = tr_standard_stream_comm(part, 1);
  CHECK(out != nullptr && out != tr_stdout);
  CHECK(out == tr_standard_stream_comm(part, 1));
  CHECK_EQ(tr_fprintf(out, "# part of rank %03d\n", rank()), 19);
  CHECK_EQ(tr_fclose(out), 0);
  CHECK(tr_stdout != nullptr);
  CHECK(tr_standard_stream_comm(part, 3) == nullptr);
  MPI_Comm_free(&part);
}

MPI_TEST(groups, temporary_files_and_names) {
  const Session session;
  tr_file* const file = tr_tmpfile();
  CHECK(file != nullptr);
  CHECK_EQ(tr_fputs("remember", file) >= 0, true);
  tr_rewind(file);
  char text[20] = {};
  CHECK(tr_fgets(text, sizeof text, file) == text);
  CHECK_EQ(std::string(text), "remember");
  CHECK_EQ(tr_fclose(file), 0);
  char name[L_tmpnam];
  CHECK(tr_tmpnam(name) == name);
  CHECK(same_on_all_ranks(name));
  CHECK(!std::filesystem::exists(name));
  const char* const other = tr_tmpnam(nullptr);
  CHECK(other != nullptr && std::string(other) != name);
  CHECK(same_on_all_ranks(other));
}

MPI_TEST(groups, removing_and_renaming) {
  const std::string directory = fresh_directory("names");
  if (rank() == 0) {
    write_file(directory + "/a", "a");
    std::filesystem::create_directories(directory + "/empty");
    std::filesystem::create_directories(directory + "/other");
  }
  MPI_Barrier(state().comm);
  {
    const Session session;
    CHECK_EQ(tr_rename((directory + "/a").c_str(), (directory + "/b").c_str()), 0);
    CHECK(contents(directory + "/b") == "a");
    MPI_Barrier(state().comm);  // the I/O rank does not wait for the others
    CHECK_EQ(tr_rename((directory + "/b").c_str(), (directory + "/other/c").c_str()), 0);
    CHECK(contents(directory + "/other/c") == "a");
    MPI_Barrier(state().comm);
    errno = 0;
    CHECK_EQ(tr_remove((directory + "/other").c_str()), -1);
    CHECK_EQ(errno, ENOTEMPTY);
    CHECK_EQ(tr_remove((directory + "/other/c").c_str()), 0);
    CHECK_EQ(tr_remove((directory + "/empty").c_str()), 0);
    CHECK(!std::filesystem::exists(directory + "/empty"));
  }
  remove_directory(directory);
}

MPI_TEST(groups, a_pipe_works_through_the_io_rank) {
  const std::string directory = fresh_directory("pipe");
  const std::string path = directory + "/pipe";
  if (rank() == 0) CHECK_EQ(::mkfifo(path.c_str(), 0600), 0);
  MPI_Barrier(state().comm);
  std::thread writer;
  if (rank() == 0) writer = std::thread([&] { write_file(path, "12 34\nline\n"); });
  {
    const Session session;
    tr_file* const file = tr_fopen(path.c_str(), "r");
    int first = 0;
    int second = 0;
    CHECK_EQ(tr_fscanf(file, "%d %d ", &first, &second), 2);
    CHECK_EQ(first * 100 + second, 1234);
    errno = 0;
    CHECK_EQ(tr_fseek(file, 0, SEEK_SET), -1);
    CHECK_EQ(errno, ESPIPE);
    errno = 0;
    CHECK_EQ(tr_ftell(file), -1);
    CHECK_EQ(errno, ESPIPE);
    char line[16];
    CHECK(tr_fgets(line, sizeof line, file) != nullptr && std::string(line) == "line\n");
    CHECK_EQ(tr_fgetc(file), EOF);
    CHECK_EQ(tr_feof(file), 1);
    CHECK_EQ(tr_fclose(file), 0);
  }
  if (writer.joinable()) writer.join();
  remove_directory(directory);
}

MPI_TEST(groups, other_programs_see_what_was_flushed) {
  const std::string directory = fresh_directory("seen");
  {
    const Session session;
    for (const char* mode : {"w", "ws"}) {
      tr_file* const file = tr_fopen(numbered(directory, 1).c_str(), mode);
      tr_fputs_nr("one\n", file);
      tr_puts_nr("# to standard output");
      CHECK_EQ(tr_fflush(file), 0);
      CHECK(contents(numbered(directory, 1)) == "one\n");
      MPI_Barrier(state().comm);  // the I/O rank goes on at once
      tr_fputs_nr("two\n", file);
      CHECK_EQ(tr_fflush(nullptr), 0);
      CHECK(contents(numbered(directory, 1)) == "one\ntwo\n");
      MPI_Barrier(state().comm);
      tr_fputc_nr('3', file);
      CHECK_EQ(tr_fflush_durable(file), 0);
      CHECK(contents(numbered(directory, 1)) == "one\ntwo\n3");
      CHECK_EQ(tr_fclose(file), 0);
      MPI_Barrier(state().comm);
    }
  }
  remove_directory(directory);
}

MPI_TEST_MAIN
