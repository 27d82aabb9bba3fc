// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>

#include "ground/base/bytes.hpp"

namespace tailrace::comm {

class Line;

/// Exchanges messages among the ranks of a line, where each rank knows only to which ranks it sends. A rank
/// sends nothing to ranks for which it has no message. The receiver of a message tells the sender that it has
/// arrived. Each rank votes once all its own messages have arrived. The agreement then tells every rank that
/// it has received all messages for it (Hoefler, Siebert, Lumsdaine: Scalable communication protocols for
/// dynamic sparse data exchange, PPoPP 2010). Like Agreements, this is a state machine that never waits;
/// Line::exchange waits.
class SparseExchanges {
 public:
  static constexpr std::uint32_t exchange_message = 9;
  static constexpr std::uint32_t arrival_message = 10;

  explicit SparseExchanges(Line& line);

  /// Local. Starts the next exchange and returns its number. `messages` are listed by destination.
  std::uint64_t post(std::map<int, ByteVector> messages);
  /// True once all messages that this rank has sent in this exchange have arrived.
  [[nodiscard]] bool has_arrived(std::uint64_t number) const { return unheard_.count(number) == 0; }
  /// Returns the messages for this rank, by source. Call it only after an agreement to which each rank came
  /// once has_arrived() was true on it.
  std::map<int, ByteVector> take(std::uint64_t number);

 private:
  void on_message(int source, Unpacker& in);
  void on_arrival(Unpacker& in);

  Line& line_;
  std::uint64_t next_ = 0;
  std::uint64_t taken_ = 0;  // exchanges with smaller numbers are over
  /// ^Number of the exchange -> messages of this rank that have not been reported as arrived.
  std::map<std::uint64_t, std::int64_t> unheard_;
  std::map<std::uint64_t, std::map<int, ByteVector>> arrived_;
};

}  // namespace tailrace::comm
