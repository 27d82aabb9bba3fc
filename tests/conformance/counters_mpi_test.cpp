// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The suite of counters over windows of MPI, and by messages over MPI. What the self-test of a window finds.
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "counters_cases.hpp"
#include "ground/comm/counters/message_counters.hpp"
#include "ground/comm/counters/mpi_counters.hpp"
#include "ground/comm/mpi_transport.hpp"
#include "ground/comm/switchboard.hpp"
#include "support/mpi_test.hpp"

using namespace tailrace;
using namespace tailrace::mpi_test;

namespace {

constexpr comm::MessageCounters::Kinds kinds{100, 101};

/// What MPI_Fetch_and_op does besides what MPI says.
struct Mistake {
  std::int64_t added = 0;             // to each value that it returns
  std::chrono::milliseconds late{0};  // before each call to another process
  bool drops_own_adds = false;        // adds to the process's own counters get a value and do nothing
  bool drops_sets = false;
  int freed = 0;                   // windows
  std::int64_t* result = nullptr;  // of the call that is under way
} mistake;

class Process final : public comm::CountersEnd {
 public:
  explicit Process(bool by_messages) : transport_(std::move(*comm::MpiTransport::create(state().comm))) {
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    board_.connect(*transport_);
    line_ = std::make_unique<comm::Line>(board_, comm::line_number::session,
                                         std::make_shared<comm::Members>(ranks));
    if (by_messages) {
      counters_ = std::make_unique<comm::MessageCounters>(*line_, ranks, kinds);
      return;
    }
    Result<std::unique_ptr<comm::CounterWindow>> window = comm::CounterWindow::create(own_.comm());
    why_none_ = window.status().text();
    if (!window.is_ok()) return;
    window_ = std::move(*window);
    counters_ = std::make_unique<comm::MpiCounters>(*window_, board_.transport());
  }
  ~Process() override {
    meet();
    counters_.reset();
    if (window_) window_->free();
    line_.reset();
    transport_->free();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] bool has_none() const { return counters_ == nullptr; }
  [[nodiscard]] const std::string& why_none() const { return why_none_; }
  comm::Counters& counters() override { return *counters_; }
  [[nodiscard]] int rank() const override { return mpi_test::rank(); }
  [[nodiscard]] int size() const override { return mpi_test::size(); }
  void meet() override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(state().comm, &request);
    for (int complete = 0; complete == 0; idle()) MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
  }
  std::vector<std::int64_t> gather(const std::vector<std::int64_t>& mine) override {
    meet();
    std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(size()));
    MPI_Allgather(mine.data(), static_cast<int>(mine.size()), MPI_INT64_T, all.data(),
                  static_cast<int>(mine.size()), MPI_INT64_T, state().comm);
    return all;
  }
  void idle() override {
    const bool moved = board_.pump();
    if (!(counters_ && counters_->poll()) && !moved) board_.transport().idle(0, "counters");
  }
  void check(bool holds, const std::string& what) override {
    if (!holds) fail(__FILE__, __LINE__, what);
  }

 private:
  const OwnCommunicator own_;
  std::unique_ptr<comm::MpiTransport> transport_;
  comm::Switchboard board_;
  std::unique_ptr<comm::Line> line_;
  std::unique_ptr<comm::CounterWindow> window_;
  std::unique_ptr<comm::Counters> counters_;
  std::string why_none_;
};

void with_a_window(const comm::CountersCase& one) {
  Process process(false);
  if (process.has_none()) return skip(process.why_none());
  one.run(process);
}

/// Each case of the suite is a case here.
const bool registered = [] {
  for (const comm::CountersCase& one : comm::counters_cases()) {
    cases().push_back({one.name + ".window", [&one] { with_a_window(one); }});
    cases().push_back({one.name + ".messages", [&one] {
                         Process process(true);
                         one.run(process);
                       }});
  }
  return true;
}();

/// Makes a window with a mistake in the MPI.
std::string refused_with(const Mistake& planted, std::chrono::milliseconds limit) {
  const OwnCommunicator own;
  mistake = planted;
  const Result<std::unique_ptr<comm::CounterWindow>> made = comm::CounterWindow::create(own.comm(), limit);
  const int freed = mistake.freed;
  mistake = {};
  if (made.is_ok()) (*made)->free();
  CHECK(made.is_ok() || made.status().code() == Code::unsupported);
  CHECK(made.is_ok() || freed <= 1);
  return made.status().text();
}

MPI_TEST(counter_window, whose_adds_give_wrong_values_is_refused_on_all_processes) {
  if (size() == 1) return;  // nobody adds to another
  const std::string text = refused_with({.added = 1}, comm::CounterWindow::patience);
  CHECK(same_on_all_ranks(text));
  CHECK(text.find("wrong values") != std::string::npos || text.find("no progress") != std::string::npos ||
        text.find("MPI_Win_allocate") != std::string::npos);
}

/// An MPI may have another way to memory of its own process.
MPI_TEST(counter_window, whose_own_adds_or_sets_do_nothing_is_refused_on_all_processes) {
  for (const Mistake& planted : {Mistake{.drops_own_adds = true}, Mistake{.drops_sets = true}}) {
    const std::string text = refused_with(planted, comm::CounterWindow::patience);
    CHECK(same_on_all_ranks(text));
    CHECK(text.find("wrong values") != std::string::npos || text.find("no progress") != std::string::npos ||
          text.find("MPI_Win_allocate") != std::string::npos);
  }
}

/// Adds that wait for their target look like adds that come late.
MPI_TEST(counter_window, whose_adds_do_not_come_in_time_is_refused_on_all_processes) {
  if (size() == 1) return;
  const std::string text =
      refused_with({.late = std::chrono::milliseconds(400)}, std::chrono::milliseconds(50));
  CHECK(same_on_all_ranks(text));
  CHECK(text.find("no progress") != std::string::npos || text.find("MPI_Win_allocate") != std::string::npos);
}

MPI_TEST(counter_window, is_freed_and_may_be_made_again) {
  for (int i = 0; i < 3; ++i) {
    const OwnCommunicator own;
    Result<std::unique_ptr<comm::CounterWindow>> made = comm::CounterWindow::create(own.comm());
    if (!made.is_ok()) return skip(made.status().text());
    mistake.freed = 0;
    (*made)->free();
    CHECK_EQ(mistake.freed, 1);
  }
}

}  // namespace

// These take the place of the MPI library's functions (MPI 3.1, 14.2.1).
extern "C" __attribute__((visibility("default"))) int MPI_Fetch_and_op(const void* operand, void* result,
                                                                       MPI_Datatype type, int process,
                                                                       MPI_Aint place, MPI_Op operation,
                                                                       MPI_Win window) {
  mistake.result = static_cast<std::int64_t*>(result);
  if ((operation == MPI_REPLACE && mistake.drops_sets) ||
      (operation == MPI_SUM && process == rank() && mistake.drops_own_adds))
    operation = MPI_NO_OP;
  if (process != rank()) std::this_thread::sleep_for(mistake.late);
  return PMPI_Fetch_and_op(operand, result, type, process, place, operation, window);
}

extern "C" __attribute__((visibility("default"))) int MPI_Win_flush(int process, MPI_Win window) {
  const int code = PMPI_Win_flush(process, window);
  if (mistake.result != nullptr) *mistake.result += mistake.added;
  return code;
}

extern "C" __attribute__((visibility("default"))) int MPI_Win_free(MPI_Win* window) {
  ++mistake.freed;
  return PMPI_Win_free(window);
}

MPI_TEST_MAIN
