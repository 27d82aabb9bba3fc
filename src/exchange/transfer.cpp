// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "exchange/transfer.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "exchange/exchange_thread.hpp"

namespace tailrace::exchange {

using Lane = node::WindowPool::Lane;

namespace {

void let_go(Held* held) {
  if (held != nullptr) held->reset();
}

}  // namespace

void Tally::stop_at(Bytes end, const Status& why) {
  const std::lock_guard lock(mutex_);
  end_ = std::min(end_, end);
  if (status_.is_ok()) status_ = why;
}

Bytes Tally::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

Status Tally::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

Transfer::Transfer(Channel& channel, node::WindowPool& pool, std::shared_ptr<const ArrayPlan> plan,
                   Portions portions, executor::Key key)
    : channel_(channel),
      pool_(pool),
      plan_(std::move(plan)),
      portions_(std::move(portions)),
      key_(key),
      own_(channel.own(portions_.aggregators())) {
  mine_ = {plan_->mine.begin(), plan_->mine.end()};
}

void Transfer::begin_far(Direction direction, std::byte* base) {
  if (channel_.far_ranks().empty()) return;
  far_ = std::make_shared<FarExchange>(channel_, pool_, plan_, portions_, lane_, direction, base);
  if (channel_.thread() != nullptr) channel_.thread()->submit(far_);
}

/// Without a thread, everything that travels between nodes must have arrived before the call returns.
void Transfer::end_far(bool later) {
  if (far_ == nullptr) return;
  far_->close();
  if (later && channel_.thread() != nullptr) return;
  settle([&] { return far_->is_done(); }, "the parts of an array on other nodes");
}

template <typename Ready>
void Transfer::wait(int aggregator, const Ready& ready, const char* what) {
  if (ready()) return;
  const int seat = channel_.seat(aggregator);
  settle([&] { return pool_.sleep_unless(seat, ready); }, what);
}

/// Waits until `done`, and moves the messages of other nodes on meanwhile: they may bring what is waited for.
void Transfer::settle(const std::function<bool()>& done, const char* what) {
  Group& group = channel_.group();
  const bool drives = far_ != nullptr && channel_.thread() == nullptr;
  group.wait(
      [&] {
        while (drives && far_->advance(group.line())) {
        }
        return done();
      },
      what);
}

void Transfer::for_each_window(const std::function<void(const Window&)>& body, std::int64_t round) {
  for (int a = 0; a < portions_.aggregators(); ++a) {
    if (round < portions_.count(a)) body(portions_.window(a, round));
  }
}

/// Returns true if the window is free, and also the window `more` places behind it. Windows are not freed in
/// their order.
bool Transfer::may_pack(const Window& window, int more) const {
  const int seat = channel_.seat(window.aggregator);
  return pool_.is_open(seat, window.number) &&
         (more == 0 || pool_.is_open(seat, window.number + static_cast<std::uint64_t>(more)));
}

void Transfer::write(const std::byte* base, const Sink& sink, const std::shared_ptr<Tally>& tally,
                     Held* held) {
  const bool later = held != nullptr;
  begin_far(Direction::write, nullptr);
  for (std::int64_t round = 0; round < portions_.rounds(); ++round) {
    for_each_window(
        [&](const Window& window) {
          if (channel_.is_near(window.aggregator))
            pack(base, window, held);
          else
            capture_far(base, window, held);
        },
        round);
    if (own_ && round < portions_.count(*own_)) queue_write(portions_.window(*own_, round), sink, tally);
  }
  if (far_ != nullptr) let_go(held);
  end_far(later);
}

void Transfer::pack(const std::byte* base, const Window& window, Held* held) {
  const int seat = channel_.seat(window.aggregator);
  if (mine_.meets(window)) {
    if (!may_pack(window, 0)) {
      let_go(held);
      // One sleep waits for several windows.
      wait(
          window.aggregator, [&] { return may_pack(window, pool_.slots() / 4); },
          "free memory for arrays (TAILRACE_IO_BUFFER): storage is slower than the program's output");
    }
    plan_->mine.gather(base, window.begin, window.end, pool_.data(seat, window.number));
  }
  pool_.pass(seat, Lane::now, pool_.me(), window.number);
}

void Transfer::capture_far(const std::byte* base, const Window& window, Held* held) {
  // As many bytes as TAILRACE_IO_BUFFER may be captured if a thread sends them, few if the caller does.
  Bytes most = channel_.thread() == nullptr ? pool_.window() : channel_.group().settings().io_buffer;
  if (!far_->capture(base, window)) most = 0;
  if (far_->captured() <= most) return;
  let_go(held);
  settle([&] { return far_->captured() <= most; }, "other nodes to take parts of an array");
}

void Transfer::queue_write(const Window& window, const Sink& sink, const std::shared_ptr<Tally>& tally) {
  const int seat = channel_.seat(window.aggregator);
  const auto is_full = [&pool = pool_, seat, number = window.number] {
    return pool.all_passed(seat, Lane::now, number);
  };
  // Without a thread the caller runs the job, and the caller also has to serve the others.
  if (channel_.group().threads().waiting_threads() == 0)
    wait(window.aggregator, is_full, "the parts of an array");
  channel_.group().threads().submit(
      key_, [&pool = pool_, seat, is_full, window, sink, tally, position = portions_.position()] {
        pool.wait(seat, is_full);
        // Bytes behind a failure are not written: the file ends where it was still right.
        if (tally->status().is_ok()) {
          const std::span<const std::byte> bytes(pool.data(seat, window.number),
                                                 static_cast<std::size_t>(window.end - window.begin));
          const Status written = sink(bytes, position + window.begin);
          if (!written.is_ok()) tally->stop_at(window.begin, written);
        }
        pool.free(seat, window.number);
      });
}

void Transfer::read(std::byte* base, const Source& source, const std::shared_ptr<Tally>& tally, bool later) {
  // Bytes from another node come with a call of MPI, which only a thread can make later.
  later = later && (channel_.far_ranks().empty() || channel_.thread() != nullptr);
  lane_ = later ? Lane::later : Lane::now;
  begin_far(Direction::read, base);
  executor::Threads& threads = channel_.group().threads();
  // Threads read ahead as far as there are windows. Without threads the caller loads each window when it
  // comes to it.
  const auto ahead = threads.waiting_threads() == 0 ? 1 : std::int64_t{pool_.slots()};
  std::int64_t queued = 0;
  for (std::int64_t round = 0; round < portions_.rounds(); ++round) {
    if (own_) {
      for (; queued < std::min(round + ahead, portions_.count(*own_)); ++queued)
        queue_load(portions_.window(*own_, queued), source, tally);
    }
    for_each_window(
        [&](const Window& window) {
          if (channel_.is_near(window.aggregator)) take(base, window);
        },
        round);
  }
  end_far(later);
}

void Transfer::queue_load(const Window& window, const Source& source, const std::shared_ptr<Tally>& tally) {
  const int seat = channel_.seat(window.aggregator);
  const auto is_open = [&pool = pool_, seat, number = window.number] { return pool.is_open(seat, number); };
  if (channel_.group().threads().waiting_threads() == 0)
    wait(window.aggregator, is_open, "the other ranks to take their parts of an array");
  channel_.group().threads().submit(key_, [&pool = pool_, seat, is_open, window, source, tally,
                                           position = portions_.position(), lane = lane_] {
    pool.wait(seat, is_open);
    Bytes got = 0;
    const Bytes wanted = window.end - window.begin;
    if (tally->end() >= window.begin) {
      const Result<Bytes> read =
          source({pool.data(seat, window.number), static_cast<std::size_t>(wanted)}, position + window.begin);
      if (read.is_ok()) got = *read;
      if (got < wanted) tally->stop_at(window.begin + got, read.status());
    }
    pool.set_loaded(seat, lane, window.number, got);
  });
}

void Transfer::take(std::byte* base, const Window& window) {
  const int seat = channel_.seat(window.aggregator);
  const bool meets = mine_.meets(window);
  const auto is_loaded = [&pool = pool_, seat, number = window.number] {
    return pool.is_loaded(seat, number);
  };
  const auto deliver = [&pool = pool_, seat, meets, window, base, plan = plan_, lane = lane_] {
    if (meets) {
      const Bytes end = window.begin + pool.loaded_bytes(seat, window.number);
      plan->mine.scatter(base, window.begin, end, pool.data(seat, window.number));
    }
    pool.pass(seat, lane, pool.me(), window.number);
  };
  executor::Threads& threads = channel_.group().threads();
  const bool later = lane_ == Lane::later;
  // Without a thread the caller runs the job, and the caller also has to serve the others.
  if (meets && (!later || threads.waiting_threads() == 0))
    wait(window.aggregator, is_loaded, "storage to read an array");
  if (!later) return deliver();
  threads.submit(channel_.key(), [&pool = pool_, seat, meets, is_loaded, deliver] {
    if (meets) pool.wait(seat, is_loaded);
    deliver();
  });
}

}  // namespace tailrace::exchange
