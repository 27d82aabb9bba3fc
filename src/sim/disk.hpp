// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "executor/workers.hpp"
#include "sim/scheduler.hpp"
#include "storage/target.hpp"

namespace tailrace::sim {

/// One disk for the whole world, in simulated time: bytes queue up for it at its rate, and each call that
/// reaches it takes its latency. What a call costs is added to `spent`, which whoever made the call waits for
/// afterwards.
class Disk {
 public:
  Disk(Scheduler& scheduler, double bytes_per_second, Nanoseconds latency)
      : scheduler_(scheduler), bytes_per_second_(bytes_per_second), latency_(latency) {}
  void charge(Bytes bytes);
  /// What the calls since the last time have cost.
  Nanoseconds take_spent();

 private:
  Scheduler& scheduler_;
  double bytes_per_second_;
  Nanoseconds latency_;
  Nanoseconds free_at_ = 0;
  Nanoseconds spent_ = 0;
};

/// `below` with its writes and syncs charged to `disk`.
std::shared_ptr<storage::Target> on_disk(std::shared_ptr<storage::Target> below, std::shared_ptr<Disk> disk);

/// Worker threads in simulated time. A task runs as a whole at some moment after it began; its `done` is to
/// be had when it and what it asked of the disk are over. Tasks begin in the order of submission and, with
/// several workers, end in any.
class SimWorkers final : public executor::Workers {
 public:
  SimWorkers(Scheduler& scheduler, int count, std::shared_ptr<Disk> disk, std::function<void()> wake);
  [[nodiscard]] int count() const override { return static_cast<int>(idle_.size()) - 1; }
  void submit(Task task, Done done) override;
  void submit_io(Task task, Done done) override;
  bool poll() override;
  [[nodiscard]] int pending() const override { return pending_; }

 private:
  using Queue = std::deque<std::pair<Task, Done>>;
  void begin();
  bool begin(Queue& queue, std::size_t worker);
  void run(int worker, const std::shared_ptr<std::pair<Task, Done>>& job);

  Scheduler& scheduler_;
  std::shared_ptr<Disk> disk_;
  std::function<void()> wake_;
  std::vector<char> idle_;  // the last one is for storage
  Queue queue_;
  Queue storage_queue_;
  std::deque<std::pair<Done, Status>> finished_;
  int pending_ = 0;
};

}  // namespace tailrace::sim
