// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Ranks of other nodes are answered while this one is inside MPI, or computes: MPI_THREAD_MULTIPLE lets a
// service thread do it. On one node nobody has to be answered, and the cases pass all the same.
#include <chrono>
#include <thread>
#include <vector>

#include "files/fixture.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::files_test;

namespace {

constexpr tr_index page = 4096;
constexpr tr_index elements = 20'000;

bool are_several_nodes() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(state().comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int ranks = 0;
  MPI_Comm_size(node, &ranks);
  MPI_Comm_free(&node);
  return any_rank(ranks < size());
}

bool are_threads_forbidden() {
  const char* const threads = std::getenv("TAILRACE_IO_THREADS");
  return threads != nullptr && std::string(threads) == "0";
}

/// Without a thread the others wait for ever.
bool is_skipped() {
  if (are_threads_forbidden()) skip("there are no threads");
  return are_threads_forbidden();
}

char byte_at(tr_index offset, int round) { return static_cast<char>(offset * 31 / 7 + round); }

std::string bytes_at(tr_index offset, tr_index count, int round) {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  for (tr_index i = 0; i < count; ++i) bytes[static_cast<std::size_t>(i)] = byte_at(offset + i, round);
  return bytes;
}

/// A file of a few pages for each rank, and an array.
struct Job {
  explicit Job(const std::string& path, const char* mode = "w+", const char* options = "page=4KiB")
      : bytes(size() * 8 * page) {
    ok(tr_shared_open(path.c_str(), mode, options, &file), "open");
    ok(tr_global_create(TR_I64, elements, "page=4KiB", &array), "create");
  }
  void write(int round) const {
    for (tr_index at = rank() * page / 2; at < bytes; at += size() * page / 2) {
      const std::string part = bytes_at(at, page / 2, round);
      ok(tr_shared_pwrite(file, part.data(), page / 2, at), "write");
    }
    ok(tr_shared_sync(file), "sync");
  }
  void check(int round) const {
    std::string got(static_cast<std::size_t>(bytes), '?');
    tr_index count = 0;
    ok(tr_shared_pread(file, got.data(), bytes, 0, &count), "read");
    CHECK(got == bytes_at(0, bytes, round));
  }
  /// Each rank has added `times` to each element.
  void check_sums(std::int64_t times) const {
    std::vector<std::int64_t> sums(elements, -1);
    ok(tr_global_read(array, 0, elements, sums.data()), "gather");
    CHECK(sums == std::vector<std::int64_t>(elements, times));
  }
  void close() {
    ok(tr_shared_close(&file), "close");
    ok(tr_global_free(&array), "free");
  }

  tr_shared* file = nullptr;
  tr_global* array = nullptr;
  tr_index bytes;
};

std::vector<tr_index> all_elements() {
  std::vector<tr_index> all(elements);
  for (tr_index i = 0; i < elements; ++i) all[static_cast<std::size_t>(i)] = i;
  return all;
}

}  // namespace

MPI_TEST(progress, a_rank_in_a_barrier_answers_other_nodes) {
  if (is_skipped()) return;
  const Session session;
  const std::string directory = fresh_directory("progress");
  Job job(directory + "/barrier");
  const std::vector<tr_index> all = all_elements();
  const std::vector<std::int64_t> ones(elements, 1);
  for (int reader = 0; reader < size(); ++reader) {
    job.write(reader);
    ok(tr_global_sync(job.array), "sync");
    if (rank() == reader) {
      job.check(reader);
      job.check_sums(reader);
      ok(tr_global_accumulate(job.array, elements, all.data(), ones.data(), TR_LOCKED), "add");
      job.check_sums(reader + 1);
      tr_index end = 0;
      ok(tr_shared_size(job.file, &end), "size");
      CHECK_EQ(end, job.bytes);
    }
    MPI_Barrier(state().comm);
    ok(tr_global_sync(job.array), "sync");
  }
  job.close();
  remove_directory(directory);
}

MPI_TEST(progress, a_rank_that_computes_answers_other_nodes) {
  if (is_skipped()) return;
  const Session session;
  const std::string directory = fresh_directory("progress");
  Job job(directory + "/computing");
  job.write(5);
  ok(tr_global_sync(job.array), "sync");
  const std::string flag = directory + "/done";
  const int reader = size() - 1;
  if (rank() == reader) {
    job.check(5);
    job.check_sums(0);
    write_file(flag, "done");
  }
  while (!std::filesystem::exists(flag)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  job.close();
  remove_directory(directory);
}

MPI_TEST(progress, pages_come_from_storage_while_their_rank_is_in_a_barrier) {
  if (is_skipped()) return;
  const Session session;
  const std::string directory = fresh_directory("progress");
  const std::string path = directory + "/stored";
  const std::string memory = "page=4KiB memory=" + std::to_string(size() * 4 * page);
  Job job(path, "w+", memory.c_str());
  job.write(1);
  job.close();
  for (int reader = 0; reader < size(); reader += std::max(1, size() - 1)) {
    Job again(path, "r+", memory.c_str());
    if (rank() == reader) {
      again.check(1);
      for (tr_index at = 0; at < again.bytes; at += page) {
        const std::string part = bytes_at(at, 100, 1);
        ok(tr_shared_pwrite(again.file, part.data(), 100, at), "write");
      }
      again.check(1);
    }
    MPI_Barrier(state().comm);
    again.close();
  }
  remove_directory(directory);
}

/// Pages that one rank has written whole are on storage before any collective call, also those of other
/// nodes: the thread that answers there has them stored.
MPI_TEST(progress, pages_of_other_nodes_are_stored_while_their_ranks_are_in_a_barrier) {
  if (is_skipped()) return;
  const Session session;
  const std::string directory = fresh_directory("progress");
  const std::string path = directory + "/ahead";
  constexpr tr_index large = 1 << 20;
  const tr_index pages = 4 * size();  // on one node pages are stored four by four
  tr_shared* file = nullptr;
  ok(tr_shared_open(path.c_str(), "w", "page=1MiB", &file), "open");
  if (rank() == 0) {
    const std::string whole = bytes_at(0, pages * large, 9);
    for (tr_index i = 0; i < pages; ++i) {
      const tr_index at = i * large, some = i % 2 == 0 ? large : large / 2;
      ok(tr_shared_pwrite(file, whole.data() + at, some, at), "write");
      if (some < large) ok(tr_shared_pwrite(file, whole.data() + at + some, some, at + some), "write");
    }
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (contents(path) != whole && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(contents(path) == whole);
  }
  MPI_Barrier(state().comm);
  ok(tr_shared_close(&file), "close");
  remove_directory(directory);
}

/// Everybody asks everybody, and computes in between: answers of the thread and of calls take turns.
MPI_TEST(progress, ranks_ask_each_other_all_the_time) {
  const Session session;
  const std::string directory = fresh_directory("progress");
  Job job(directory + "/all");
  job.write(3);
  ok(tr_global_sync(job.array), "sync");
  const std::vector<std::int64_t> ones(elements, 1);
  const std::vector<tr_index> all = all_elements();
  constexpr int rounds = 6;
  for (int round = 0; round < rounds; ++round) {
    if (round % 2 == rank() % 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    job.check(3);
    ok(tr_global_accumulate(job.array, elements, all.data(), ones.data(), TR_LOCKED), "add");
    const std::string mine = bytes_at(rank() * page, page, 3);
    ok(tr_shared_pwrite(job.file, mine.data(), page, rank() * page), "write");
    char text[16] = {};
    ok(tr_shared_append(job.file, text, sizeof text, nullptr), "append");
  }
  ok(tr_global_sync(job.array), "sync");
  ok(tr_shared_sync(job.file), "sync");
  job.check_sums(rounds * size());
  tr_index end = 0;
  ok(tr_shared_size(job.file, &end), "size");
  CHECK_EQ(end, job.bytes + rounds * size() * 16);
  ok(tr_global_sync(job.array), "sync");
  job.close();
  remove_directory(directory);
}

/// tr_finalize ends all that is open, and the next session begins anew.
MPI_TEST(progress, the_thread_ends_with_the_session) {
  const bool are_several = are_several_nodes();
  const std::string directory = fresh_directory("progress");
  for (int session = 0; session < 3; ++session) {
    CapturedStderr captured;
    {
      const Session one("log=info");
      const Job left(directory + "/left");
      left.write(session);
    }
    const bool are_threads = are_several && !are_threads_forbidden();
    if (rank() != 0) continue;
    CHECK_EQ(mentions(captured.text(), "progress=threads"), are_threads);
    CHECK_EQ(mentions(captured.text(), "progress=caller"), are_several && !are_threads);
  }
  remove_directory(directory);
}

MPI_TEST_MAIN_WITH(MPI_THREAD_MULTIPLE)
