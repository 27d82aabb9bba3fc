// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// tr_should_stop: whatever asks the program to stop, and on whichever rank, all ranks get the same answer.
// The process's earlier handling of signals is left as it was.
#include <sys/wait.h>
#include <tailrace.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "support/captured_stderr.hpp"
#include "support/variable.hpp"

using namespace tailrace::mpi_test;
using tailrace::Variable;

namespace {

using Clock = std::chrono::steady_clock;

/// A session of all ranks, in which only the case itself asks to stop.
class Session {
 public:
  explicit Session(const std::string& options) {
    if (!CHECK_EQ(tr_init(state().comm, &compute_, ("staging=1MiB " + options).c_str()), TR_OK))
      std::fprintf(stderr, "  %s\n", tr_error());
  }
  ~Session() { CHECK_EQ(tr_finalize(), TR_OK); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  [[nodiscard]] bool computes() const { return compute_ != MPI_COMM_NULL; }

 private:
  MPI_Comm compute_ = MPI_COMM_NULL;
};

bool is_last() { return rank() == size() - 1; }
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void pause_5_ms() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

/// Collective. Returns the answer of tr_should_stop, which must be the same everywhere.
int ask() {
  const int answer = tr_should_stop();
  CHECK(same_on_all_ranks(std::to_string(answer)));
  return answer;
}

/// Collective. Asks until the answer is 1, which must come within 20 s and stay for ever.
bool stops() {
  const Clock::time_point begin = Clock::now();
  int answer = ask();
  while (answer == 0 && !any_rank(seconds_since(begin) > 20)) {
    pause_5_ms();
    answer = ask();
  }
  return answer == 1 && ask() == 1 && ask() == 1;
}

struct sigaction action_of(int number) {
  struct sigaction action = {};
  ::sigaction(number, nullptr, &action);
  return action;
}
bool same_action(int number, const struct sigaction& before) {
  const struct sigaction now = action_of(number);
  return now.sa_handler == before.sa_handler && (now.sa_flags & SA_SIGINFO) == (before.sa_flags & SA_SIGINFO);
}

volatile std::sig_atomic_t own_calls = 0;
void own_handler(int) { own_calls = own_calls + 1; }

/// The program's own handler of a signal, for a part of a case.
class OwnHandler {
 public:
  explicit OwnHandler(int number) : number_(number), before_(action_of(number)) {
    own_calls = 0;
    std::signal(number, own_handler);
  }
  ~OwnHandler() { ::sigaction(number_, &before_, nullptr); }
  OwnHandler(const OwnHandler&) = delete;
  OwnHandler& operator=(const OwnHandler&) = delete;
  [[nodiscard]] bool is_there() const { return action_of(number_).sa_handler == own_handler; }

 private:
  int number_;
  struct sigaction before_;
};

std::string unix_time_in(int seconds) { return std::to_string(std::time(nullptr) + seconds); }

int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Collective. Expects all ranks to stop, and rank 0, and no other, to say the reason once.
void expect_stop(const std::string& reason) {
  CapturedStderr captured;
  const bool stopped = stops();
  const std::string printed = captured.text();
  CHECK(stopped);
  CHECK_EQ(times(printed, "the program is to save and stop: "), rank() == 0 ? 1 : 0);
  if (rank() == 0 && !CHECK(has(printed, reason)))
    std::fprintf(stderr, "  expected: %s\n  printed: %s\n", reason.c_str(), printed.c_str());
}

/// Returns how a child process ends that is sent `number` twice.
int twice(int number) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::raise(number);
    ::raise(number);
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

MPI_TEST(stop, with_nothing_that_asks_for_it_is_never) {
  const Session session("time_limit=1h");
  for (int step = 0; step < 20; ++step) CHECK_EQ(ask(), 0);
}

MPI_TEST(stop, a_signal_that_only_the_last_rank_receives_reaches_all) {
  const Session session("");
  CHECK_EQ(ask(), 0);
  if (is_last()) ::raise(SIGUSR1);
  expect_stop("compute rank " + std::to_string(size() - 1) + " received SIGUSR1");
}

MPI_TEST(stop, sigterm_from_outside_the_thread_stops_and_does_not_kill) {
  const Session session("");
  if (rank() == 0) ::kill(::getpid(), SIGTERM);
  expect_stop("compute rank 0 received SIGTERM");
}

MPI_TEST(stop, a_signal_between_two_sessions_is_not_kept) {
  {
    const Session session("stop_signals=USR2");
    if (is_last()) ::raise(SIGUSR2);
    CHECK(stops());
  }
  const Session session("stop_signals=USR2");
  CHECK_EQ(ask(), 0);
}

MPI_TEST(stop, the_halt_file_stops_once_it_is_there) {
  const std::string path = "stop_test_halt_n" + std::to_string(size());
  if (rank() == 0) std::filesystem::remove(path);
  const Session session("halt_file=" + path);
  const Clock::time_point begin = Clock::now();
  CHECK_EQ(ask(), 0);
  if (rank() == 0) std::ofstream(path).put('\n');
  expect_stop("the halt file " + path + " exists");
  CHECK(any_rank(rank() == 0 && seconds_since(begin) > 0.5));  // it is not looked for at every call
  if (rank() == 0) std::filesystem::remove(path);
}

MPI_TEST(stop, the_time_limit_counts_from_the_beginning) {
  const Clock::time_point begin = Clock::now();
  const Session session("time_limit=2s stop_margin=0");
  const int first = ask();
  const bool was_held_up = any_rank(rank() == 0 && seconds_since(begin) >= 2);
  CHECK(first == 0 || was_held_up);
  expect_stop("the time by TAILRACE_TIME_LIMIT");
  if (rank() == 0) CHECK(seconds_since(begin) >= 2);
}

MPI_TEST(stop, the_measured_margin_is_kept_free_before_the_limit) {
  const Session session("time_limit=4s");
  expect_stop("the margin is 5 s (longest step 0 s, longest save 0 s)");
}

MPI_TEST(stop, a_given_margin_is_kept_free_before_the_limit) {
  const Session session("time_limit=1h stop_margin=1h");
  expect_stop("the margin is 3600 s");
}

MPI_TEST(stop, a_time_that_is_over_stops_at_once) {
  const Session session("time_limit=2020-01-01T00:00Z");
  CHECK_EQ(ask(), 1);
}

MPI_TEST(stop, slurms_end_of_job_on_rank_0_counts) {
  const Variable slurm("SLURM_JOB_END_TIME", unix_time_in(rank() == 0 ? 4 : 3600));
  const Session session("");
  expect_stop("SLURM_JOB_END_TIME");
}

MPI_TEST(stop, slurms_end_of_job_on_other_ranks_or_far_away_does_not) {
  const Variable slurm("SLURM_JOB_END_TIME", unix_time_in(rank() == 0 ? 3600 : 4));
  const Session session("");
  CHECK_EQ(ask(), 0);
}

MPI_TEST(stop, slurms_end_of_job_may_be_switched_off) {
  const Variable slurm("SLURM_JOB_END_TIME", unix_time_in(1));
  const Session session("time_limit=off");
  CHECK_EQ(ask(), 0);
}

MPI_TEST(signals, that_are_not_wanted_are_left_alone) {
  const struct sigaction term = action_of(SIGTERM);
  const struct sigaction user = action_of(SIGUSR1);
  const Session session("stop_signals=none");
  CHECK(same_action(SIGTERM, term));
  CHECK(same_action(SIGUSR1, user));
  CHECK_EQ(ask(), 0);
}

MPI_TEST(signals, that_the_program_handles_itself_stay_with_it) {
  const OwnHandler own(SIGTERM);
  {
    const Session session("");
    CHECK(own.is_there());
    ::raise(SIGTERM);
    CHECK_EQ(static_cast<int>(own_calls), 1);
    CHECK_EQ(ask(), 0);
  }
  CHECK(own.is_there());
}

MPI_TEST(signals, are_after_the_session_what_they_were) {
  const struct sigaction term = action_of(SIGTERM);
  const struct sigaction user = action_of(SIGUSR1);
  {
    const Session session("");
    CHECK(!same_action(SIGTERM, term));
    CHECK(!same_action(SIGUSR1, user));
    CHECK_EQ(ask(), 0);
  }
  CHECK(same_action(SIGTERM, term));
  CHECK(same_action(SIGUSR1, user));
}

MPI_TEST(signals, that_the_program_takes_during_the_session_stay_with_it) {
  auto session = std::make_unique<Session>("stop_signals=USR2");
  const OwnHandler own(SIGUSR2);
  session.reset();
  CHECK(own.is_there());
}

MPI_TEST(signals, after_a_failed_beginning_are_what_they_were) {
  const struct sigaction term = action_of(SIGTERM);
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, "servers=1000"), TR_ERR_SETTINGS);
  CHECK(same_action(SIGTERM, term));
}

MPI_TEST(signals, a_second_sigterm_ends_the_process_and_a_second_usr1_does_not) {
  const Session session("");
  int status = twice(SIGTERM);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  status = twice(SIGUSR1);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  CHECK_EQ(ask(), 0);  // it was the child that received them
}

MPI_TEST(signals, neither_kill_servers_nor_stop_the_others) {
  if (size() == 1) return;
  const struct sigaction term = action_of(SIGTERM);
  const struct sigaction user = action_of(SIGUSR1);
  const std::string sent = "stop_test_sent";
  if (rank() == 0) std::filesystem::remove(sent);
  MPI_Barrier(state().comm);
  std::thread sender([&] {
    if (!is_last()) return;
    while (action_of(SIGTERM).sa_handler != SIG_IGN) pause_5_ms();
    for (const int number : {SIGUSR1, SIGTERM, SIGUSR1, SIGTERM}) ::kill(::getpid(), number);
    std::ofstream(sent).put('\n');
  });
  {
    const Session session("servers=last:1");
    CHECK_EQ(session.computes(), !is_last());
    while (session.computes() && !std::filesystem::exists(sent)) pause_5_ms();
    if (session.computes()) CHECK_EQ(tr_should_stop(), 0);
  }
  sender.join();
  CHECK(same_action(SIGTERM, term));
  CHECK(same_action(SIGUSR1, user));
}

MPI_TEST(errors, bad_settings_say_what_is_taken) {
  const auto error_of = [](const char* options) {
    MPI_Comm compute = MPI_COMM_NULL;
    CHECK_EQ(tr_init(state().comm, &compute, options), TR_ERR_SETTINGS);
    CHECK(same_on_all_ranks(tr_error()));
    return std::string(tr_error());
  };
  CHECK(has(error_of("time_limit=3600"), "1h30m or 00:15, a time in UTC as 2026-11-22T12:00Z, auto or off"));
  CHECK(has(error_of("stop_margin=soon"), "or auto"));
  CHECK(has(error_of("stop_signals=KILL"), "TERM, INT, HUP, USR1, USR2 and XCPU"));
}

MPI_TEST(errors, another_call_on_one_rank_is_told_and_stops_nobody) {
  if (size() == 1) return;
  const Session session("");
  CapturedStderr captured;
  if (is_last()) {
    const tr_index shape[] = {4};
    tr_layout* layout = nullptr;
    CHECK_EQ(tr_layout_replicated(1, shape, &layout), TR_ERR_ORDER);
  } else {
    CHECK_EQ(tr_should_stop(), 0);
  }
  const std::string printed = captured.text();
  CHECK(has(tr_error(), "tr_should_stop"));
  CHECK(has(tr_error(), "ranks disagree"));
  CHECK_EQ(times(printed, "ranks disagree"), rank() == 0 ? 1 : 0);
  CHECK_EQ(ask(), 0);
}

MPI_TEST(errors, without_a_session_nobody_stops) {
  CHECK_EQ(tr_should_stop(), 0);
  CHECK(has(tr_error(), "tr_should_stop: tr_init comes first"));
}

int main(int argc, char** argv) {
  ::unsetenv("SLURM_JOB_END_TIME");  // they are set in a job in which the test itself may run
  return run(argc, argv, MPI_THREAD_FUNNELED);
}
