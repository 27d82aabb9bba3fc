// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/counters.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::sim {

std::unique_ptr<comm::Counters> SharedCounters::join(std::size_t process, std::function<void()> wake) {
  return std::make_unique<SimCounters>(*this, process, std::move(wake));
}

/// Returns how long it takes until an add that is asked for now is made.
Nanoseconds SharedCounters::time_to(int process) {
  const Costs* const costs = scheduler_.costs();
  if (costs == nullptr) return scheduler_.message_delay();
  Nanoseconds& free_at = free_at_[static_cast<std::size_t>(process)];
  free_at = std::max(free_at, scheduler_.now() + costs->message_latency) + costs->add_gap;
  return free_at - scheduler_.now();
}

SimCounters::SimCounters(SharedCounters& shared, std::size_t process, std::function<void()> wake)
    : shared_(shared), process_(process), wake_(std::move(wake)) {
  shared_.values_[process_].resize(static_cast<std::size_t>(most));
}

void SimCounters::set(int counter, std::int64_t value) {
  shared_.values_[process_][static_cast<std::size_t>(counter)] = value;
}

void SimCounters::add(int process, int counter, std::int64_t amount, Taken taken) {
  Scheduler& scheduler = shared_.scheduler_;
  const auto make = [this, made = std::weak_ptr(made_), process, counter, amount, taken = std::move(taken),
                     &scheduler, &shared = shared_] {
    std::vector<std::int64_t>& values = shared.values_[static_cast<std::size_t>(process)];
    values.resize(static_cast<std::size_t>(most));
    std::int64_t& value = values[static_cast<std::size_t>(counter)];
    const std::int64_t before = std::exchange(value, value + amount);
    const Costs* const costs = scheduler.costs();
    const Nanoseconds back = costs != nullptr ? costs->message_latency : scheduler.step_delay();
    scheduler.after(back, [this, made, before, taken] {
      const auto to = made.lock();
      if (to == nullptr) return;
      to->emplace_back(taken, before);
      wake_();
    });
  };
  scheduler.after(shared_.time_to(process), make);
}

bool SimCounters::poll() {
  const Made made = std::exchange(*made_, {});
  for (const auto& [taken, before] : made) taken(before);
  return !made.empty();
}

}  // namespace tailrace::sim
