// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "exchange/request_desk.hpp"

#include <algorithm>
#include <chrono>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread.hpp"
#include "comm/mpi_process.hpp"
#include "exchange/requests.hpp"

namespace tailrace::exchange {

namespace {

/// How long the service thread sleeps between two looks: an eighth of the time for which nobody has asked, so
/// that a rank that asks again waits little longer for that. A look was measured to take 22 microseconds on
/// two nodes under Open MPI: at the longest sleep that is 0.2 % of a core.
class Pause {
 public:
  std::chrono::microseconds after(bool moved) {
    const auto now = std::chrono::steady_clock::now();
    if (moved) since_ = now;
    return std::clamp(std::chrono::duration_cast<std::chrono::microseconds>(now - since_) / 8, shortest,
                      longest);
  }

 private:
  static constexpr std::chrono::microseconds shortest{50};
  static constexpr std::chrono::microseconds longest{10'000};
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace

RequestDesk::~RequestDesk() {
  {
    const std::lock_guard lock(rest_);
    is_ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (!is_started_) return;
  board_.remove_work(work_);
  // After calls that broke the order others may still have asked, or answer: with much, which then waits to
  // be taken.
  board_.add_work([&transport = board_.transport()] {
    while (transport.receive_request()) continue;
    return false;
  });
}

void RequestDesk::open(const Address& address, Requests& requests, bool says_how) {
  start_once(says_how);
  {
    const std::lock_guard lock(mutex_);
    open_[address] = &requests;
  }
  set_idle(false);
}

void RequestDesk::close(const Address& address) {
  bool was_last = false;
  {
    const std::lock_guard lock(mutex_);
    open_.erase(address);
    was_last = open_.empty();
  }
  if (was_last) set_idle(true);
}

void RequestDesk::set_idle(bool is_idle) {
  {
    const std::lock_guard lock(rest_);
    is_idle_ = is_idle;
  }
  wake_.notify_all();
}

/// Each rank decides for itself: a rank that has no thread answers in calls.
void RequestDesk::start_once(bool says_how) {
  if (std::exchange(is_started_, true)) return;
  work_ = board_.add_work([this] { return pump(); });
  const bool has_thread = may_have_threads_ && comm::mpi_is_running() && comm::threads_may_call_mpi();
  if (says_how)
    log(LogLevel::info,
        cat("requests: other nodes are answered with progress=",
            has_thread ? "threads (a service thread of each rank)"
                       : "caller (in calls of this library; MPI_THREAD_MULTIPLE lets a thread do it)"));
  if (!has_thread) return;
  Result<std::thread> started = start_thread([this] { run(); });
  if (started.is_ok())
    thread_ = std::move(*started);
  else
    log(LogLevel::warn, cat(started.status().text(),
                            ": this rank has no service thread, and answers other nodes in calls of this "
                            "library alone"));
}

bool RequestDesk::pump() {
  const std::lock_guard lock(mutex_);
  return comm::committed("answering other nodes", [this] { return move_on(); });
}

/// Ranks that end a file because their calls broke the order may be asked for pages of it still: nobody waits
/// for their answers.
bool RequestDesk::move_on() {
  bool moved = false;
  while (std::optional<comm::Envelope> envelope = board_.transport().receive_request()) {
    moved = true;
    const auto epoch = Unpacker(envelope->bytes).get<std::uint64_t>();
    const auto requests = open_.find({envelope->line, epoch});
    if (requests != open_.end()) requests->second->deliver(std::move(*envelope));
  }
  for (const auto& [address, requests] : open_) moved = requests->serve() || moved;
  return moved;
}

void RequestDesk::run() {
  Pause pause;
  std::unique_lock lock(rest_);
  while (!is_ending_) {
    wake_.wait(lock, [this] { return is_ending_ || !is_idle_; });
    lock.unlock();
    const auto next = pause.after(look());
    lock.lock();
    wake_.wait_for(lock, next, [this] { return is_ending_; });
  }
}

/// Returns true if the next look is to come soon.
bool RequestDesk::look() {
  // If a call of the library has the mutex, it answers requests itself.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  return comm::committed("answering other nodes", [this] {
    // An answer leaves with the progress that any call of MPI makes; its memory goes back here.
    const bool has_left = board_.transport().progress();
    const bool moved = move_on();
    return std::ranges::any_of(open_, [](const auto& each) { return each.second->is_waiting(); }) ||
           has_left || moved;
  });
}

}  // namespace tailrace::exchange
