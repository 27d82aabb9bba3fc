// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/counters/mpi_counters.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "ground/comm/end_job.hpp"

namespace tailrace::comm {

namespace {

/// The processes' own counter is memory that other processes change: the library reads it as an atomic.
std::int64_t look_at(std::int64_t& value) {
  return std::atomic_ref<std::int64_t>(value).load(std::memory_order_acquire);
}

Status no_window(const char* why) { return {Code::unsupported, why}; }

// The counters of the self-test. It leaves them as it has changed them: make() sets a counter first.
constexpr int crowd_counter = 0;
constexpr int set_counter = 1;
constexpr int first_pair_counter = 2;

}  // namespace

Result<std::unique_ptr<CounterWindow>> CounterWindow::create(MPI_Comm comm, std::chrono::nanoseconds limit) {
  std::unique_ptr<CounterWindow> window(new CounterWindow(comm));
  const Status allocated = window->allocate();
  const Status tested = allocated.is_ok() ? window->test(limit) : allocated;
  if (tested.is_ok()) return window;
  window->free();
  return tested;
}

Status CounterWindow::allocate() {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  constexpr MPI_Aint bytes = Counters::most * sizeof(std::int64_t);
  std::int64_t* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  const bool is_there =
      MPI_Win_allocate(bytes, sizeof(std::int64_t), MPI_INFO_NULL, comm_, &memory, &window) == MPI_SUCCESS;
  int all = is_there ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm_);
  // If others have none, this process cannot free its window, which all would have to do.
  if (all == 0) return no_window("MPI_Win_allocate failed");
  window_ = window;
  values_ = {memory, static_cast<std::size_t>(Counters::most)};
  MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  int* model = nullptr;
  int is_known = 0;
  MPI_Win_get_attr(window_, MPI_WIN_MODEL, static_cast<void*>(&model), &is_known);
  std::ranges::fill(values_, 0);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  MPI_Win_sync(window_);
  int is_unified = is_known != 0 && *model == MPI_WIN_UNIFIED ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &is_unified, 1, MPI_INT, MPI_MIN, comm_);
  return is_unified != 0 ? Status() : no_window("the MPI keeps two copies of a window's memory");
}

void CounterWindow::free() {
  if (window_ == MPI_WIN_NULL) return;
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

int CounterWindow::try_fetch(int process, int counter, std::int64_t operand, MPI_Op operation,
                             std::int64_t& before) {
  const int code = MPI_Fetch_and_op(&operand, &before, MPI_INT64_T, process, counter, operation, window_);
  return code == MPI_SUCCESS ? MPI_Win_flush(process, window_) : code;
}

std::int64_t CounterWindow::fetch(int process, int counter, std::int64_t operand, MPI_Op operation) {
  std::int64_t before = 0;
  if (try_fetch(process, counter, operand, operation, before) != MPI_SUCCESS)
    end_job("MPI itself failed in MPI_Fetch_and_op among the servers");
  return before;
}

/// Waits without a call of MPI until the counter has at least this value.
bool CounterWindow::comes_to(int counter, std::int64_t value, std::chrono::nanoseconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (look_at(values_[static_cast<std::size_t>(counter)]) < value) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

/// Collective. It is also where the target of adds that have not come calls MPI, so that they come now.
Status CounterWindow::same_everywhere(bool is_right, bool has_come) {
  int verdicts[] = {is_right ? 1 : 0, has_come ? 1 : 0};
  MPI_Allreduce(MPI_IN_PLACE, verdicts, 2, MPI_INT, MPI_MIN, comm_);
  if (verdicts[0] == 0) return no_window("MPI_Fetch_and_op gave wrong values in its self-test");
  if (verdicts[1] == 0)
    return no_window("the MPI makes no progress with one-sided adds while their target is busy elsewhere");
  return {};
}

Status CounterWindow::test(std::chrono::nanoseconds limit) {
  TR_TRY(test_crowd(limit));
  TR_TRY(test_sets());
  for (int distance = 1; distance < size_; distance *= 2) {
    TR_TRY(test_pairs(distance, false, limit));
    TR_TRY(test_pairs(distance, true, limit));
  }
  return {};
}

/// All processes add to one counter at once. Each add must get a value of its own, and process 0, at which
/// the counter lies, must see the sum. Process 0 adds, too: an MPI may add to memory of its own process by
/// another way. It spreads its adds over those of the others, and calls MPI for nothing else.
Status CounterWindow::test_crowd(std::chrono::nanoseconds limit) {
  constexpr std::int64_t times = 8, amount = (std::int64_t{1} << 33) + 3;
  const std::int64_t adds = times * size_;
  bool is_right = true, has_come = true;
  std::int64_t sum = 0;  // of the values that the adds have got, in amounts
  MPI_Barrier(comm_);
  for (std::int64_t i = 0, last = -1; i < times && is_right; ++i) {
    if (rank_ == 0) has_come = has_come && comes_to(crowd_counter, i * size_ * amount, limit);
    std::int64_t before = 0;
    is_right = try_fetch(0, crowd_counter, amount, MPI_SUM, before) == MPI_SUCCESS && before > last &&
               before % amount == 0;
    last = before;
    sum += before / amount;
  }
  if (rank_ == 0) has_come = has_come && (!is_right || comes_to(crowd_counter, adds * amount, limit));
  TR_TRY(same_everywhere(is_right, has_come));
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, comm_);
  return same_everywhere(sum == adds * (adds - 1) / 2, true);
}

/// Each process sets a counter of its own, as MpiCounters::set() does, to values that rise and fall. Another
/// process, which hears of that, must add to the value set.
Status CounterWindow::test_sets() {
  constexpr std::int64_t amount = (std::int64_t{1} << 36) + 7;
  const auto value_of = [](int process, std::int64_t round) {
    return (round % 2 == 0 ? std::int64_t{1} << 45 : 100) + process;
  };
  const int next = (rank_ + 1) % size_;
  std::int64_t expected = 0;
  for (std::int64_t round = 0; round < 4; ++round) {
    std::int64_t set = -1, before = -1;
    bool is_right = try_fetch(rank_, set_counter, value_of(rank_, round), MPI_REPLACE, set) == MPI_SUCCESS &&
                    set == expected;
    MPI_Barrier(comm_);
    is_right = try_fetch(next, set_counter, amount, MPI_SUM, before) == MPI_SUCCESS && is_right &&
               before == value_of(next, round);
    // All adds are made when all processes have come here: the next set gets what they have left.
    TR_TRY(same_everywhere(is_right, true));
    expected = value_of(rank_, round) + amount;
  }
  return {};
}

/// Each process adds to the one whose number differs from its own in one bit, or is added to, and calls no
/// MPI until it has seen that.
Status CounterWindow::test_pairs(int distance, bool upwards, std::chrono::nanoseconds limit) {
  const std::int64_t amount = (std::int64_t{1} << 40) + rank_ + 1;
  const int other = rank_ ^ distance;
  const bool adds = ((rank_ & distance) != 0) != upwards;
  int counter = first_pair_counter;
  for (int each = 1; each < distance; each *= 2) counter += 2;
  counter += upwards ? 1 : 0;
  bool is_right = true, has_come = true;
  MPI_Barrier(comm_);
  if (other < size_ && adds) {
    std::int64_t before = -1;
    is_right = try_fetch(other, counter, amount, MPI_SUM, before) == MPI_SUCCESS && before == 0;
  } else if (other < size_) {
    const std::int64_t theirs = amount - rank_ + other;
    has_come = comes_to(counter, theirs, limit);
    is_right = !has_come || look_at(values_[static_cast<std::size_t>(counter)]) == theirs;
  }
  return same_everywhere(is_right, has_come);
}

void MpiCounters::set(int counter, std::int64_t value) {
  transport_.exclusively([&] { window_.fetch(window_.rank(), counter, value, MPI_REPLACE); });
}

void MpiCounters::add(int process, int counter, std::int64_t amount, Taken taken) {
  std::int64_t before = 0;
  transport_.exclusively([&] { before = window_.fetch(process, counter, amount, MPI_SUM); });
  taken(before);
}

}  // namespace tailrace::comm
