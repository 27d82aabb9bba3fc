// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::sim {

namespace {

constexpr Nanoseconds microsecond = 1'000;
constexpr Nanoseconds millisecond = 1'000'000;

constexpr auto is_later = [](const auto& a, const auto& b) {
  return a.when != b.when ? a.when > b.when : a.tie > b.tie;
};

}  // namespace

Scheduler::Scheduler(std::uint64_t seed) : random_(seed) {
  constexpr Nanoseconds slowest[] = {5 * microsecond, 100 * microsecond, 10 * millisecond};
  longest_message_ = slowest[random(0, 2)];
  constexpr std::int64_t stalls[] = {1'000'000, 200, 20};
  stall_once_in_ = stalls[random(0, 2)];
}

std::int64_t Scheduler::random(std::int64_t low, std::int64_t high) {
  // Not a distribution of the standard library, because these differ between implementations. A seed should
  // mean the same everywhere.
  return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
}

Nanoseconds Scheduler::step_delay() {
  if (costs_) return costs_->turn;
  if (once_in(stall_once_in_)) return random(1, 20 * millisecond);
  return random(100, 2 * microsecond);
}

Nanoseconds Scheduler::message_delay() {
  if (costs_) return costs_->message_latency;
  Nanoseconds most = longest_message_;
  while (most > 2 * microsecond && random(0, 1) == 0) most /= 4;
  return random(500, std::max(microsecond, most));
}

void Scheduler::after(Nanoseconds delay, std::function<void()> event) {
  if (free_places_.empty()) {
    free_places_.push_back(functions_.size());
    functions_.emplace_back();
  }
  const std::size_t place = free_places_.back();
  free_places_.pop_back();
  functions_[place] = std::move(event);
  events_.push_back({now_ + delay, random_(), place});
  std::push_heap(events_.begin(), events_.end(), is_later);
}

bool Scheduler::run_one() {
  if (events_.empty()) return false;
  std::pop_heap(events_.begin(), events_.end(), is_later);
  const Event event = events_.back();
  events_.pop_back();
  now_ = event.when;
  const std::function<void()> run = std::exchange(functions_[event.place], nullptr);
  free_places_.push_back(event.place);
  run();
  return true;
}

}  // namespace tailrace::sim
