// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "executor/workers.hpp"

#include <cfenv>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

#include "base/text.hpp"

namespace tailrace::executor {

static_assert(sizeof(fenv_t) <= 64);

DefaultFloatingPoint::DefaultFloatingPoint() {
  // fegetenv of x86-64 keeps MXCSR, so that flush-to-zero set by -Ofast start-up code is saved and cleared
  // too.
  fenv_t current;
  std::fegetenv(&current);
  std::memcpy(saved_, &current, sizeof current);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatingPoint::~DefaultFloatingPoint() {
  fenv_t before;
  std::memcpy(&before, saved_, sizeof before);
  std::fesetenv(&before);
}

namespace {

class InlineWorkers final : public Workers {
 public:
  [[nodiscard]] int count() const override { return 1; }
  void submit(Task task, Done done) override {
    const DefaultFloatingPoint guard;
    Status status = guarded([&]() -> Status { return task(0); });
    finished_.emplace_back(std::move(done), std::move(status));
  }
  bool poll() override {
    if (finished_.empty()) return false;
    auto finished = std::move(finished_);
    finished_.clear();
    for (auto& [done, status] : finished) done(std::move(status));
    return true;
  }
  [[nodiscard]] int pending() const override { return static_cast<int>(finished_.size()); }

 private:
  std::deque<std::pair<Done, Status>> finished_;
};

class ThreadWorkers final : public Workers {
 public:
  explicit ThreadWorkers(std::function<void()> wake) : wake_(std::move(wake)) {}

  Status start(int threads) {
    count_ = threads;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the threads inherit it: signals belong to the program
    Status status;
    try {
      for (int worker = 0; worker < threads; ++worker)
        threads_.emplace_back([this, worker] { run(compute_, worker); });
      threads_.emplace_back([this, threads] { run(storage_, threads); });
    } catch (const std::system_error& error) {
      status = Status(Code::memory,
                      cat("cannot start ", threads, " worker threads: ", std::string_view(error.what())));
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return status;
  }

  ~ThreadWorkers() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    compute_.work.notify_all();
    storage_.work.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] int count() const override { return count_; }
  void submit(Task task, Done done) override { add(compute_, std::move(task), std::move(done)); }
  void submit_io(Task task, Done done) override { add(storage_, std::move(task), std::move(done)); }

  bool poll() override {
    std::deque<std::pair<Done, Status>> finished;
    {
      const std::lock_guard lock(mutex_);
      finished.swap(finished_);
    }
    for (auto& [done, status] : finished) {
      --pending_;
      done(std::move(status));
    }
    return !finished.empty();
  }

  [[nodiscard]] int pending() const override { return pending_; }

 private:
  struct Queue {
    std::condition_variable work;
    std::deque<std::pair<Task, Done>> tasks;
  };

  void add(Queue& queue, Task task, Done done) {
    {
      const std::lock_guard lock(mutex_);
      queue.tasks.emplace_back(std::move(task), std::move(done));
    }
    ++pending_;
    queue.work.notify_one();
  }

  void run(Queue& queue, int worker) {
    std::fesetenv(FE_DFL_ENV);  // a thread inherits the program's traps and flush-to-zero
    std::unique_lock lock(mutex_);
    for (;;) {
      queue.work.wait(lock, [&] { return stopping_ || !queue.tasks.empty(); });
      if (queue.tasks.empty()) return;
      auto [task, done] = std::move(queue.tasks.front());
      queue.tasks.pop_front();
      lock.unlock();
      Status status = guarded([&]() -> Status { return task(worker); });
      task = nullptr;  // what it captured is freed before anybody hears that it is done
      lock.lock();
      finished_.emplace_back(std::move(done), std::move(status));
      if (wake_) wake_();
    }
  }

  std::function<void()> wake_;
  int count_ = 0;
  std::mutex mutex_;
  Queue compute_;
  Queue storage_;
  std::deque<std::pair<Done, Status>> finished_;
  std::vector<std::thread> threads_;
  int pending_ = 0;
  bool stopping_ = false;
};

}  // namespace

std::unique_ptr<Workers> inline_workers() { return std::make_unique<InlineWorkers>(); }

Result<std::unique_ptr<Workers>> thread_workers(int threads, std::function<void()> wake) {
  auto workers = std::make_unique<ThreadWorkers>(std::move(wake));
  TR_TRY(workers->start(threads));
  return std::unique_ptr<Workers>(std::move(workers));
}

}  // namespace tailrace::executor
