// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ground/executor/executor.hpp"

namespace tailrace::executor {

/// Runs jobs on threads of this process. If the process may have no threads, the caller runs them, with the
/// default floating-point state. Threads for jobs that compute are started at once. Threads for jobs that
/// wait are started when they are first needed; a free one takes the runnable job that was submitted first.
/// Therefore a job may wait for the effects of earlier jobs (of any key, on any rank).
class Threads final : public Executor {
 public:
  struct Limits {
    int compute = 0;  // 0: jobs that compute run inside compute()
    /// The most keys whose jobs that wait may run at a time, not counting own keys. 0: these jobs run inside
    /// the call.
    int wait = 0;
  };
  /// Makes the threads. After each job with a `done`, its thread calls `wake`.
  static Result<std::unique_ptr<Threads>> create(Limits limits, std::function<void()> wake = {});
  /// Blocks until all submitted jobs are done.
  ~Threads() override;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// While a Hold exists, no job that waits begins; running jobs go on. It is for a thread that submits jobs
  /// and then has something short to do before others can go on: the jobs would take the thread's core. The
  /// thread must not wait for a job meanwhile.
  class Hold {
   public:
    explicit Hold(Threads& threads);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Threads& threads_;
  };

  [[nodiscard]] int count() const override { return std::max(limits_.compute, 1); }
  [[nodiscard]] int threads() const override;
  void compute(Job job, Done done) override;
  void wait(Key key, Job job, Done done) override { enqueue(key, with_end(std::move(job), std::move(done))); }
  bool poll() override;
  /// Queues a job that waits and has no `done`. The job must not throw. It must note its failures where
  /// somebody finds them: otherwise a failure would be lost, and ranks would wait for the job's effects.
  void submit(Key key, std::function<void()> job);
  /// Returns a new key.
  Key new_key() { return next_key_++; }
  /// Returns a new key whose jobs do not count against the limit.
  Key new_own_key() { return next_key_++ | own_bit; }
  /// Lets jobs of `key` run beyond the limit until none is left. For jobs that somebody waits for: jobs of
  /// other keys that came first may take long.
  void hasten(Key key);
  /// Returns Limits::wait, or 0 if no thread could be started: jobs then run inside submit().
  [[nodiscard]] int waiting_threads();
  /// True if no job of `key` is queued or running.
  [[nodiscard]] bool is_idle(Key key) const;
  /// Blocks until no job of `key`, or without a key no job at all, is queued or running.
  void drain(std::optional<Key> key = {});

 private:
  using Work = std::function<void(int worker)>;
  struct Queue {
    std::deque<std::pair<std::uint64_t, Work>> jobs;  // each with its submission number
    bool running = false;
    bool is_hastened = false;
  };
  static constexpr Key own_bit = Key{1} << 63;
  explicit Threads(Limits limits, std::function<void()> wake) : limits_(limits), wake_(std::move(wake)) {}
  Work with_end(Job job, Done done);
  void enqueue(Key key, Work work);
  bool is_able();
  bool start_waiting_thread();
  void run_computing(int worker);
  void run_waiting(int worker);
  [[nodiscard]] static bool is_limited(const std::pair<const Key, Queue>& queue);
  [[nodiscard]] int runnable() const;
  [[nodiscard]] std::map<Key, Queue>::iterator first_runnable();

  const Limits limits_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable compute_work_;
  std::condition_variable work_;
  std::condition_variable drained_;
  std::deque<Work> compute_;
  std::map<Key, Queue> queues_;
  std::deque<std::pair<Done, Status>> finished_;
  std::uint64_t submitted_ = 0;
  Key next_key_ = 0;
  int limited_ = 0;  // running jobs whose keys count against the limit
  int idle_ = 0;
  int holds_ = 0;
  bool stopping_ = false;
  bool warned_ = false;  // has logged that no thread could be started
  std::vector<std::thread> computing_;
  std::vector<std::thread> waiting_;
};

}  // namespace tailrace::executor
