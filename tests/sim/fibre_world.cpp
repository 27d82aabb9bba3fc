// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "fibre_world.hpp"

#include <algorithm>
#include <ctime>

#include "base/text.hpp"

namespace tailrace::sim {

namespace {

/// A rank that hears nothing looks again after twice the time, at most after this: otherwise each rank would
/// look 10,000 times in a wait of seconds.
constexpr Nanoseconds longest_nap = FibreWorld::second;
constexpr Nanoseconds shortest_nap = 1'000;

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

FibreRank::FibreRank(Scheduler& scheduler, Port& port)
    : port_(port), actor_(scheduler, cat("rank ", port.rank())) {
  board_.connect(port_);
  board_.watch().who = actor_.name();
  port_.connect(*this);
  port_.on_news([this] { actor_.poke(); });
}

void FibreRank::start(std::function<void()> program) {
  fibre_ = std::make_unique<Fibre>(std::move(program));
  actor_.start(drive());
}

Task<> FibreRank::drive() {
  for (resume(); !fibre_->is_done(); resume()) {
    const Nanoseconds cost = cost_();
    if (is_turn_ || cost > 0) co_await actor_.step(cost);
    if (!is_turn_) co_await actor_.sleep(awake_, what_, limit_);
  }
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
  actor_.poke();
}

void FibreRank::idle(Nanoseconds duration, const std::string& what) {
  nap_ = std::clamp(std::max(duration, 2 * nap_), shortest_nap, longest_nap);
  sleep([this] { return is_poked_ || port_.has_news(); }, what, nap_);
  if (is_poked_ || port_.has_news()) nap_ = 0;
  is_poked_ = false;
}

std::string FibreRank::unfinished() const {
  if (actor_.is_done() || actor_.is_lost()) return {};
  return cat(actor_.name(), " waits for ", what_);
}

FibreWorld::FibreWorld(int size, std::uint64_t seed) : scheduler_(seed), network_(scheduler_, size) {
  for (int number = 0; number < size; ++number)
    ranks_.push_back(std::make_unique<FibreRank>(scheduler_, network_.port(number)));
}

void FibreWorld::settle() {
  while (scheduler_.run_one()) {
  }
}

bool FibreWorld::all_have_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const auto& each) { return each->actor_.is_done() || each->actor_.is_lost(); });
}

std::vector<std::string> FibreWorld::run(const std::function<void(FibreRank&)>& program, Nanoseconds limit) {
  // A program refers to objects of the caller. No program outlives this call, even if one throws.
  struct Unwinding {
    std::vector<std::unique_ptr<FibreRank>>& ranks;
    ~Unwinding() {
      for (const auto& each : ranks) {
        each->actor_.lose();
        each->actor_.abandon();
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
