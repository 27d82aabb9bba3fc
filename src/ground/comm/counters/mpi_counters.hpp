// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <span>

#include "ground/comm/counters/counters.hpp"
#include "ground/comm/transport.hpp"

namespace tailrace::comm {

/// A window of MPI with counters (MPI_Win_allocate), Counters::most on each process, and the one call that is
/// made with it: MPI_Fetch_and_op of int64.
class CounterWindow {
 public:
  /// How long a process that only computes waits in the self-test until the adds of others show in its
  /// memory.
  static constexpr std::chrono::milliseconds patience{500};

  /// Collective over `comm`, which must outlive the object and is used for nothing else. Blocks until all
  /// processes have called it. Makes the window and tests it: adds of all processes at once, adds to a value
  /// that was just set, and adds to processes that are not inside of MPI. Returns Code::unsupported on all
  /// processes if the adds are wrong, or wait until their target calls MPI.
  static Result<std::unique_ptr<CounterWindow>> create(MPI_Comm comm,
                                                       std::chrono::nanoseconds limit = patience);
  /// Collective. Blocks until all processes have called it. Frees the window; nothing may use it any more.
  void free();
  CounterWindow(const CounterWindow&) = delete;
  CounterWindow& operator=(const CounterWindow&) = delete;

  /// Local. Applies MPI_SUM or MPI_REPLACE to a counter, and returns its value before. An error ends the job.
  std::int64_t fetch(int process, int counter, std::int64_t operand, MPI_Op operation);
  [[nodiscard]] int rank() const { return rank_; }

 private:
  explicit CounterWindow(MPI_Comm comm) : comm_(comm) {}
  int try_fetch(int process, int counter, std::int64_t operand, MPI_Op operation, std::int64_t& before);
  Status allocate();
  Status test(std::chrono::nanoseconds limit);
  Status test_crowd(std::chrono::nanoseconds limit);
  Status test_sets();
  Status test_pairs(int distance, bool upwards, std::chrono::nanoseconds limit);
  [[nodiscard]] bool comes_to(int counter, std::int64_t value, std::chrono::nanoseconds limit) const;
  Status same_everywhere(bool is_right, bool has_come);

  const MPI_Comm comm_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<std::int64_t> values_;
  int rank_ = 0;
  int size_ = 0;
};

/// Counters by one-sided adds to a window. An add is made when it returns: the self-test of the window has
/// shown that the MPI needs nothing of the target.
class MpiCounters final : public Counters {
 public:
  /// Local. The calls are made on the calling thread, when no other thread uses the transport. Both must
  /// outlive the object.
  MpiCounters(CounterWindow& window, Transport& transport) : window_(window), transport_(transport) {}
  void set(int counter, std::int64_t value) override;
  void add(int process, int counter, std::int64_t amount, Taken taken) override;
  [[nodiscard]] bool are_one_sided() const override { return true; }

 private:
  CounterWindow& window_;
  Transport& transport_;
};

}  // namespace tailrace::comm
