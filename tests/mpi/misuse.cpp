// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Calls tr_init and tr_log where they are not allowed, tr_init while MPI fails, and collective calls on some
// ranks only. The first argument names the case. Each rank prints the errors that it gets.
#include <tailrace.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

int me = 0;
std::atomic<int> calls_left{-1};  // calls of MPI_Comm_dup before the one that fails; below 0: none fails
int victim = -1;                  // the rank on which it fails; below 0: on every rank

bool is(const char* argument, const char* name) { return std::string(argument) == name; }

int init(const char* options = nullptr) {
  MPI_Comm compute = MPI_COMM_SELF;
  const int code = tr_init(MPI_COMM_WORLD, &compute, options);
  std::printf("rank %d: tr_init returned %d, compute %s: %s\n", me, code,
              compute == MPI_COMM_NULL ? "null" : "set", code == TR_OK ? "" : tr_error());
  return code;
}

void finalize() { std::printf("rank %d: tr_finalize returned %d\n", me, tr_finalize()); }

/// Lets the n-th call of MPI_Comm_dup in tr_init fail, for each n until none fails any more. After a failure
/// no session may be open.
void fail_each_duplication(const char* options) {
  for (int on = -1; on < 2; ++on) {
    for (int n = 0, failed = 1; failed != 0 && n < 20; ++n) {
      calls_left = n;
      victim = on;
      MPI_Comm compute = MPI_COMM_SELF;
      const int code = tr_init(MPI_COMM_WORLD, &compute, options);
      calls_left = -1;
      int least = code;
      int most = code;
      // Servers return from tr_init after the tr_finalize of the compute ranks.
      if (code == TR_OK) finalize();
      MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
      MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      failed = most;
      if (least != most) std::printf("rank %d: WRONG: codes from %d to %d\n", me, least, most);
      if (code != TR_OK && compute != MPI_COMM_NULL) std::printf("rank %d: WRONG: compute is set\n", me);
      if (code != TR_OK && tr_finalize() != TR_ERR_STATE)
        std::printf("rank %d: WRONG: a session is open\n", me);
      if (failed != 0 && me == 0) std::printf("duplication %d failed on rank %d: %d\n", n, on, code);
      if (failed == 0 && n == 0) std::printf("rank %d: WRONG: no duplication failed\n", me);
    }
  }
}

/// Lets the second call of MPI_Comm_dup of a session fail, which a stream with handoff=onesided makes for its
/// window. The stream is written all the same.
void fail_the_windows_duplication() {
  for (victim = -1; victim < 3; ++victim) {
    calls_left = 1;
    MPI_Comm compute = MPI_COMM_NULL;
    if (tr_init(MPI_COMM_WORLD, &compute, "servers=1") != TR_OK) return;
    if (compute != MPI_COMM_NULL) {
      tr_stream* stream = nullptr;
      tr_layout* layout = nullptr;
      const tr_index shape[] = {8, 6};
      const std::vector<float> values(48, 1.5F);
      const std::string name = "window" + std::to_string(victim) + ".raw";
      int code =
          tr_stream_create(name.c_str(), "base=2026-03-01T00:00Z format=raw handoff=onesided", &stream);
      std::printf("rank %d: create for victim %d returned %d, calls left %d\n", me, victim, code,
                  calls_left.load());
      if (code == TR_OK) code = tr_layout_block(2, shape, nullptr, &layout);
      if (code == TR_OK) code = tr_stream_define(stream, "t", layout, TR_F32, "levels=surface");
      if (code == TR_OK) code = tr_stream_begin(stream, 0);
      if (code == TR_OK) code = tr_stream_put(stream, "t", values.data());
      if (code == TR_OK) code = tr_stream_end(stream);
      if (code == TR_OK) code = tr_stream_close(&stream);
      if (code != TR_OK) std::printf("rank %d: WRONG: %s\n", me, tr_error());
      tr_layout_free(&layout);
    }
    calls_left = -1;
    finalize();
  }
}

/// Rank 0 makes a collective call that the other ranks never make: they are in tr_finalize.
void alone_in(const std::string& call) {
  MPI_Comm compute = MPI_COMM_NULL;
  if (tr_init(MPI_COMM_WORLD, &compute, nullptr) != TR_OK) return;
  const tr_index shape[] = {4, 4};
  tr_stream* stream = nullptr;
  tr_layout* layout = nullptr;
  if (me == 0 && call == "create")
    tr_stream_create("alone.raw", "base=2026-03-01T00:00Z format=raw", &stream);
  if (me == 0 && call == "layout") tr_layout_block(2, shape, nullptr, &layout);
  if (me == 0 && call == "open") tr_fopen("alone.bin", "wp");
  MPI_Comm part = MPI_COMM_NULL;
  if (call == "open_comm") MPI_Comm_dup(compute, &part);
  if (me == 0 && call == "open_comm") tr_fopen_comm(part, "alone.bin", "w");
  if (me == 0) std::printf("rank 0: its call failed: %s\n", tr_error());
  finalize();
}

/// Rank 0 writes the first array of a group, which needs memory and communicators of its own, while the
/// others flush the file.
void differ_in_the_first_array() {
  MPI_Comm compute = MPI_COMM_NULL;
  if (tr_init(MPI_COMM_WORLD, &compute, nullptr) != TR_OK) return;
  const tr_index shape[] = {4, 4};
  const double values[16] = {};
  tr_layout* layout = nullptr;
  tr_layout_block(2, shape, nullptr, &layout);
  tr_file* const file = tr_fopen("differ.bin", "w");
  const bool failed = me == 0 ? tr_fwrite_array(values, TR_F64, layout, file) == 0 : tr_fflush(file) == EOF;
  std::printf("rank %d: %s: %s\n", me, failed ? "failed" : "WRONG: came through", tr_error());
  std::printf("rank %d: tr_fclose returned %d\n", me, tr_fclose(file));
  finalize();
}

/// The model waits in MPI for its servers, which are not there: they serve inside tr_init.
void left_in_world(bool in_a_step) {
  MPI_Comm compute = MPI_COMM_NULL;
  if (tr_init(MPI_COMM_WORLD, &compute, nullptr) != TR_OK) return;
  const tr_index shape[] = {4, 4};
  tr_stream* stream = nullptr;
  tr_layout* layout = nullptr;
  if (compute != MPI_COMM_NULL && in_a_step) {
    tr_layout_block(2, shape, nullptr, &layout);
    tr_stream_create("world.raw", "base=2026-03-01T00:00Z format=raw", &stream);
    tr_stream_begin(stream, 0);
  }
  if (compute != MPI_COMM_NULL) MPI_Barrier(MPI_COMM_WORLD);
  finalize();
}

/// Rank 0 exits without tr_finalize, in a collective call on a file to which rank 1 never comes.
void exits_in_a_collective_call() {
  const auto expect = [](int code) {
    if (code != TR_OK) std::printf("rank %d: WRONG: %s\n", me, tr_error());
  };
  const auto progress = [] {
    for (int i = 0; i < 200; ++i) {
      tr_progress();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  };
  MPI_Comm compute = MPI_COMM_NULL;
  if (tr_init(MPI_COMM_WORLD, &compute, nullptr) != TR_OK) return;
  const tr_index shape[] = {1000};
  tr_stream* stream = nullptr;
  tr_layout* layout = nullptr;
  expect(tr_stream_create("exits_{lead:03h}.raw", "base=2026-03-01 format=raw method=mpiio", &stream));
  expect(tr_layout_block(1, shape, nullptr, &layout));
  const std::vector<double> values(1000, 1.0);
  expect(tr_stream_define(stream, "t", layout, TR_F64, ""));
  for (std::int64_t step = 0; step < 3; ++step) {
    expect(tr_stream_begin(stream, step * 3600));
    expect(tr_stream_put(stream, "t", values.data()));
    expect(tr_stream_end(stream));
  }
  progress();
  if (me == 1) std::this_thread::sleep_for(std::chrono::seconds(600));  // it is ended
  expect(tr_stream_begin(stream, std::int64_t{3} * 3600));
  progress();
  std::printf("rank 0: exits\n");
  std::fflush(stdout);
  std::exit(3);
}

}  // namespace

/// Takes the place of the MPI library's function (MPI 3.1, 14.2.1). Tests are compiled with hidden names, so
/// the attribute is needed unless the header sets it, as Open MPI's does.
extern "C" __attribute__((visibility("default"))) int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  const int code = PMPI_Comm_dup(comm, copy);
  const int left = calls_left < 0 ? -1 : calls_left--;
  return left == 0 && (victim < 0 || victim == me) ? MPI_ERR_INTERN : code;
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  if (is(name, "log")) {
    MPI_Comm compute = MPI_COMM_SELF;
    MPI_Fint of_fortran = 0;
    const bool refused = tr_init(MPI_COMM_WORLD, &compute, nullptr) == TR_ERR_STATE &&
                         tr_init_f(0, &of_fortran, nullptr) == TR_ERR_STATE;
    if (refused) tr_log("before MPI_Init");
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, is(name, "exit") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (is(name, "log")) {
    if (init() == TR_OK) finalize();
  } else if (is(name, "one")) {
    if (me == 0) init();
  } else if (is(name, "twice")) {
    init();
    init();
    finalize();
  } else if (is(name, "alone")) {
    alone_in(argv[2]);
  } else if (is(name, "differ")) {
    differ_in_the_first_array();
  } else if (is(name, "world")) {
    left_in_world(is(argv[2], "step"));
  } else if (is(name, "exit")) {
    exits_in_a_collective_call();
  } else if (is(name, "window")) {
    fail_the_windows_duplication();
  } else if (is(name, "duplication")) {
    fail_each_duplication("servers=0");
    fail_each_duplication("servers=1");
  }
  MPI_Finalize();
  if (is(name, "log")) {
    tr_log("after MPI_Finalize");
    init();
    tr_log(tr_error());
  }
  return 0;
}
