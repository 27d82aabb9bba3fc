// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/progress_engine.hpp"

#include <algorithm>
#include <chrono>

#include "engine/exchange/requests.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/comm/mpi_process.hpp"

namespace tailrace::exchange {

namespace {

/// The limits of the sleep between two looks. The sleep is an eighth of the time since the last request, so
/// that a rank that asks after a pause waits little longer because of the sleep. A GrowingPause would count
/// the looks of one thread; requests are also answered in calls of the library. A look was measured to take
/// 22 microseconds on two nodes under Open MPI: with the longest sleep that is 0.2 % of a core.
constexpr std::chrono::nanoseconds shortest_sleep{50'000};
constexpr std::chrono::nanoseconds longest_sleep{10'000'000};

}  // namespace

ProgressEngine::~ProgressEngine() {
  {
    const std::lock_guard lock(rest_);
    is_ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (!is_started_) return;
  board_.remove_work(work_);
  // If the order of calls was broken, other ranks may still send requests or answers here. A large message
  // stays under way until this rank receives it: receive all messages, and drop them.
  board_.add_work([&transport = board_.transport()] {
    while (transport.receive_request()) continue;
    return false;
  });
}

std::chrono::nanoseconds ProgressEngine::next_look() const {
  const std::chrono::nanoseconds quiet(board_.transport().now() - moved_at_);
  return std::clamp(quiet / 8, shortest_sleep, longest_sleep);
}

void ProgressEngine::open(const Address& address, Requests& requests) {
  start_once();
  {
    const std::lock_guard lock(mutex_);
    open_.emplace(address, &requests);
    moved_at_ = board_.transport().now();
  }
  set_idle(false);
}

void ProgressEngine::close(const Address& address, const Requests& requests) {
  bool was_last = false;
  {
    const std::lock_guard lock(mutex_);
    const auto [first, end] = open_.equal_range(address);
    open_.erase(std::find_if(first, end, [&](const auto& each) { return each.second == &requests; }));
    was_last = open_.empty();
  }
  if (was_last) set_idle(true);
}

void ProgressEngine::set_idle(bool is_idle) {
  {
    const std::lock_guard lock(rest_);
    is_idle_ = is_idle;
  }
  wake_.notify_all();
}

/// Each rank decides alone whether it has a service thread. A rank without one answers in its calls of the
/// library.
void ProgressEngine::start_once() {
  if (std::exchange(is_started_, true)) return;
  work_ = board_.add_work([this] { return pump(); });
  if (!may_have_threads_ || !comm::mpi_is_running() || !comm::threads_may_call_mpi()) return;
  Result<std::thread> started = start_thread([this] { run(); });
  if (started.is_ok())
    thread_ = std::move(*started);
  else
    log(LogLevel::warn, cat(started.status().text(),
                            ": this rank has no service thread, and answers other nodes in calls of this "
                            "library alone"));
}

void ProgressEngine::say_how(int nodes_with_server, int nodes) {
  if (std::exchange(is_told_, true)) return;
  const std::string ranks = has_thread() ? "threads (a service thread of each rank)"
                                         : "caller (in calls of this library; MPI_THREAD_MULTIPLE lets a "
                                           "thread do it)";
  std::string how = ranks;
  if (nodes_with_server > 0) how = "servers (the first server of each node)";
  if (nodes_with_server > 0 && nodes_with_server < nodes)
    how = cat("servers (on ", nodes_with_server, " of ", counted(nodes, "node"), "; on the others ", ranks,
              ")");
  log(LogLevel::info, cat("requests: other nodes are answered with progress=", how));
}

bool ProgressEngine::pump() {
  const std::lock_guard lock(mutex_);
  return comm::committed("answering other nodes", [this] { return move_on(); });
}

/// deliver() drops messages for requests that are not open. They come if a rank has ended a file because the
/// order of calls was broken; nobody waits for an answer then.
bool ProgressEngine::move_on() {
  bool moved = false;
  while (std::optional<comm::Envelope> envelope = board_.transport().receive_request()) {
    moved = true;
    deliver(std::move(*envelope));
  }
  for (const auto& [address, requests] : open_) moved = requests->serve() || moved;
  if (moved) moved_at_ = board_.transport().now();
  return moved;
}

void ProgressEngine::deliver(comm::Envelope envelope) {
  const auto epoch = Unpacker(envelope.bytes).get<std::uint64_t>();
  const auto [first, end] = open_.equal_range({envelope.line, epoch});
  for (auto each = first; each != end; ++each) {
    if (each->second->is_for_this(envelope)) return each->second->deliver(std::move(envelope));
  }
}

void ProgressEngine::run() {
  std::unique_lock lock(rest_);
  while (!is_ending_) {
    wake_.wait(lock, [this] { return is_ending_ || !is_idle_; });
    lock.unlock();
    if (look()) moved_at_ = board_.transport().now();
    const auto next = next_look();
    lock.lock();
    wake_.wait_for(lock, next, [this] { return is_ending_; });
  }
}

/// Returns true if the next look is to come soon.
bool ProgressEngine::look() {
  // If a call of the library has the mutex, it answers requests itself.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  return comm::committed("answering other nodes", [this] {
    // Any call of MPI moves an answer on. progress() frees the memory of answers that have left.
    const bool has_left = board_.transport().progress();
    const bool moved = move_on();
    return std::ranges::any_of(open_, [](const auto& each) { return each.second->is_waiting(); }) ||
           has_left || moved;
  });
}

}  // namespace tailrace::exchange
