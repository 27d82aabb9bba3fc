// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// With I/O servers, ranks of other nodes are answered while this one is inside MPI, without
// MPI_THREAD_MULTIPLE: the server of its node does it. On one node nobody has to be answered, and the cases
// pass all the same.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "files/fixture.hpp"
#include "hanging_storage.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::files_test;
using tailrace::HangingStorage;

namespace {

constexpr tr_index page = 4096;
constexpr tr_index elements = 20'000;
constexpr const char* servers = "servers=node:1 log=info ";

bool are_several_nodes() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(state().comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int ranks = 0;
  MPI_Comm_size(node, &ranks);
  MPI_Comm_free(&node);
  return any_rank(ranks < size());
}

std::string bytes_at(tr_index offset, tr_index count, int round) {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  for (tr_index i = 0; i < count; ++i)
    bytes[static_cast<std::size_t>(i)] = static_cast<char>((offset + i) * 31 / 7 + round);
  return bytes;
}

/// A file and an array of the compute ranks.
class Job {
 public:
  Job(MPI_Comm compute, const std::string& path, tr_index pages_of_rank, const char* mode = "w+",
      const std::string& options = "page=4KiB")
      : compute_(compute) {
    MPI_Comm_rank(compute, &me);
    MPI_Comm_size(compute, &ranks);
    bytes = ranks * pages_of_rank * page;
    ok(tr_shared_open_comm(compute, path.c_str(), mode, options.c_str(), &file), "open");
    ok(tr_global_create_comm(compute, TR_I64, elements, "page=4KiB", &array), "create");
  }
  void write(int round) const {
    for (tr_index at = me * page / 2; at < bytes; at += ranks * page / 2)
      ok(tr_shared_pwrite(file, bytes_at(at, page / 2, round).data(), page / 2, at), "write");
  }
  void sync() const {
    ok(tr_shared_sync(file), "sync");
    ok(tr_global_sync(array), "sync");
  }
  void check(int round) const {
    std::string got(static_cast<std::size_t>(bytes), '?');
    tr_index count = 0;
    ok(tr_shared_pread(file, got.data(), bytes, 0, &count), "read");
    CHECK(got == bytes_at(0, bytes, round));
  }
  void check_page(tr_index which, int round) const {
    std::string got(page, '?');
    ok(tr_shared_pread(file, got.data(), page, which * page, nullptr), "read");
    CHECK(got == bytes_at(which * page, page, round));
  }
  void add() const {
    std::vector<tr_index> all(elements);
    for (tr_index i = 0; i < elements; ++i) all[static_cast<std::size_t>(i)] = i;
    const std::vector<std::int64_t> ones(elements, 1);
    ok(tr_global_accumulate(array, elements, all.data(), ones.data(), TR_LOCKED), "add");
  }
  void check_sums(std::int64_t times) const {
    std::vector<std::int64_t> sums(elements, -1);
    ok(tr_global_read(array, 0, elements, sums.data()), "gather");
    CHECK(sums == std::vector<std::int64_t>(elements, times));
  }
  void barrier() const { MPI_Barrier(compute_); }
  void close() {
    ok(tr_shared_close(&file), "close");
    ok(tr_global_free(&array), "free");
  }

  tr_shared* file = nullptr;
  tr_global* array = nullptr;
  tr_index bytes = 0;
  int me = 0;
  int ranks = 1;

 private:
  MPI_Comm compute_;
};

/// Runs `program` on the compute ranks, and returns what was logged.
template <typename Program>
std::string with_servers(const std::string& name, const std::string& options, const Program& program) {
  const std::string directory = fresh_directory(name);
  CapturedStderr captured;
  {
    const Session session(servers + options);
    if (session.compute() != MPI_COMM_NULL) program(session.compute(), directory + "/file");
  }
  const std::string log = captured.text();
  remove_directory(directory);
  return log;
}

/// Every rank in turn uses the pages and elements of all, and the others wait for it in MPI.
void use_them_in_turn(MPI_Comm compute, const std::string& path) {
  Job job(compute, path, 8);
  for (int reader = 0; reader < job.ranks; ++reader) {
    job.write(reader);
    job.sync();
    if (job.me == reader) {
      job.check(reader);
      job.check_sums(reader);
      job.add();
      job.check_sums(reader + 1);
      tr_index end = 0;
      ok(tr_shared_size(job.file, &end), "size");
      CHECK_EQ(end, job.bytes + 3 * reader);
      tr_index at = 0;
      ok(tr_shared_append(job.file, "end", 3, &at), "append");
      CHECK_EQ(at, end);
    }
    job.barrier();
    job.sync();
  }
  job.close();
}

}  // namespace

MPI_TEST(served, a_rank_in_a_barrier_keeps_no_other_node_waiting) {
  const bool are_several = are_several_nodes();
  const std::string log = with_servers("served", "", use_them_in_turn);
  if (rank() == 0) CHECK_EQ(mentions(log, "progress=servers (the first server of each node)"), are_several);
}

/// The server brings pages in where others have not changed, and its ranks are in a barrier.
MPI_TEST(served, pages_come_from_storage_while_their_rank_is_in_a_barrier) {
  with_servers("served", "", [](MPI_Comm compute, const std::string& path) {
    int ranks = 0;
    MPI_Comm_size(compute, &ranks);
    const std::string memory = "page=4KiB memory=" + std::to_string(ranks * 4 * page);
    Job first(compute, path, 20, "w+", memory);
    first.write(1);
    first.close();
    for (int reader = 0; reader < ranks; ++reader) {
      Job job(compute, path, 20, "r+", memory);
      if (job.me == reader) job.check(1);
      job.barrier();
      job.close();
    }
  });
}

/// All pages in memory have changed: the server needs ranks that store some, and they come to the library.
MPI_TEST(served, pages_that_have_changed_make_room_once_their_ranks_come_to_the_library) {
  with_servers("served", "", [](MPI_Comm compute, const std::string& path) {
    int ranks = 0;
    MPI_Comm_size(compute, &ranks);
    Job job(compute, path, 30, "w+", "page=4KiB memory=" + std::to_string(ranks * 4 * page));
    for (int round = 0; round < 3; ++round) {
      job.write(round);
      job.sync();
      job.check(round);
      job.sync();
    }
    job.close();
  });
}

MPI_TEST(served, a_file_and_an_array_are_resized_while_servers_answer) {
  with_servers("served", "", [](MPI_Comm compute, const std::string& path) {
    for (int round = 0; round < 3; ++round) {
      Job job(compute, path, 8);
      job.write(1);
      job.add();
      job.sync();
      ok(tr_shared_resize(job.file, page + 10), "cut");
      ok(tr_global_resize(job.array, 10), "cut");
      ok(tr_shared_resize(job.file, job.bytes), "extend");
      ok(tr_global_resize(job.array, 3 * elements), "extend");
      if (job.me == round % job.ranks) {
        std::string got(static_cast<std::size_t>(job.bytes), '?');
        ok(tr_shared_pread(job.file, got.data(), job.bytes, 0, nullptr), "read");
        CHECK(got == bytes_at(0, page + 10, 1) + std::string(got.size() - page - 10, '\0'));
        std::vector<std::int64_t> sums(3 * elements, -1);
        ok(tr_global_read(job.array, 0, 3 * elements, sums.data()), "gather");
        std::vector<std::int64_t> expected(3 * elements, 0);
        std::fill_n(expected.begin(), 10, job.ranks);
        CHECK(sums == expected);
      }
      job.barrier();
      job.close();
    }
  });
}

/// The program goes to a directory of its own. Where it was started, and the server stays, there is another
/// file of the name.
MPI_TEST(served, a_server_finds_the_file_of_a_program_that_has_changed_its_directory) {
  const std::filesystem::path outside = std::filesystem::current_path();
  const std::filesystem::path launch = outside / fresh_directory("launch");
  std::filesystem::current_path(launch);
  if (rank() == 0) std::ofstream("file") << std::string(1 << 20, 'x');
  MPI_Barrier(state().comm);
  const std::string log = with_servers("served", "", [&](MPI_Comm compute, const std::string& path) {
    std::filesystem::current_path(launch / std::filesystem::path(path).parent_path());
    int ranks = 0;
    MPI_Comm_size(compute, &ranks);
    const std::string memory = "page=4KiB memory=" + std::to_string(ranks * 4 * page);
    Job first(compute, "file", 8, "w+", memory);
    first.write(1);
    first.close();
    Job job(compute, "file", 8, "r+", memory);
    job.check(1);
    job.close();
    std::filesystem::current_path(launch);
  });
  CHECK(!any_rank(mentions(log, "cannot answer other nodes for its compute ranks")));
  std::filesystem::current_path(outside);
  remove_directory(launch.string());
}

/// One server cannot open the file, for which it asks its storage first: all ranks answer themselves, and
/// nobody waits in MPI for them.
MPI_TEST(served, where_a_server_has_no_file_the_ranks_answer_themselves) {
  const bool are_several = are_several_nodes();
  const std::string fault =
      "fault='rank=" + std::to_string(size() - 1) + " nth=1 fault=eio calls=open for=good'";
  const std::string log = with_servers("served", fault, [](MPI_Comm compute, const std::string& path) {
    Job job(compute, path, 8);
    for (int round = 0; round < 2; ++round) {
      job.write(round);
      job.sync();
      job.check(round);
      job.sync();
    }
    job.close();
  });
  CHECK_EQ(any_rank(mentions(log, "cannot answer other nodes for its compute ranks")), are_several);
}

/// A file in which the storage of the servers hangs, in calls of one name at a time.
struct HangingFile {
  void hang(const std::string& call) const { write_file(path + ".hang_" + call, ""); }
  void wait() const { wait_for(".hangs"); }
  void wait_for(const std::string& marker) const {
    for (int i = 0; i < 15'000 && !HangingStorage::exists(path + marker); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(HangingStorage::exists(path + marker));
  }
  void go_on(const std::string& call) const {
    CHECK(!HangingStorage::exists(path + ".gave_up"));
    std::filesystem::remove(path + ".hang_" + call);
    std::filesystem::remove(path + ".hangs");
  }
  std::string path;
};

/// Opens a file on the ranks of `group`, uses it, and closes it.
void use_one(MPI_Comm group, const std::string& path, int round) {
  Job job(group, path, 8);
  job.write(round);
  job.sync();
  job.check(round);
  job.close();
}

/// Storage hangs on the servers alone, in the opens and closes of one file of two ranks, and then while it
/// gives one page. The other ranks use, open and close files and arrays through the same servers.
void use_beside_what_hangs(MPI_Comm compute, const std::string& path) {
  HangingStorage::get().hang_never();
  const HangingFile held{path + ".held"};
  Job all(compute, path, 8);
  all.write(1);
  all.add();
  all.sync();
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(compute, all.me / 2, all.me, &half);
  for (const std::string call : {"open", "close"}) {
    if (all.me == 0) held.hang(call);
    all.barrier();
    if (all.me < 2) {
      use_one(half, held.path, 2);
    } else {
      held.wait();
      all.check(1);
      all.check_sums(all.ranks);
      use_one(half, path + ".other", 3);
      if (all.me == 2) held.go_on(call);
    }
    all.barrier();
  }
  Job job(compute, held.path, 4, "r+");
  if (all.me == 0) held.hang("pread");
  all.barrier();
  if (all.me == 0) job.check_page(3, 2);
  if (all.me == 2) {
    held.wait();
    for (tr_index which = 0; which < 16; ++which)
      if (which != 3) job.check_page(which, 2);
    all.check(1);
    held.go_on("pread");
  }
  all.barrier();
  job.close();
  all.close();
  MPI_Comm_free(&half);
}

MPI_TEST(served, storage_that_hangs_keeps_nothing_else_waiting) {
  if (size() != 6 || !are_several_nodes()) return;  // two nodes, of two ranks and a server
  HangingStorage::get().hang("/file.held", 3 * page);
  with_servers("served", "io_threads=0", use_beside_what_hangs);
  HangingStorage::get().hang_never();
}

/// Steps of one field in one file.
class Steps {
 public:
  Steps(const std::string& path, bool reads) {
    tr_layout* grid = nullptr;
    ok(tr_layout_block(2, std::array<tr_index, 2>{19, 36}.data(), nullptr, &grid), "layout");
    ok(tr_layout_georeference(grid, globe), "georeference");
    const auto open = reads ? tr_stream_open : tr_stream_create;
    const char* const options = reads ? "base=2026-03-01T00:00Z prefetch=4" : "base=2026-03-01T00:00Z";
    ok(open(path.c_str(), options, &stream_), "open");
    ok(tr_stream_define(stream_, "t", grid, TR_F32, "levels=height:2"), "define");
    ok(tr_layout_free(&grid), "free");
  }
  void put(float value) const {
    const std::vector<float> values(19 * 36, value);
    for (int step = 0; step < 6; ++step) {
      ok(tr_stream_begin(stream_, step * 3600), "begin");
      ok(tr_stream_put(stream_, "t", values.data()), "put");
      ok(tr_stream_end(stream_), "end");
    }
  }
  void check(float value) const {
    std::vector<float> got(19 * 36, -1);
    for (int step = 0; step < 6; ++step) {
      ok(tr_stream_begin(stream_, step * 3600), "begin");
      ok(tr_stream_get(stream_, "t", got.data()), "get");
      ok(tr_stream_end(stream_), "end");
      CHECK_EQ(got.front(), value);
    }
  }
  void seek() const { ok(tr_stream_seek(stream_, 0), "seek"); }
  void close() { ok(tr_stream_close(&stream_), "close"); }

 private:
  static constexpr const char* globe =
      "keys='gridType=regular_ll, latitudeOfFirstGridPointInDegrees=90, "
      "latitudeOfLastGridPointInDegrees=-90, "
      "longitudeOfFirstGridPointInDegrees=0, iDirectionIncrementInDegrees=10'";
  tr_stream* stream_ = nullptr;
};

/// The ranks read themselves as soon as they have to: what the server has come to is looked at.
MPI_TEST(served, an_input_stream_whose_file_hangs_leaves_the_server_to_others) {
  if (size() < 2) return;
  HangingStorage::get().hang("/slow.nc", -1);
  HangingStorage::get().tell_use("/good.nc");
  with_servers("served", "threads=1", [](MPI_Comm compute, const std::string& path) {
    HangingStorage::get().hang_never();
    const std::filesystem::path directory = std::filesystem::path(path).parent_path();
    const std::string names[] = {directory / "slow.nc", directory / "good.nc"};
    for (int i = 0; i < 2; ++i) {
      Steps written(names[i], false);
      written.put(static_cast<float>(i));
      written.close();
    }
    int me = 0;
    MPI_Comm_rank(compute, &me);
    const HangingFile hanging{names[0]};
    if (me == 0) hanging.hang("open");
    MPI_Barrier(compute);
    Steps slow(names[0], true);
    slow.seek();
    hanging.wait();
    std::filesystem::remove(names[1] + ".used");  // by the server that wrote it
    Steps good(names[1], true);
    good.seek();
    HangingFile{names[1]}.wait_for(".used");
    MPI_Barrier(compute);
    if (me == 0) hanging.go_on("open");
    good.check(1);
    slow.check(0);
    good.close();
    slow.close();
  });
  HangingStorage::get().hang_never();
}

/// tr_finalize ends all that is open, and the next session begins anew.
MPI_TEST(served, a_server_lets_go_of_what_is_left_open) {
  for (int round = 0; round < 2; ++round) {
    with_servers("served", "", [round](MPI_Comm compute, const std::string& path) {
      const Job left(compute, path, 8);
      left.write(round);
    });
  }
}

MPI_TEST_MAIN
