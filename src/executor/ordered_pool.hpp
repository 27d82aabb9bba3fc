// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace tailrace::executor {

/// Threads that work for files: the tasks of one key run one after another in the order of submission, those
/// of different keys side by side. A free thread takes the task that was submitted first among those that may
/// run, so that a task may wait for what earlier ones (of any key, on any rank) will do. Tasks never call
/// MPI and never throw. Threads have default floating-point state and all signals blocked; they start when
/// they are first needed.
class OrderedPool {
 public:
  using Key = std::uint64_t;
  using Task = std::function<void()>;

  /// With 0 threads tasks run inside submit().
  explicit OrderedPool(int threads) : most_(threads) {}
  ~OrderedPool();
  OrderedPool(const OrderedPool&) = delete;
  OrderedPool& operator=(const OrderedPool&) = delete;

  /// While one exists no task begins; those that run go on. For the moments in which the submitting thread
  /// has something short to do that it is waited for, and would lose its core to the tasks it submits. It
  /// must not wait for a task meanwhile.
  class Hold {
   public:
    explicit Hold(OrderedPool& pool) : pool_(pool) { pool_.hold(); }
    ~Hold() { pool_.release(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    OrderedPool& pool_;
  };

  /// 0 also where none could be started: tasks run inside submit() then.
  [[nodiscard]] int threads();
  void submit(Key key, Task task);
  /// Nothing of `key` is queued or running.
  [[nodiscard]] bool is_idle(Key key) const;
  [[nodiscard]] bool is_idle() const;

 private:
  struct Lane {
    std::deque<std::pair<std::uint64_t, Task>> tasks;  // with their submission numbers
    bool running = false;
  };
  void hold();
  void release();
  bool is_able();
  bool start_thread();
  void run();
  [[nodiscard]] int runnable() const;
  [[nodiscard]] std::map<Key, Lane>::iterator first_runnable();

  const int most_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::map<Key, Lane> lanes_;
  std::uint64_t submitted_ = 0;
  int idle_ = 0;
  int holds_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tailrace::executor
