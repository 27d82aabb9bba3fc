// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace tailrace::comm {

/// Control messages are small and taken from anyone as they come; data messages may be large and are
/// taken from one source when the receiver has room for them.
enum class Channel { control, data };

struct Envelope {
  int source = 0;
  ByteVector bytes;
};

/// Ordered messages between the ranks of one session. Nothing here blocks: a rank that waits does so in
/// its own loop around progress() and receive(). Used by one thread.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Messages of one sender to one receiver on one channel arrive in the order sent. Sending to oneself
  /// works.
  virtual void send(int destination, Channel channel, ByteVector bytes) = 0;
  /// Moves pending sends and receives on; true if something completed.
  virtual bool progress() = 0;
  /// The next control message that has arrived whole.
  virtual std::optional<Envelope> receive() = 0;
  /// The next data message of `source` that has arrived whole; asking allows it to arrive.
  virtual std::optional<ByteVector> receive_data(int source) = 0;
  /// Bytes handed to send() that have not left yet.
  [[nodiscard]] virtual Bytes unsent() const = 0;
  /// Nanoseconds of a clock that only goes forward; simulated time in the simulated world.
  [[nodiscard]] virtual std::int64_t now() const = 0;
};

}  // namespace tailrace::comm
