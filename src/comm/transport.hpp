// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "comm/doorbell.hpp"

namespace tailrace::comm {

/// Control messages are small and taken from anyone as they come. Data messages and large broadcasts stay
/// with their sender until the receiver has room for them and asks; neither waits for the other.
enum class Channel : std::uint8_t { control, data, broadcast };

/// Tells the messages of different lines apart; see line.hpp for how numbers are given.
using LineNumber = std::uint64_t;

struct Envelope {
  int source = 0;
  LineNumber line = 0;
  ByteVector bytes;
};

/// Ordered messages between the ranks of one session, each for a line. Nothing here blocks. Used by one
/// thread at a time: the Switchboard sees to that.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Messages of one sender to one receiver on one line and channel arrive in the order sent. Sending to
  /// oneself works.
  virtual void send(int destination, LineNumber line, Channel channel, ByteVector bytes) = 0;
  /// Moves pending sends and receives on; true if something completed.
  virtual bool progress() = 0;
  /// The next control message that has arrived whole.
  virtual std::optional<Envelope> receive() = 0;
  /// The next message of `source` on `line` and `channel`, which is not Channel::control, that has arrived
  /// whole; asking allows it to arrive.
  virtual std::optional<ByteVector> receive_from(int source, LineNumber line, Channel channel) = 0;
  /// Bytes handed to send() for `line` and `channel` that have not left yet.
  [[nodiscard]] virtual Bytes unsent(LineNumber line, Channel channel) const = 0;
  /// All that was ever handed to send() has left: empty messages and those of closed lines too.
  [[nodiscard]] virtual bool all_sent() const = 0;
  /// Nanoseconds of a clock that only goes forward; simulated time in the simulated world. Any thread.
  [[nodiscard]] virtual std::int64_t now() const = 0;
  /// Gives the core away: for about so long, or less if something may have moved; 0: for a moment. `what`:
  /// what the caller waits for.
  virtual void idle(std::int64_t nanoseconds, const std::string& what);
  /// Sleeps until `bell` was rung after `ticket`, or `limit` has passed; gives the ticket back. Any thread.
  virtual void park(Doorbell& bell, std::uint32_t ticket, std::chrono::nanoseconds limit) {
    bell.park(ticket, limit);
  }
  /// Comes between two steps on memory that ranks share: the simulated world lets other ranks run here.
  virtual void let_others_run() {}
};

/// Gives the core of the calling thread away for so long; 0: to whoever is ready to run.
void give_core_away(std::int64_t nanoseconds);

}  // namespace tailrace::comm
