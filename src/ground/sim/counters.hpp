// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "ground/comm/counters/counters.hpp"
#include "ground/sim/scheduler.hpp"

namespace tailrace::sim {

/// The memory of the counters of all simulated processes. With Scheduler::costs() a process makes one add
/// after another.
class SharedCounters {
 public:
  SharedCounters(Scheduler& scheduler, std::size_t processes)
      : scheduler_(scheduler), values_(processes), free_at_(processes, 0) {}
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;
  /// Returns one process's end of them. `wake` is called when an add of the process is made.
  std::unique_ptr<comm::Counters> join(std::size_t process, std::function<void()> wake);

 private:
  friend class SimCounters;
  Scheduler& scheduler_;
  [[nodiscard]] Nanoseconds time_to(int process);

  std::vector<std::vector<std::int64_t>> values_;  // by process
  std::vector<Nanoseconds> free_at_;               // by process, with costs: when it has made all adds
};

/// One simulated process's end of counters that are added to from outside. An add takes effect some time
/// after it was asked for, and the value comes back later still; the process at which the counter lies does
/// nothing for it.
class SimCounters final : public comm::Counters {
 public:
  SimCounters(SharedCounters& shared, std::size_t process, std::function<void()> wake);
  void set(int counter, std::int64_t value) override;
  void add(int process, int counter, std::int64_t amount, Taken taken) override;
  bool poll() override;
  [[nodiscard]] bool are_one_sided() const override { return true; }

 private:
  using Made = std::deque<std::pair<Taken, std::int64_t>>;
  SharedCounters& shared_;
  const std::size_t process_;
  const std::function<void()> wake_;
  std::shared_ptr<Made> made_ = std::make_shared<Made>();  // gone with the process: later adds tell nobody
};

}  // namespace tailrace::sim
