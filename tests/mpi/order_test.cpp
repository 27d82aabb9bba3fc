// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Ranks in different collective calls: each rank hears of it, with both calls, and so does each later call
// until tr_finalize. Data that was durable before stays. Ranks that are only late hear of nothing.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "mpi/scene.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

constexpr tr_index side = 8;
constexpr const char* written = "before\n";
constexpr std::uintmax_t step_bytes = side * side * sizeof(double);

/// A session with everything that the calls need. Each call returns its code.
struct Calls {
  std::string directory;
  MPI_Comm compute = MPI_COMM_NULL;
  tr_layout* layout = nullptr;
  tr_stream* stream = nullptr;
  tr_stream* other_stream = nullptr;
  tr_file* file = nullptr;
  tr_file* unopened = nullptr;
  tr_checkpoint* checkpoint = nullptr;
  double values[side * side] = {};
  std::int64_t steps = 0;

  [[nodiscard]] int me() const { return rank_of(compute); }
  int step_of(tr_stream* of) {
    tr_stream_begin(of, ++steps * 600);
    tr_stream_put(of, "t", values);
    return tr_stream_end(of);
  }
  /// With servers the end of a step waits for the step before.
  int step() {
    const int code = step_of(stream);
    return code == TR_OK ? step_of(stream) : code;
  }
  int other_step() {
    const int code = step_of(other_stream);
    return code == TR_OK ? step_of(other_stream) : code;
  }
  int make_layout() {
    const tr_index shape[] = {side, side};
    tr_layout* another = nullptr;
    const int code = tr_layout_block(2, shape, nullptr, &another);
    tr_layout_free(&another);
    return code;
  }
  /// The code of stdio calls is in tr_error alone.
  int flush() { return tr_fflush(file) == 0 ? TR_OK : TR_ERR_ORDER; }
  int tell() { return tr_ftell(file) >= 0 ? TR_OK : TR_ERR_ORDER; }
  int open() {
    unopened = tr_fopen((directory + "/another").c_str(), "w");
    return unopened != nullptr ? TR_OK : TR_ERR_ORDER;
  }
  int save() {
    int is_first = 0;
    const int code = tr_checkpoint_begin(checkpoint, TR_SAVE, &is_first);
    if (code != TR_OK) return code;
    tr_checkpoint_item(checkpoint, "t", values, TR_F64, layout);
    return tr_checkpoint_end(checkpoint);
  }
  int close_stream() { return tr_stream_close(&stream); }
  int stop() { return tr_should_stop() == 1 ? TR_ERR_ORDER : TR_OK; }
};

using Call = int (Calls::*)();

/// With `with_file`, the first file of the compute ranks is open before, so that no line is left to be
/// opened.
void begin(Calls& here, const std::string& name, const std::string& servers, bool with_file) {
  here.directory = fresh_directory(name);
  CHECK_EQ(tr_init(state().comm, &here.compute, servers.c_str()), TR_OK);
  if (here.compute == MPI_COMM_NULL) return;
  const tr_index shape[] = {side, side};
  CHECK_EQ(tr_layout_block(2, shape, nullptr, &here.layout), TR_OK);
  for (tr_stream** const each : {&here.stream, &here.other_stream}) {
    const std::string path = here.directory + (each == &here.stream ? "/fc.raw" : "/other.raw");
    CHECK_EQ(tr_stream_create(path.c_str(), "format=raw base=2026-03-01T00:00Z", each), TR_OK);
    CHECK_EQ(tr_stream_define(*each, "t", here.layout, TR_F64, ""), TR_OK);
  }
  CHECK_EQ(tr_checkpoint_create((here.directory + "/cp").c_str(), "", &here.checkpoint), TR_OK);
  if (with_file) {
    here.file = tr_fopen((here.directory + "/log").c_str(), "w");
    CHECK(here.file != nullptr);
    CHECK(tr_fputs(written, here.file) >= 0);
  }
  CHECK_EQ(here.step_of(here.stream), TR_OK);
  CHECK_EQ(tr_stream_wait(here.stream, TR_DURABLE), TR_OK);
}

void check_told(int code, const std::string& one, const std::string& other) {
  const std::string told = tr_error();
  CHECK_EQ(code, TR_ERR_ORDER);
  const bool both = told.find(one) != std::string::npos && told.find(other) != std::string::npos;
  if (!both) fail(__FILE__, __LINE__, one + " and " + other + " are not both in: " + told);
}

/// The odd rank makes one call, the others another one. No rank waits for ever, each is told of both calls,
/// and the durable data is there.
void check_broken(const std::string& servers, int odd, std::pair<Call, std::string> its,
                  std::pair<Call, std::string> others, bool with_file = true) {
  Calls here;
  begin(here, "order", servers, with_file);
  if (here.compute != MPI_COMM_NULL) {
    const auto entered = std::chrono::steady_clock::now();
    const bool is_odd = here.me() == odd;
    const int code = (here.*(is_odd ? its : others).first)();
    // A server may have found out first, and know only of steps.
    CHECK(std::chrono::steady_clock::now() - entered < std::chrono::seconds(10));
    const bool from_server =
        code == TR_ERR_ORDER && std::string(tr_error()).find("ranks disagree") == std::string::npos;
    if (!from_server) check_told(code, its.second, others.second);
    check_told(here.make_layout(), its.second, others.second);
    if (here.stream != nullptr) {
      check_told(here.step(), its.second, others.second);
      check_told(here.close_stream(), its.second, others.second);
    }
    for (const Call later : {&Calls::other_step, &Calls::save, &Calls::stop})
      check_told((here.*later)(), its.second, others.second);
    if (with_file) check_told(here.flush(), its.second, others.second);
    if (with_file) check_told(here.tell(), its.second, others.second);
    check_told(here.open(), its.second, others.second);
    CHECK(std::chrono::steady_clock::now() - entered < std::chrono::seconds(20));
    tr_layout_free(&here.layout);
    check_told(tr_finalize(), its.second, others.second);
    const std::string path = here.directory + "/fc.raw";
    CHECK(std::filesystem::file_size(path) >= step_bytes);
    if (with_file) CHECK_EQ(std::filesystem::file_size(here.directory + "/log"), std::string(written).size());
  } else {
    CHECK_EQ(tr_finalize(), TR_OK);
  }
  quiet_barrier();
}

const std::pair<Call, std::string> layout{&Calls::make_layout, "tr_layout_block"};
const std::pair<Call, std::string> flush{&Calls::flush, "tr_fflush"};
const std::pair<Call, std::string> tell{&Calls::tell, "tr_ftell"};
const std::pair<Call, std::string> open_file{&Calls::open, "tr_fopen"};
const std::pair<Call, std::string> step{&Calls::step, "tr_stream_end"};
const std::pair<Call, std::string> other_step{&Calls::other_step, "tr_stream_end"};
const std::pair<Call, std::string> close_stream{&Calls::close_stream, "tr_stream_close"};
const std::pair<Call, std::string> save{&Calls::save, "tr_checkpoint_begin"};

}  // namespace

MPI_TEST(order, a_file_call_against_a_layout) {
  for (const int odd : {0, 1, 3}) check_broken("servers=0", odd, flush, layout);
}

MPI_TEST(order, a_file_call_against_the_end_of_a_step) {
  for (const int odd : {0, 2}) check_broken("servers=0", odd, flush, step);
  for (const int odd : {0, 2}) check_broken("servers=1", odd, step, flush);
  check_broken("servers=2", 1, flush, step);
}

MPI_TEST(order, a_first_file_that_one_rank_opens_alone) {
  for (const int odd : {0, 3}) check_broken("servers=0", odd, open_file, step, false);
  check_broken("servers=1", 0, open_file, layout, false);
}

MPI_TEST(order, a_result_that_the_io_rank_never_tells) {
  check_broken("servers=0", 0, layout, tell);
  check_broken("servers=1", 0, step, tell);
}

MPI_TEST(order, steps_of_two_streams) {
  check_broken("servers=0", 0, step, other_step);
  check_broken("servers=1", 1, step, other_step);
  check_broken("servers=2", 0, step, other_step);
}

MPI_TEST(order, the_end_of_a_stream_and_checkpoints_against_a_file_call) {
  check_broken("servers=1", 0, close_stream, flush);
  check_broken("servers=0", 2, flush, close_stream);
  check_broken("servers=0", 1, save, flush);
}

/// Without servers an array is lent until tr_stream_end returns, whatever the result is.
MPI_TEST(order, an_array_may_go_once_the_end_of_its_step_has_failed) {
  Calls here;
  begin(here, "lent", "servers=0", true);
  constexpr std::size_t bytes = 8 * side * side * sizeof(double);
  tr_stream* stream = nullptr;
  const std::string path = here.directory + "/levels.raw";
  CHECK_EQ(tr_stream_create(path.c_str(), "format=raw base=2026-03-01T00:00Z", &stream), TR_OK);
  CHECK_EQ(tr_stream_define(stream, "t", here.layout, TR_F64, "levels=height:1,2,3,4,5,6,7,8"), TR_OK);
  void* const array = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (here.me() == 2) {
    check_told(here.flush(), "tr_fflush", "tr_stream_end");
  } else {
    tr_stream_begin(stream, 600);
    tr_stream_put(stream, "t", array);
    check_told(tr_stream_end(stream), "tr_fflush", "tr_stream_end");
  }
  ::munmap(array, bytes);
  tr_layout_free(&here.layout);
  check_told(tr_finalize(), "tr_fflush", "tr_stream_end");
  quiet_barrier();
}

/// A program that looks at no code goes on to tr_finalize, through more calls than a lane has room for.
MPI_TEST(order, a_rank_that_goes_on_calling_comes_to_tr_finalize) {
  Calls here;
  begin(here, "on", "servers=1 staging=1MiB", true);
  if (here.compute != MPI_COMM_NULL) {
    const bool goes_on = here.me() == 1;
    const std::string own_path = here.directory + "/own" + std::to_string(here.me());
    tr_file* const own = tr_fopen_comm(MPI_COMM_SELF, own_path.c_str(), "w");
    CHECK(own != nullptr);
    check_told(here.me() == 0 ? here.flush() : here.step(), "tr_fflush", "tr_stream_end");
    for (int call = 0; goes_on && call < 20000; ++call) CHECK_EQ(here.make_layout(), TR_ERR_ORDER);
    CHECK(tr_remove((here.directory + "/log").c_str()) != 0);
    CHECK_EQ(tr_fputs("more", own), EOF);
    tr_layout_free(&here.layout);
    check_told(tr_finalize(), "tr_fflush", "tr_stream_end");
    CHECK(std::filesystem::exists(here.directory + "/log"));
  } else {
    CHECK_EQ(tr_finalize(), TR_OK);
  }
  quiet_barrier();
}

/// The save in flight is given up or committed; either way a copy is loaded by the next session.
MPI_TEST(order, a_save_in_flight_leaves_a_copy_that_is_loaded) {
  const auto load = [](Calls& here) {
    int found = 0;
    CHECK_EQ(tr_checkpoint_begin(here.checkpoint, TR_LOAD, &found), TR_OK);
    CHECK_EQ(found, 1);
    tr_checkpoint_item(here.checkpoint, "t", here.values, TR_F64, here.layout);
    CHECK_EQ(tr_checkpoint_end(here.checkpoint), TR_OK);
  };
  Calls here;
  begin(here, "saves", "servers=0 throttle=2kB/s", true);
  CHECK_EQ(here.save(), TR_OK);
  CHECK_EQ(tr_checkpoint_wait(here.checkpoint), TR_OK);
  CHECK_EQ(here.save(), TR_OK);
  check_told(here.me() == 1 ? here.flush() : here.make_layout(), "tr_fflush", "tr_layout_block");
  if (here.me() != 2) check_told(tr_checkpoint_close(&here.checkpoint), "tr_fflush", "tr_layout_block");
  tr_layout_free(&here.layout);
  check_told(tr_finalize(), "tr_fflush", "tr_layout_block");
  quiet_barrier();
  Calls again;
  again.directory = here.directory;
  CHECK_EQ(tr_init(state().comm, &again.compute, "servers=0"), TR_OK);
  const tr_index shape[] = {side, side};
  CHECK_EQ(tr_layout_block(2, shape, nullptr, &again.layout), TR_OK);
  CHECK_EQ(tr_checkpoint_create((again.directory + "/cp").c_str(), "", &again.checkpoint), TR_OK);
  load(again);
  tr_layout_free(&again.layout);
  CHECK_EQ(tr_finalize(), TR_OK);
  quiet_barrier();
}

/// Ranks that go to tr_finalize wait there for the one that is in calls still.
MPI_TEST(order, a_file_call_against_tr_finalize) {
  for (const std::string servers : {"servers=0", "servers=1"}) {
    for (const int odd : {0, 2}) {
      Calls here;
      begin(here, "finalize", servers, true);
      if (here.compute != MPI_COMM_NULL) {
        if (here.me() == odd) {
          check_told(here.flush(), "tr_fflush", "tr_finalize");
          check_told(here.step(), "tr_fflush", "tr_finalize");
        }
        tr_layout_free(&here.layout);
        check_told(tr_finalize(), "tr_fflush", "tr_finalize");
      } else {
        CHECK_EQ(tr_finalize(), TR_OK);
      }
      quiet_barrier();
    }
  }
}

/// An agreement tells of both calls by itself: the session goes on.
MPI_TEST(order, tr_finalize_waits_for_a_rank_that_makes_a_layout) {
  Calls here;
  begin(here, "layout", "servers=1", true);
  if (here.compute != MPI_COMM_NULL) {
    const bool is_odd = here.me() == 1;
    if (is_odd) {
      check_told(here.make_layout(), "tr_layout_block", "tr_finalize");
      check_told(here.make_layout(), "tr_layout_block", "tr_finalize");
    }
    tr_layout_free(&here.layout);
    const int code = tr_finalize();
    if (!is_odd) check_told(code, "tr_layout_block", "tr_finalize");
    if (is_odd) CHECK_EQ(code, TR_OK);
  } else {
    CHECK_EQ(tr_finalize(), TR_OK);
  }
  quiet_barrier();
}

/// The ranks are late for far longer than the time after which ranks ask each other.
MPI_TEST(order, ranks_that_are_late_get_no_error) {
  for (const std::string servers : {"servers=0", "servers=1"}) {
    Calls here;
    begin(here, "late", servers, true);
    for (const int late : {0, 1}) {
      if (here.compute == MPI_COMM_NULL || (late == 1) == (servers == "servers=0")) continue;
      for (const Call each : {&Calls::flush, &Calls::make_layout, &Calls::tell, &Calls::step, &Calls::save}) {
        if (here.me() == late) ::usleep(1'200'000);
        CHECK_EQ((here.*each)(), TR_OK);
      }
    }
    tr_layout_free(&here.layout);
    CHECK_EQ(tr_finalize(), TR_OK);
    quiet_barrier();
  }
}

/// Rank 1 has two communicators, and comes to the calls of one after those of the other.
MPI_TEST(order, groups_of_ranks_that_overlap_wait_for_each_other_where_they_may) {
  for (const bool broken : {false, true}) {
    Calls here;
    begin(here, "groups", "servers=0", true);
    const int me = here.me();
    MPI_Comm low = MPI_COMM_NULL;
    MPI_Comm high = MPI_COMM_NULL;
    MPI_Comm_split(here.compute, me < 2 ? 0 : MPI_UNDEFINED, 0, &low);
    MPI_Comm_split(here.compute, me > 0 || broken ? 0 : MPI_UNDEFINED, 0, &high);
    tr_file* of_low = me < 2 ? tr_fopen_comm(low, (here.directory + "/low").c_str(), "w") : nullptr;
    tr_file* of_high =
        high != MPI_COMM_NULL ? tr_fopen_comm(high, (here.directory + "/high").c_str(), "w") : nullptr;
    if (broken) {
      // Rank 0 is in the file of the first two, rank 1 in that of all.
      const int code = tr_fflush(me == 0 ? of_low : of_high) == 0 ? TR_OK : TR_ERR_ORDER;
      check_told(code, "low", "high");
      if (of_low != nullptr) CHECK(tr_fclose(of_low) != 0);
      if (of_high != nullptr) CHECK(tr_fclose(of_high) != 0);
    } else {
      if (me == size_of(here.compute) - 1) ::usleep(1'400'000);
      if (of_high != nullptr) CHECK_EQ(tr_fclose(of_high), 0);
      if (of_low != nullptr) CHECK_EQ(tr_fclose(of_low), 0);
    }
    if (low != MPI_COMM_NULL) MPI_Comm_free(&low);
    if (high != MPI_COMM_NULL) MPI_Comm_free(&high);
    tr_layout_free(&here.layout);
    CHECK_EQ(tr_finalize(), broken ? TR_ERR_ORDER : TR_OK);
    quiet_barrier();
  }
}

MPI_TEST_MAIN
