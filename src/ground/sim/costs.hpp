// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/bytes.hpp"

namespace tailrace::sim {

/// A point or span of simulated time.
using Nanoseconds = std::int64_t;

/// What a simulated machine costs. The defaults stand for a present-day cluster; docs/methods.md ("Beyond
/// this machine") says where each number comes from. Messages follow LogGP (Alexandrov et al., SPAA 1995):
/// a latency, a gap for each message, and a time for each byte.
struct Costs {
  static constexpr double no_limit = std::numeric_limits<double>::infinity();

  /// If true, turns of programs and messages take random times, and storage adds a random part of its
  /// latencies: tests of what may happen. If false, everything takes the stated times: tests of what it
  /// costs.
  bool is_random = false;

  // Messages.
  Nanoseconds message_latency = 2'000;  // from the sender's adapter to that of the receiver
  Nanoseconds message_gap = 300;  // an adapter, and the rank behind it, deal with one message in this time
  double link_bytes_per_second = 25e9;      // of one message
  double adapter_bytes_per_second = 100e9;  // of all messages of a rank, in each direction
  Bytes eager = 16 << 10;     // larger data messages stay with the sender until they are asked for
  Nanoseconds add_gap = 500;  // a process makes one add to its counters in this time; it does nothing for it

  // Ranks.
  Nanoseconds turn = 300;                   // of a rank's program, and of the begin and end of a job
  double encoded_bytes_per_second = 1.5e9;  // of values, on each thread of a server

  // Storage.
  double process_bytes_per_second = 1e9;    // of one process
  double storage_bytes_per_second = 240e9;  // of all processes
  Nanoseconds call_latency = 100'000;       // of a write or an open, beside its bytes
  Nanoseconds sync_latency = 1'000'000;     // of fsync

  // Miniatures: where memory would not hold the bytes, each of them stands for several.
  double stands_for = 1;  // of bytes in data messages, of values that are encoded, and of files named below
  std::string of_file = {};  // the data file whose bytes do so; indexes and lists have their own size

  [[nodiscard]] Bytes in_full(Bytes miniature) const {
    return static_cast<Bytes>(static_cast<double>(miniature) * stands_for);
  }
};

/// Returns random costs of storage alone: all processes share one disk of this rate, and each of its calls
/// takes up to `latency`.
Costs slow_disk(double bytes_per_second, Nanoseconds latency = 100'000);

/// Returns the time in which `bytes` pass at a rate.
constexpr Nanoseconds time_for(Bytes bytes, double bytes_per_second) {
  return static_cast<Nanoseconds>(static_cast<double>(bytes) / bytes_per_second * 1e9);
}

/// The spans of time in which something was busy.
class BusyTime {
 public:
  /// Adds a span. Joining is cheap if spans come in their order.
  void add(Nanoseconds begin, Nanoseconds end);
  /// Returns how long anything of `all` was busy between `from` and `to`.
  [[nodiscard]] static Nanoseconds of(std::initializer_list<const BusyTime*> all, Nanoseconds from,
                                      Nanoseconds to);

 private:
  std::vector<std::pair<Nanoseconds, Nanoseconds>> spans_;
};

}  // namespace tailrace::sim
