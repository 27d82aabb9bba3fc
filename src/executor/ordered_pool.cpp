// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "executor/ordered_pool.hpp"

#include <pthread.h>

#include <cfenv>
#include <csignal>
#include <exception>

#include "executor/workers.hpp"

namespace tailrace::executor {

OrderedPool::~OrderedPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void OrderedPool::submit(Key key, Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_able()) {
      lanes_[key].tasks.emplace_back(submitted_++, std::move(task));
      if (holds_ > 0) return;
      if (runnable() > idle_) start_thread();
      work_.notify_one();
      return;
    }
  }
  const DefaultFloatingPoint guard;
  task();
}

int OrderedPool::threads() {
  const std::lock_guard lock(mutex_);
  return is_able() ? most_ : 0;
}

void OrderedPool::hold() {
  const std::lock_guard lock(mutex_);
  ++holds_;
}

void OrderedPool::release() {
  const std::lock_guard lock(mutex_);
  if (--holds_ > 0) return;
  for (int waiting = runnable() - idle_; waiting > 0 && start_thread(); --waiting) continue;
  work_.notify_all();
}

/// Whether there is a thread, or can be.
bool OrderedPool::is_able() { return !threads_.empty() || start_thread(); }

bool OrderedPool::start_thread() {
  if (static_cast<int>(threads_.size()) >= most_) return false;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it: signals belong to the program
  bool started = true;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::exception&) {  // no resources, or no memory to note it
    started = false;                 // those that are there do the work, or the caller does
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

int OrderedPool::runnable() const {
  int count = 0;
  for (const auto& [key, lane] : lanes_) count += !lane.running && !lane.tasks.empty();
  return count;
}

bool OrderedPool::is_idle(Key key) const {
  const std::lock_guard lock(mutex_);
  return lanes_.count(key) == 0;
}

bool OrderedPool::is_idle() const {
  const std::lock_guard lock(mutex_);
  return lanes_.empty();
}

std::map<OrderedPool::Key, OrderedPool::Lane>::iterator OrderedPool::first_runnable() {
  auto first = lanes_.end();
  if (holds_ > 0 && !stopping_) return first;
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    if (lane->second.running || lane->second.tasks.empty()) continue;
    if (first == lanes_.end() || lane->second.tasks.front().first < first->second.tasks.front().first)
      first = lane;
  }
  return first;
}

void OrderedPool::run() {
  std::fesetenv(FE_DFL_ENV);  // a thread inherits the program's traps and flush-to-zero
  std::unique_lock lock(mutex_);
  for (;;) {
    auto lane = first_runnable();
    while (lane == lanes_.end()) {
      if (stopping_) return;
      ++idle_;
      work_.wait(lock);
      --idle_;
      lane = first_runnable();
    }
    Task task = std::move(lane->second.tasks.front().second);
    lane->second.tasks.pop_front();
    lane->second.running = true;
    lock.unlock();
    task();
    task = nullptr;  // what it captured is freed before anybody hears that it is done
    lock.lock();
    lane->second.running = false;
    if (lane->second.tasks.empty())
      lanes_.erase(lane);
    else
      work_.notify_one();
  }
}

}  // namespace tailrace::executor
