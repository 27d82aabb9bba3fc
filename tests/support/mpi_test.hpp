// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Tests that run on several ranks:
//
//   MPI_TEST(agree, names_the_lowest_rank) {
//     const Status verdict = agree(...);        // every rank runs the body
//     CHECK(!verdict.is_ok());                  // records and goes on: leaving early would hang the others
//     CHECK_EQ(verdict.rank(), 0);
//   }
//   MPI_TEST_MAIN
//
// A case fails on all ranks if a check has failed on any rank. All ranks then print the standard error that
// they have captured (captured_stderr.hpp). If a case hangs, each rank prints the case and what the rank is
// doing, and the program ends. Arguments are parts of the names of cases to run; without arguments all cases
// run. The exit code is the same on every rank. With MPI_TEST_THREADS in the environment, MPI is initialised
// with MPI_THREAD_MULTIPLE, whatever the program says.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/compared.hpp"

namespace tailrace::mpi_test {

struct Case {
  std::string name;
  std::function<void()> body;
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

struct Registration {
  Registration(const char* suite, const char* name, void (*body)()) {
    cases().push_back({std::string(suite) + "." + name, body});
  }
};

struct State {
  MPI_Comm comm = MPI_COMM_NULL;  // the harness's own: messages that a case leaves behind do not reach it
  int rank = 0;
  int size = 1;
  std::int64_t failures = 0;  // failed checks of this rank in this case
  std::string skipped = {};   // the reason why this case has tested nothing
  // The descriptor on which the harness itself prints. It is never captured.
  int errors = STDERR_FILENO;
  std::string captured = {};                         // what this rank has captured in this case
  std::atomic<void (*)(int)> show_capture{nullptr};  // prints the contents of a capture that has not ended
};

inline State& state() {
  static State now;
  return now;
}

inline int rank() { return state().rank; }
inline int size() { return state().size; }

/// A duplicate of the harness's communicator. Its making and its end are collective.
class OwnCommunicator {
 public:
  OwnCommunicator() { MPI_Comm_dup(state().comm, &comm_); }
  ~OwnCommunicator() { MPI_Comm_free(&comm_); }
  OwnCommunicator(const OwnCommunicator&) = delete;
  OwnCommunicator& operator=(const OwnCommunicator&) = delete;
  [[nodiscard]] MPI_Comm comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Collective. Returns true if `mine` is true on any rank.
inline bool any_rank(bool mine) {
  int value = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, state().comm);
  return value != 0;
}

/// Collective. Returns true if every rank passes the same bytes.
inline bool same_on_all_ranks(std::string_view mine) {
  std::uint64_t length = mine.size();
  MPI_Bcast(&length, 1, MPI_UINT64_T, 0, state().comm);
  std::string first(mine);
  first.resize(length);
  MPI_Bcast(first.data(), static_cast<int>(length), MPI_CHAR, 0, state().comm);
  return !any_rank(first != mine);
}

inline bool fail(const char* file, int line, const std::string& what) {
  ++state().failures;
  ::dprintf(state().errors, "%s:%d: rank %d: %s\n", file, line, state().rank, what.c_str());
  return false;
}

/// Marks the case as one that has tested nothing, and why. Every rank calls it, with the same reason.
inline void skip(const std::string& why) { state().skipped = why; }

inline bool check(bool holds, const char* expression, const char* file, int line) {
  return holds || fail(file, line, std::string("CHECK failed: ") + expression);
}

template <typename A, typename B>
bool check_eq(const A& a, const B& b, const char* left, const char* right, const char* file, int line) {
  if (equal(a, b)) return true;
  return fail(file, line, std::string(left) + " == " + right + " failed: " + show(a) + " and " + show(b));
}

/// Watches one case from a thread that never calls MPI, so that it also reports a hang inside MPI.
class Watch {
 public:
  enum Phase { body, barrier, done };

  explicit Watch(const std::string& name) : thread_([this, name] { run(name); }) {}
  ~Watch() {
    phase_ = done;
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  void enter(Phase phase) { phase_ = phase; }

 private:
  static int limit_seconds(Phase phase) {
    const char* given = std::getenv("MPI_TEST_SECONDS");
    const int seconds = given ? std::atoi(given) : 0;
    return seconds > 0 ? seconds : phase == body ? 100 : 30;
  }

  void run(const std::string& name) {
    using Clock = std::chrono::steady_clock;
    for (const Phase phase : {body, barrier}) {
      const auto limit = Clock::now() + std::chrono::seconds(limit_seconds(phase));
      while (phase_ == phase) {
        if (Clock::now() > limit) report(name, phase);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
  }

  [[noreturn]] static void report(const std::string& name, Phase phase) {
    ::dprintf(state().errors, "%s hangs: after %d s rank %d of %d is %s\n", name.c_str(),
              limit_seconds(phase), state().rank, state().size,
              phase == body ? "inside the case" : "waiting for the others after the case");
    if (void (*const show)(int) = state().show_capture) show(state().errors);
    std::this_thread::sleep_for(std::chrono::seconds(2));  // the other ranks print their reports meanwhile
    std::_Exit(70);                                        // the launcher then ends the other ranks
  }

  std::atomic<Phase> phase_{body};
  std::thread thread_;
};

/// Runs one case and returns the number of ranks on which it failed, the same on every rank.
inline int run_case(const Case& one) {
  state().failures = 0;
  state().captured.clear();
  state().skipped.clear();
  const double start = MPI_Wtime();
  int failed_ranks = 0;
  {
    Watch watch(one.name);
    try {
      one.body();
    } catch (const std::exception& error) {
      fail(one.name.c_str(), 0, std::string("exception: ") + error.what());
    }
    watch.enter(Watch::barrier);
    const int mine = state().failures > 0 ? 1 : 0;
    MPI_Allreduce(&mine, &failed_ranks, 1, MPI_INT, MPI_SUM, state().comm);
    if (failed_ranks > 0 && !state().captured.empty())
      ::dprintf(state().errors, "rank %d printed this where it was captured:\n%s", state().rank,
                state().captured.c_str());
    MPI_Barrier(state().comm);
  }
  if (state().rank == 0) {
    const char* const verdict = failed_ranks ? "FAILED" : state().skipped.empty() ? "ok    " : "SKIPPED";
    std::printf("%s %s (%.0f ms", verdict, one.name.c_str(), (MPI_Wtime() - start) * 1e3);
    if (!state().skipped.empty()) std::printf(", %s", state().skipped.c_str());
    if (failed_ranks) std::printf(", on %d of %d ranks", failed_ranks, state().size);
    std::printf(")\n");
    std::fflush(stdout);
  }
  return failed_ranks;
}

inline bool is_chosen(const std::string& name, int argc, char** argv) {
  bool chosen = argc <= 1;
  for (int i = 1; i < argc; ++i) chosen = chosen || name.find(argv[i]) != std::string::npos;
  return chosen;
}

inline int run(int argc, char** argv, int thread_level) {
  int provided = 0;
  const bool is_multiple = std::getenv("MPI_TEST_THREADS") != nullptr;
  MPI_Init_thread(&argc, &argv, is_multiple ? MPI_THREAD_MULTIPLE : thread_level, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &state().comm);
  MPI_Comm_rank(state().comm, &state().rank);
  MPI_Comm_size(state().comm, &state().size);
  state().errors = ::dup(STDERR_FILENO);
  int ran = 0;
  int failed = 0;
  for (const Case& one : cases()) {
    if (!is_chosen(one.name, argc, argv)) continue;
    ++ran;
    failed += run_case(one) > 0 ? 1 : 0;
  }
  if (state().rank == 0) std::printf("%d cases on %d ranks, %d failed\n", ran, state().size, failed);
  if (state().rank == 0 && ran == 0) std::fprintf(stderr, "no case has such a name\n");
  MPI_Comm_free(&state().comm);
  MPI_Finalize();
  return failed > 0 || ran == 0 ? 1 : 0;
}

}  // namespace tailrace::mpi_test

#define MPI_TEST(suite, name)                                                                           \
  static void suite##_##name##_body();                                                                  \
  static const ::tailrace::mpi_test::Registration suite##_##name##_registration(#suite, #name,          \
                                                                                suite##_##name##_body); \
  static void suite##_##name##_body()

#define CHECK(condition) \
  ::tailrace::mpi_test::check(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(left, right) \
  ::tailrace::mpi_test::check_eq((left), (right), #left, #right, __FILE__, __LINE__)

#define MPI_TEST_MAIN_WITH(thread_level) \
  int main(int argc, char** argv) { return ::tailrace::mpi_test::run(argc, argv, thread_level); }
#define MPI_TEST_MAIN MPI_TEST_MAIN_WITH(MPI_THREAD_FUNNELED)
