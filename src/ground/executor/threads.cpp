// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/executor/threads.hpp"

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

namespace tailrace::executor {

namespace {

constexpr std::size_t unlimited_stack =
    std::size_t{64}  // A program's own encoders may have large arrays on the stack.
    << 20;

}  // namespace

Result<std::unique_ptr<Threads>> Threads::create(Limits limits, std::function<void()> wake) {
  std::unique_ptr<Threads> threads(new Threads(limits, std::move(wake)));
  threads->computing_.reserve(static_cast<std::size_t>(limits.compute));
  for (int worker = 0; worker < limits.compute; ++worker) {
    Result<std::thread> started =
        start_thread([self = threads.get(), worker] { self->run_computing(worker); }, unlimited_stack);
    if (!started.is_ok())
      return started.status().in(cat("cannot start ", limits.compute, " threads that compute"));
    threads->computing_.push_back(std::move(*started));
  }
  return threads;
}

Threads::~Threads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  compute_work_.notify_all();
  work_.notify_all();
  for (std::thread& thread : computing_) thread.join();
  for (std::thread& thread : waiting_) thread.join();
}

Threads::Work Threads::with_end(Job job, Done done) {
  return [this, job = std::move(job), done = std::move(done)](int worker) mutable {
    Status status = guarded([&]() -> Status { return job(worker); });
    job = nullptr;  // frees the job's captures before its end is told
    const std::lock_guard lock(mutex_);
    finished_.emplace_back(std::move(done), std::move(status));
    if (wake_) wake_();
  };
}

int Threads::threads() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(computing_.size() + waiting_.size());
}

void Threads::compute(Job job, Done done) {
  Work work = with_end(std::move(job), std::move(done));
  if (limits_.compute == 0) {
    const DefaultArithmetic guard;
    work(0);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    compute_.push_back(std::move(work));
  }
  compute_work_.notify_one();
}

void Threads::submit(Key key, std::function<void()> job) {
  enqueue(key, [job = std::move(job)](int) { job(); });
}

void Threads::enqueue(Key key, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (is_able()) {
      queues_[key].jobs.emplace_back(submitted_++, std::move(work));
      if (holds_ > 0) return;
      if (runnable() > idle_) start_waiting_thread();
      work_.notify_one();
      return;
    }
  }
  const DefaultArithmetic guard;
  work(count());
}

void Threads::hasten(Key key) {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(key);
  if (queue == queues_.end() || std::exchange(queue->second.is_hastened, true) || holds_ > 0) return;
  if (runnable() > idle_) start_waiting_thread();
  work_.notify_one();
}

bool Threads::poll() {
  std::deque<std::pair<Done, Status>> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (auto& [done, status] : finished) done(std::move(status));
  return !finished.empty();
}

int Threads::waiting_threads() {
  const std::lock_guard lock(mutex_);
  return is_able() ? limits_.wait : 0;
}

Threads::Hold::Hold(Threads& threads) : threads_(threads) {
  const std::lock_guard lock(threads_.mutex_);
  ++threads_.holds_;
}

Threads::Hold::~Hold() {
  const std::lock_guard lock(threads_.mutex_);
  if (--threads_.holds_ > 0) return;
  for (int more = threads_.runnable() - threads_.idle_; more > 0 && threads_.start_waiting_thread(); --more)
    continue;
  threads_.work_.notify_all();
}

/// True if a thread for jobs that wait is running, or could be started now.
bool Threads::is_able() { return limits_.wait > 0 && (!waiting_.empty() || start_waiting_thread()); }

/// Starts one more thread for jobs that wait. If the system gives none, the running threads do the work, or
/// the caller does.
bool Threads::start_waiting_thread() {
  const int worker = count() + static_cast<int>(waiting_.size());
  const Status started = guarded([&]() -> Status {
    waiting_.reserve(waiting_.size() + 1);
    Result<std::thread> thread = start_thread([this, worker] { run_waiting(worker); });
    TR_TRY(thread.status());
    waiting_.push_back(std::move(*thread));
    // The new thread counts as idle at once, so that nobody starts another one for the same job.
    ++idle_;
    return {};
  });
  if (!started.is_ok() && !std::exchange(warned_, true))
    log(LogLevel::warn, cat("no further thread for storage can be started (", started.text(),
                            "): what waits for storage waits for each other too"));
  return started.is_ok();
}

/// True if a job of the queue counts against the limit.
bool Threads::is_limited(const std::pair<const Key, Queue>& queue) {
  return (queue.first & own_bit) == 0 && !queue.second.is_hastened;
}

/// Returns how many jobs could begin now if there were enough threads.
int Threads::runnable() const {
  int free = 0;
  int limited = 0;
  for (const auto& queue : queues_) {
    if (!queue.second.running && !queue.second.jobs.empty()) ++(is_limited(queue) ? limited : free);
  }
  return free + std::min(limited, limits_.wait - limited_);
}

std::map<Key, Threads::Queue>::iterator Threads::first_runnable() {
  auto first = queues_.end();
  if (holds_ > 0 && !stopping_) return first;
  for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
    if (queue->second.running || queue->second.jobs.empty()) continue;
    if (is_limited(*queue) && limited_ >= limits_.wait) continue;
    if (first == queues_.end() || queue->second.jobs.front().first < first->second.jobs.front().first)
      first = queue;
  }
  return first;
}

bool Threads::is_idle(Key key) const {
  const std::lock_guard lock(mutex_);
  return queues_.count(key) == 0;
}

void Threads::drain(std::optional<Key> key) {
  std::unique_lock lock(mutex_);
  drained_.wait(lock, [&] { return key ? queues_.count(*key) == 0 : queues_.empty(); });
}

void Threads::run_computing(int worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    compute_work_.wait(lock, [this] { return stopping_ || !compute_.empty(); });
    if (compute_.empty()) return;
    Work work = std::move(compute_.front());
    compute_.pop_front();
    lock.unlock();
    work(worker);
    work = nullptr;
    lock.lock();
  }
}

void Threads::run_waiting(int worker) {
  std::unique_lock lock(mutex_);
  --idle_;
  for (;;) {
    auto queue = first_runnable();
    while (queue == queues_.end()) {
      // No job is left for this thread. A queue whose job still runs, or that the limit holds back, will be
      // served by the thread that ends a job.
      if (stopping_) return;
      ++idle_;
      work_.wait(lock);
      --idle_;
      queue = first_runnable();
    }
    const int limited = is_limited(*queue) ? 1 : 0;
    Work work = std::move(queue->second.jobs.front().second);
    queue->second.jobs.pop_front();
    queue->second.running = true;
    limited_ += limited;
    lock.unlock();
    work(worker);
    work = nullptr;  // frees the job's captures before its end is told
    lock.lock();
    limited_ -= limited;
    queue->second.running = false;
    if (!queue->second.jobs.empty()) {
      work_.notify_one();
      continue;
    }
    queues_.erase(queue);
    drained_.notify_all();
  }
}

}  // namespace tailrace::executor
