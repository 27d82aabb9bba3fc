// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "fibre_world.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "ground/base/text.hpp"

namespace tailrace::sim {

namespace {

/// A rank that receives nothing looks again after twice the last time, but at most after `longest_nap`. With
/// naps of one length each rank would look 10,000 times in a wait of seconds.
constexpr Nanoseconds longest_nap = FibreWorld::second;
constexpr Nanoseconds shortest_nap = 1'000;

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

FibreRank::FibreRank(Scheduler& scheduler, Port& port) : scheduler_(scheduler), port_(port) {
  board_.connect(port_);
  board_.watch().who = cat("rank ", rank());
  port_.connect(*this);
}

void FibreRank::start(std::function<void()> program) {
  fibre_ = std::make_unique<Fibre>(std::move(program));
  schedule(0);
}

/// Between two steps any other rank may run.
void FibreRank::schedule(Nanoseconds at_least) {
  scheduler_.after(at_least + scheduler_.step_delay(), [this] { step(); });
}

void FibreRank::step() {
  if (state_ == State::lost) return;
  take_step();
  if (on_step_) on_step_();
}

void FibreRank::take_step() {
  if (!std::exchange(pays_, false)) {
    resume();
    if (fibre_->is_done()) {
      if (state_ != State::lost) state_ = State::done;
      return;
    }
    const Nanoseconds cost = cost_() + port_.take_handling();
    if (is_turn_ || cost > 0) {
      pays_ = !is_turn_;
      schedule(cost);
      return;
    }
  }
  fall_asleep();
}

void FibreRank::fall_asleep() {
  if (state_ == State::lost) return;
  state_ = State::asleep;
  const std::uint64_t number = ++sleeps_;
  if (limit_ > 0) {
    scheduler_.after(limit_, [this, number] {
      if (state_ != State::asleep || sleeps_ != number) return;
      state_ = State::ready;
      schedule(0);
    });
  }
  look();
}

void FibreRank::look() {
  if (state_ != State::asleep || !awake_()) return;
  state_ = State::ready;
  schedule(0);
}

void FibreRank::resume() {
  if (!measures_work_) return fibre_->resume();
  const double began = processor_seconds();
  fibre_->resume();
  worked_ += processor_seconds() - began;
}

void FibreRank::let_others_run() {
  is_turn_ = true;
  fibre_->pause();
  is_turn_ = false;
}

void FibreRank::park(comm::Doorbell& bell, std::uint32_t ticket, Nanoseconds limit) {
  let_others_run();
  if (parks_late_) {
    bell.cancel();
    ticket = bell.ticket();
  }
  sleep([this, &bell, ticket] { return bell.rung_since(ticket) || port_.has_news(); },
        "its doorbell or a message", limits_parks_ ? limit : 0);
  bell.cancel();
}

void FibreRank::sleep(std::function<bool()> awake, std::string what, Nanoseconds limit) {
  awake_ = std::move(awake);
  what_ = std::move(what);
  limit_ = limit;
  fibre_->pause();
}

void FibreRank::stall(Nanoseconds duration) {
  sleep([] { return false; }, "its computing to end", std::max<Nanoseconds>(duration, 1));
}

void FibreRank::poke() {
  is_poked_ = true;
  look();
}

void FibreRank::idle(Nanoseconds duration, const std::string& what) {
  nap_ = std::clamp(std::max(duration, 2 * nap_), shortest_nap, longest_nap);
  sleep([this] { return is_poked_ || port_.has_news(); }, what, nap_);
  if (is_poked_ || port_.has_news()) nap_ = 0;
  is_poked_ = false;
}

std::string FibreRank::unfinished() const {
  if (has_ended()) return {};
  return cat("rank ", rank(), " waits for ", what_);
}

FibreWorld::FibreWorld(int size, std::uint64_t seed) : scheduler_(seed), network_(scheduler_, size) {
  for (int number = 0; number < size; ++number)
    ranks_.push_back(std::make_unique<FibreRank>(scheduler_, network_.port(number)));
}

std::int64_t FibreWorld::messages() const {
  std::int64_t sum = 0;
  for (const auto& each : ranks_) sum += each->port().messages();
  return sum;
}

void FibreWorld::settle() {
  while (scheduler_.run_one()) {
  }
}

bool FibreWorld::all_have_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& each) { return each->has_ended(); });
}

std::vector<std::string> FibreWorld::run(const std::function<void(FibreRank&)>& program, Nanoseconds limit) {
  // The programs use objects of the caller. So all of them are unwound before this call ends, even if one
  // throws.
  struct Unwinding {
    std::vector<std::unique_ptr<FibreRank>>& ranks;
    ~Unwinding() {
      for (const auto& each : ranks) {
        each->lose();
        each->fibre_.reset();
      }
    }
  };
  const Unwinding unwinding{ranks_};
  for (const auto& each : ranks_) {
    FibreRank& rank = *each;
    rank.start([&program, &rank] { program(rank); });
  }
  while (!all_have_ended() && scheduler_.now() < limit && scheduler_.run_one()) {
  }
  std::vector<std::string> unfinished;
  for (const auto& each : ranks_) {
    if (std::string text = each->unfinished(); !text.empty()) unfinished.push_back(std::move(text));
  }
  if (unfinished.empty()) settle();
  before_unwinding_();
  return unfinished;
}

}  // namespace tailrace::sim
