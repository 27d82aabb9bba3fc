// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>

#include "base/bytes.hpp"

namespace tailrace::comm {

class Line;

/// Messages among the ranks of a line of which each knows only to whom it sends. A rank tells the sender of
/// each message that it has arrived. Once all ranks have heard that of all they have sent, an agreement tells
/// every rank that it has what there is for it (Hoefler, Siebert, Lumsdaine: Scalable communication protocols
/// for dynamic sparse data exchange, PPoPP 2010). So a rank sends no message to ranks for which it has
/// nothing. A state machine without a wait in it, like Agreements; Line::exchange is what waits.
class SparseExchanges {
 public:
  static constexpr std::uint32_t exchange_message = 9;
  static constexpr std::uint32_t arrival_message = 10;

  explicit SparseExchanges(Line& line);

  /// Local. Starts the next exchange and returns its number; `messages`: by destination.
  std::uint64_t post(std::map<int, ByteVector> messages);
  /// All that this rank has sent has arrived.
  [[nodiscard]] bool has_arrived(std::uint64_t number) const { return unheard_.count(number) == 0; }
  /// What has come, by source; once an agreement has followed has_arrived() on all ranks.
  std::map<int, ByteVector> take(std::uint64_t number);

 private:
  void on_message(int source, Unpacker& in);
  void on_arrival(Unpacker& in);

  Line& line_;
  std::uint64_t next_ = 0;
  std::uint64_t taken_ = 0;                        // exchanges with smaller numbers are over
  std::map<std::uint64_t, std::int64_t> unheard_;  // messages of which the arrival was not told yet
  std::map<std::uint64_t, std::map<int, ByteVector>> arrived_;
};

}  // namespace tailrace::comm
