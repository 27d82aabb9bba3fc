// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "ground/executor/executor.hpp"
#include "ground/sim/costs.hpp"
#include "ground/sim/scheduler.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::sim {

/// One disk for the whole simulated world, and the account of what its processes spend on it, and on
/// encoding. Bytes pass each process at its rate, and all processes at the rate of the disk, in the order in
/// which they come; but no write waits longer than if all had equal parts of the rate. A call does not wait:
/// its cost is added to `spent`, and the caller waits for that time afterwards.
class Disk {
 public:
  /// What one process has spent its time on.
  struct Account {
    BusyTime encoding;
    BusyTime writing;  // with what a process waits for others that write
    BusyTime syncing;
  };

  Disk(Scheduler& scheduler, Costs costs, int processes)
      : scheduler_(scheduler),
        costs_(std::move(costs)),
        free_at_(static_cast<std::size_t>(processes), 0),
        accounts_(static_cast<std::size_t>(processes)) {}
  /// A disk as slow_disk() describes it.
  Disk(Scheduler& scheduler, double bytes_per_second, Nanoseconds latency)
      : Disk(scheduler, slow_disk(bytes_per_second, latency), 1) {}
  [[nodiscard]] const Costs& costs() const { return costs_; }
  /// Charge a process for a write to a file, for another call of storage, and for fsync.
  void charge_write(int process, const std::string& path, Bytes bytes);
  void charge_call(int process);
  void charge_sync(int process);
  /// Notes whose job runs next.
  void enter(int process) { running_ = process; }
  /// Charges the process whose job runs for encoding this many bytes of values.
  void charge_encoding(Bytes values);
  /// Returns the cost of all calls since it was last asked.
  Nanoseconds take_spent() { return std::exchange(spent_, 0); }
  [[nodiscard]] const Account& account(int process) const {
    return accounts_[static_cast<std::size_t>(process)];
  }

 private:
  [[nodiscard]] Nanoseconds latency(Nanoseconds stated);
  [[nodiscard]] double writers();
  void spend_until(Nanoseconds end, BusyTime& on);

  Scheduler& scheduler_;
  const Costs costs_;
  Nanoseconds storage_free_at_ = 0;
  std::priority_queue<Nanoseconds, std::vector<Nanoseconds>, std::greater<>> ends_;  // of writes under way
  std::vector<Nanoseconds> free_at_;  // by process: when its last bytes have passed
  std::vector<Account> accounts_;     // by process
  int running_ = 0;
  Nanoseconds spent_ = 0;
};

/// Returns `below`, with the writes and syncs of `process` charged to `disk`.
std::shared_ptr<storage::Target> on_disk(std::shared_ptr<storage::Target> below, std::shared_ptr<Disk> disk,
                                         int process = 0);

/// Threads in simulated time. A whole job runs at one moment after it began. poll() gets its `done` once the
/// time of the job, and of its calls to the disk, is over. Jobs that compute, and jobs of one key, begin
/// in the order of submission. With several workers, or several keys, they end in any order.
class SimThreads final : public executor::Executor {
 public:
  /// `disk` is nullptr if storage and encoding take no time. `process` is the number of the threads' process.
  SimThreads(Scheduler& scheduler, int count, std::shared_ptr<Disk> disk, std::function<void()> wake,
             int process = 0)
      : scheduler_(scheduler),
        disk_(std::move(disk)),
        wake_(std::move(wake)),
        process_(process),
        idle_(static_cast<std::size_t>(count), char{1}) {}
  /// Jobs that have not ended never end: their rank is gone.
  ~SimThreads() override { *is_there_ = false; }
  SimThreads(const SimThreads&) = delete;
  SimThreads& operator=(const SimThreads&) = delete;
  [[nodiscard]] int count() const override { return static_cast<int>(idle_.size()); }
  /// As many threads as there ever were keys with a job that waits.
  [[nodiscard]] int threads() const override { return count() + most_waiting_; }
  void compute(Job job, Done done) override;
  void wait(executor::Key key, Job job, Done done) override;
  bool poll() override;

 private:
  using Queue = std::deque<std::pair<Job, Done>>;
  void begin_computing();
  void begin_waiting(executor::Key key);
  void begin(int worker, std::pair<Job, Done> job, std::function<void()> next);
  void after(Nanoseconds delay, std::function<void()> event);

  Scheduler& scheduler_;
  std::shared_ptr<Disk> disk_;
  std::function<void()> wake_;
  const int process_;
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);  // for events after the destructor
  std::vector<char> idle_;                                         // 1 for each idle worker
  Queue computing_;                                                // jobs that compute and have not begun
  int most_waiting_ = 0;
  std::map<executor::Key, Queue> waiting_;  // the first job of each queue has begun
  std::deque<std::pair<Done, Status>> finished_;
};

}  // namespace tailrace::sim
