// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ground/executor/executor.hpp"
#include "ground/sim/scheduler.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::sim {

/// One disk for the whole simulated world. Bytes queue up for it at its rate, and each call takes its
/// latency. A call does not wait: its cost is added to `spent`, and the caller waits for that time
/// afterwards.
class Disk {
 public:
  Disk(Scheduler& scheduler, double bytes_per_second, Nanoseconds latency)
      : scheduler_(scheduler), bytes_per_second_(bytes_per_second), latency_(latency) {}
  void charge(Bytes bytes);
  /// Returns the cost of all calls since it was last asked.
  Nanoseconds take_spent() { return std::exchange(spent_, 0); }

 private:
  Scheduler& scheduler_;
  double bytes_per_second_;
  Nanoseconds latency_;
  Nanoseconds free_at_ = 0;
  Nanoseconds spent_ = 0;
};

/// Returns `below`, with its writes and syncs charged to `disk`.
std::shared_ptr<storage::Target> on_disk(std::shared_ptr<storage::Target> below, std::shared_ptr<Disk> disk);

/// Threads in simulated time. A whole job runs at one moment after it began. poll() gets its `done` once the
/// time of the job, and of its calls to the disk, is over. Jobs that compute, and jobs of one key, begin in
/// the order of submission. With several workers, or several keys, they end in any order.
class SimThreads final : public executor::Executor {
 public:
  /// `disk` is nullptr if the disk takes no time.
  SimThreads(Scheduler& scheduler, int count, std::shared_ptr<Disk> disk, std::function<void()> wake)
      : scheduler_(scheduler),
        disk_(std::move(disk)),
        wake_(std::move(wake)),
        idle_(static_cast<std::size_t>(count), char{1}) {}
  /// Jobs that have not ended never end: their rank is gone.
  ~SimThreads() override { *is_there_ = false; }
  SimThreads(const SimThreads&) = delete;
  SimThreads& operator=(const SimThreads&) = delete;
  [[nodiscard]] int count() const override { return static_cast<int>(idle_.size()); }
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
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);  // for events after the destructor
  std::vector<char> idle_;                                         // 1 for each idle worker
  Queue computing_;                                                // jobs that compute and have not begun
  std::map<executor::Key, Queue> waiting_;                         // the first job of each queue has begun
  std::deque<std::pair<Done, Status>> finished_;
};

}  // namespace tailrace::sim
