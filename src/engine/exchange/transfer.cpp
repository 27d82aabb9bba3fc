// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/transfer.hpp"

#include <algorithm>

#include "engine/exchange/exchange_thread.hpp"
#include "ground/base/text.hpp"

namespace tailrace::exchange {

using Sequence = node::StripePool::Sequence;

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

Transfer::Transfer(Channel& channel, Ring& ring, std::shared_ptr<const ArrayPlan> plan, Bytes position,
                   bool parallel, executor::Key key)
    : channel_(channel),
      pool_(*ring.pool),
      plan_(std::move(plan)),
      cut_(position, plan_->bytes(), pool_.stripe(), ring.numbers, parallel ? channel.aggregators() : 1),
      key_(key),
      mine_{plan_->mine.begin(), plan_->mine.end()},
      own_(channel.own(cut_.aggregators())) {}

void Transfer::begin_far(Direction direction, std::byte* base) {
  if (channel_.far_ranks().empty()) return;
  far_ = std::make_shared<FarExchange>(channel_, pool_, plan_, cut_, sequence_, direction, base);
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

/// Waits until `done` returns true. Moves the messages between nodes on meanwhile, since `done` may depend on
/// them.
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

/// Queues `job` to run once `ready` returns true. Without threads the caller runs the job itself. It waits
/// for `ready` first, and serves other ranks meanwhile.
template <typename Ready, typename Job>
void Transfer::submit(executor::Key key, int aggregator, const Ready& ready, const char* what, Job job) {
  executor::Threads& threads = channel_.group().threads();
  if (threads.waiting_threads() == 0) wait(aggregator, ready, what);
  threads.submit(key, [&pool = pool_, seat = channel_.seat(aggregator), ready, job = std::move(job)] {
    pool.wait(seat, ready);
    job();
  });
}

/// True if the stripe is free, and also the stripe `more` places behind it. Stripes may become free out of
/// order.
bool Transfer::may_pack(const Stripe& stripe, int more) const {
  const int seat = channel_.seat(stripe.aggregator);
  return pool_.is_open(seat, stripe.number) &&
         (more == 0 || pool_.is_open(seat, stripe.number + static_cast<std::uint64_t>(more)));
}

void Transfer::write(const std::byte* base, const WriteBytes& writer, const std::shared_ptr<Tally>& tally,
                     Held* held) {
  const bool later = held != nullptr;
  begin_far(Direction::write, nullptr);
  std::vector<Stripe> stripes;
  for (std::int64_t round = 0; round < cut_.rounds(); ++round) {
    cut_.stripes(round, stripes);
    for (const Stripe& stripe : stripes) {
      if (channel_.is_near(stripe.aggregator))
        pack(base, stripe, held);
      else
        capture_far(base, stripe, held);
    }
    if (own_ && round < cut_.count(*own_)) queue_write(cut_.stripe(*own_, round), writer, tally);
  }
  if (far_ != nullptr) let_go(held);
  end_far(later);
}

void Transfer::pack(const std::byte* base, const Stripe& stripe, Held* held) {
  const int seat = channel_.seat(stripe.aggregator);
  if (mine_.meets(stripe)) {
    if (!may_pack(stripe, 0)) {
      let_go(held);
      // One sleep waits for several stripes.
      wait(
          stripe.aggregator, [&] { return may_pack(stripe, pool_.slots() / 4); },
          "free memory for arrays (TAILRACE_IO_BUFFER): storage is slower than the program's output");
    }
    plan_->mine.gather(base, stripe.begin, stripe.end, pool_.data(seat, stripe.number));
  }
  pool_.pass(seat, Sequence::now, pool_.me(), stripe.number);
}

void Transfer::capture_far(const std::byte* base, const Stripe& stripe, Held* held) {
  // If a thread sends the pieces, up to TAILRACE_IO_BUFFER bytes may be captured ahead; if the caller sends
  // them, one stripe.
  Bytes most = channel_.thread() == nullptr ? pool_.stripe() : channel_.group().settings().io_buffer;
  if (!far_->capture(base, stripe)) most = 0;
  if (far_->captured() <= most) return;
  let_go(held);
  settle([&] { return far_->captured() <= most; }, "other nodes to take parts of an array");
}

void Transfer::queue_write(const Stripe& stripe, const WriteBytes& writer,
                           const std::shared_ptr<Tally>& tally) {
  const int seat = channel_.seat(stripe.aggregator);
  const auto is_full = [&pool = pool_, seat, number = stripe.number] {
    return pool.all_passed(seat, Sequence::now, number);
  };
  const auto write = [&pool = pool_, seat, stripe, writer, tally, plan = plan_, position = cut_.position()] {
    plan->unowned.clear(stripe.begin, stripe.end, pool.data(seat, stripe.number));
    // Bytes behind a failure are not written: the file ends where it was still right.
    if (tally->status().is_ok()) {
      const std::span<const std::byte> bytes(pool.data(seat, stripe.number),
                                             static_cast<std::size_t>(stripe.end - stripe.begin));
      const Status written = guarded([&] { return writer(bytes, position + stripe.begin); });
      if (!written.is_ok()) tally->stop_at(stripe.begin, written);
    }
    pool.free(seat, stripe.number);
  };
  submit(key_, stripe.aggregator, is_full, "the parts of an array", write);
}

void Transfer::read(std::byte* base, const ReadBytes& reader, const std::shared_ptr<Tally>& tally,
                    bool later) {
  // Bytes from another node arrive in MPI calls. After this call has returned, only a thread can make them.
  later = later && (channel_.far_ranks().empty() || channel_.thread() != nullptr);
  sequence_ = later ? Sequence::later : Sequence::now;
  begin_far(Direction::read, base);
  executor::Threads& threads = channel_.group().threads();
  // Threads read ahead as far as there are stripes. Without threads the caller loads each stripe when it
  // comes to it.
  const auto ahead = threads.waiting_threads() == 0 ? 1 : std::int64_t{pool_.slots()};
  std::int64_t queued = 0;
  std::vector<Stripe> stripes;
  for (std::int64_t round = 0; round < cut_.rounds(); ++round) {
    if (own_) {
      for (; queued < std::min(round + ahead, cut_.count(*own_)); ++queued)
        queue_load(cut_.stripe(*own_, queued), reader, tally);
    }
    cut_.stripes(round, stripes);
    for (const Stripe& stripe : stripes) {
      if (channel_.is_near(stripe.aggregator)) take(base, stripe);
    }
  }
  end_far(later);
}

void Transfer::queue_load(const Stripe& stripe, const ReadBytes& reader,
                          const std::shared_ptr<Tally>& tally) {
  const int seat = channel_.seat(stripe.aggregator);
  const auto is_open = [&pool = pool_, seat, number = stripe.number] { return pool.is_open(seat, number); };
  const auto load = [&pool = pool_, seat, stripe, reader, tally, position = cut_.position(),
                     sequence = sequence_] {
    Bytes got = 0;
    const Bytes wanted = stripe.end - stripe.begin;
    if (tally->end() >= stripe.begin) {
      const std::span<std::byte> bytes(pool.data(seat, stripe.number), static_cast<std::size_t>(wanted));
      const Result<Bytes> read = guarded([&] { return reader(bytes, position + stripe.begin); });
      if (read.is_ok()) got = *read;
      if (got < wanted) tally->stop_at(stripe.begin + got, read.status());
    }
    pool.set_loaded(seat, sequence, stripe.number, got);
  };
  submit(key_, stripe.aggregator, is_open, "the other ranks to take their parts of an array", load);
}

void Transfer::take(std::byte* base, const Stripe& stripe) {
  const int seat = channel_.seat(stripe.aggregator);
  const bool meets = mine_.meets(stripe);
  // A rank without a part in the stripe passes it without waiting.
  const auto is_ready = [&pool = pool_, seat, meets, number = stripe.number] {
    return !meets || pool.is_loaded(seat, number);
  };
  const auto deliver = [&pool = pool_, seat, meets, stripe, base, plan = plan_, sequence = sequence_] {
    if (meets) {
      const Bytes end = stripe.begin + pool.loaded_bytes(seat, stripe.number);
      plan->mine.scatter(base, stripe.begin, end, pool.data(seat, stripe.number));
    }
    pool.pass(seat, sequence, pool.me(), stripe.number);
  };
  const char* const what = "storage to read an array";
  if (sequence_ == Sequence::later) return submit(channel_.key(), stripe.aggregator, is_ready, what, deliver);
  wait(stripe.aggregator, is_ready, what);
  deliver();
}

}  // namespace tailrace::exchange
