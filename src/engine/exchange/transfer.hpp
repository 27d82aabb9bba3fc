// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/arrays/array.hpp"
#include "engine/exchange/far_exchange.hpp"

namespace tailrace::exchange {

/// The progress of one array call on one aggregator. The call's tasks fill it in.
class Tally {
 public:
  /// Notes that storage took or gave only the bytes before `end` (counted from the array's first).
  void stop_at(Bytes end, const Status& why);
  [[nodiscard]] Bytes end() const {
    const std::lock_guard lock(mutex_);
    return end_;
  }
  [[nodiscard]] Status status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  Bytes end_ = std::numeric_limits<Bytes>::max();
  Status status_;
};

/// The aggregator calls a writer for each stripe to write, and a reader for each stripe to read, with the
/// bytes and their offset in the file.
using WriteBytes = std::function<Status(std::span<const std::byte>, Bytes offset)>;
using ReadBytes = std::function<Result<Bytes>(std::span<std::byte>, Bytes offset)>;

/// A rank holds it while it captures. Meanwhile no further task begins that would take the cores of the
/// capture.
using Held = std::optional<executor::Threads::Hold>;

/// One array on its way between the ranks' memory and a file. Every rank of the group makes the same transfer
/// and goes through its stripes in the same order. Nobody skips a stripe, whatever failed.
class Transfer {
 public:
  /// Deals out the next stripes of `ring`: to all aggregators if it is `parallel`, otherwise to the I/O rank
  /// alone. The array begins at `position`. `key` is the key of the tasks that read and write the file.
  Transfer(Channel& channel, Ring& ring, std::shared_ptr<const ArrayPlan> plan, Bytes position, bool parallel,
           executor::Key key);

  /// Captures the array at `base`. Aggregators queue tasks that pass its stripes to `writer`. With `held`,
  /// pieces for other nodes may be sent later, if a thread can send them; the call lets `held` go before it
  /// waits for anything.
  void write(const std::byte* base, const WriteBytes& writer, const std::shared_ptr<Tally>& tally,
             Held* held);
  /// Copies the bytes from `reader` into the array at `base`. With `later`, tasks copy them after the call
  /// has returned, unless bytes of other nodes need MPI calls and no thread may make them.
  void read(std::byte* base, const ReadBytes& reader, const std::shared_ptr<Tally>& tally, bool later);

 private:
  [[nodiscard]] bool may_pack(const Stripe& stripe, int more) const;
  void begin_far(Direction direction, std::byte* base);
  void end_far(bool later);
  template <typename Ready>
  void wait(int aggregator, const Ready& ready, const char* what);
  void settle(const std::function<bool()>& done, const char* what);
  template <typename Ready, typename Job>
  void submit(executor::Key key, int aggregator, const Ready& ready, const char* what, Job job);

  void pack(const std::byte* base, const Stripe& stripe, Held* held);
  void capture_far(const std::byte* base, const Stripe& stripe, Held* held);
  void queue_write(const Stripe& stripe, const WriteBytes& writer, const std::shared_ptr<Tally>& tally);
  void queue_load(const Stripe& stripe, const ReadBytes& reader, const std::shared_ptr<Tally>& tally);
  void take(std::byte* base, const Stripe& stripe);

  Channel& channel_;
  node::StripePool& pool_;
  std::shared_ptr<const ArrayPlan> plan_;
  StripeCut cut_;
  executor::Key key_;
  node::StripePool::Sequence sequence_ = node::StripePool::Sequence::now;
  Reach mine_;
  std::optional<int> own_;            // the caller's aggregator number
  std::shared_ptr<FarExchange> far_;  // nullptr: all ranks are on one node
};

}  // namespace tailrace::exchange
