// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/exposed.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tailrace::sim {

std::unique_ptr<comm::ExposedMemory> SharedExposed::join(std::size_t process, Bytes bytes,
                                                         std::function<void()> wake) {
  memory_[process].resize(static_cast<std::size_t>(bytes));
  return std::make_unique<SimExposed>(*this, process, std::move(wake));
}

Nanoseconds SharedExposed::time_of(int process, Bytes bytes) {
  const Costs* const costs = scheduler_.costs();
  if (costs == nullptr) return scheduler_.message_delay();
  const Bytes all = costs->in_full(bytes);
  Nanoseconds& free_at = free_at_[static_cast<std::size_t>(process)];
  free_at = std::max(free_at, scheduler_.now() + costs->message_latency) + costs->message_gap +
            time_for(all, costs->adapter_bytes_per_second);
  const Nanoseconds of_link = costs->message_latency + time_for(all, costs->link_bytes_per_second);
  return std::max(free_at - scheduler_.now(), of_link);
}

void SimExposed::get(int process, std::vector<Range> ranges, std::function<void()> done) {
  Scheduler& scheduler = shared_.scheduler_;
  Bytes bytes = 0;
  for (const Range& range : ranges) bytes += std::ssize(range.into);
  ++shared_.gets_;
  shared_.bytes_ += bytes;
  shared_.most_bytes_ = std::max(shared_.most_bytes_, bytes);
  const auto copy = [this, over = std::weak_ptr(over_), process, ranges = std::move(ranges),
                     done = std::move(done), &scheduler, &shared = shared_] {
    if (over.expired()) return;
    const ByteVector& from = shared.memory_[static_cast<std::size_t>(process)];
    for (const Range& range : ranges) {
      if (range.offset < 0 || range.offset + std::ssize(range.into) > std::ssize(from))
        throw std::logic_error("a get reaches beyond the memory that its process exposes");
      std::copy_n(from.begin() + range.offset, range.into.size(), range.into.begin());
    }
    const Costs* const costs = scheduler.costs();
    const Nanoseconds back = costs != nullptr ? costs->message_latency : scheduler.step_delay();
    scheduler.after(back, [this, over, done] {
      const auto to = over.lock();
      if (to == nullptr) return;
      to->push_back(done);
      wake_();
    });
  };
  scheduler.after(shared_.time_of(process, bytes), copy);
}

bool SimExposed::poll() {
  const Over over = std::exchange(*over_, {});
  for (const auto& done : over) done();
  return !over.empty();
}

}  // namespace tailrace::sim
