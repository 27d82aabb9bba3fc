// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/comm/doorbell.hpp"

namespace tailrace::comm {

/// The kinds of messages. None waits for another. Control messages are small; a receiver takes them from any
/// rank as they arrive. The same holds for requests and their answers, which another thread may take. Data
/// messages and large broadcasts stay with their sender until the receiver has room for them and asks.
enum class Traffic : std::uint8_t { control, request, data, broadcast };
/// True if messages of this kind are taken from any rank as they arrive.
constexpr bool is_from_anyone(Traffic traffic) {
  return traffic == Traffic::control || traffic == Traffic::request;
}

/// The number of a line, which tells the messages of different lines apart. line_numbers.hpp says how numbers
/// are made.
using LineNumber = std::uint64_t;

struct Envelope {
  int source = 0;
  LineNumber line = 0;
  ByteVector bytes;
};

/// Carries messages in order between the ranks of one session, each message for one line. No call blocks,
/// except idle() and park(). Only one thread at a time may use it: SharedTransport takes care of that.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  /// Sends a message. Messages from one sender to one receiver, of one line and one kind of traffic, arrive
  /// in the order sent. A rank can send to itself.
  virtual void send(int destination, LineNumber line, Traffic traffic, ByteVector bytes) = 0;
  /// Moves pending sends and receives on. Returns true if something completed.
  virtual bool progress() = 0;
  /// Returns the next control message that has arrived completely.
  virtual std::optional<Envelope> receive() = 0;
  /// Returns the next request, or answer to a request, that has arrived completely.
  virtual std::optional<Envelope> receive_request() = 0;
  /// Returns the next message of `source` on `line`, if it has arrived completely. `traffic` is data or
  /// broadcast. The message can arrive only after the receiver has asked for it once.
  virtual std::optional<ByteVector> receive_from(int source, LineNumber line, Traffic traffic) = 0;
  /// Returns how many bytes handed to send() for `line` and `traffic` have not left yet.
  [[nodiscard]] virtual Bytes unsent(LineNumber line, Traffic traffic) const = 0;
  /// True if everything ever handed to send() has left, including empty messages and messages of closed
  /// lines.
  [[nodiscard]] virtual bool all_sent() const = 0;
  /// Lets the transport keep at most `most` bytes of memory of messages that are over, for later messages.
  /// Before this call it keeps none.
  virtual void keep_memory(Bytes /*most*/) {}
  /// Returns memory for a message of `size` bytes, with any content.
  [[nodiscard]] virtual ByteVector memory(Bytes size) { return ByteVector(static_cast<std::size_t>(size)); }
  /// Takes back the memory of a message that was received and is not needed any more.
  virtual void give_back(ByteVector /*bytes*/) {}
  /// Returns the nanoseconds of a clock that never goes back; in the simulated world, of simulated time. Any
  /// thread.
  [[nodiscard]] virtual std::int64_t now() const;
  /// Gives the core away for about `nanoseconds`, or for less if something may have moved; 0 means for a
  /// moment. `what` names what the caller waits for.
  virtual void idle(std::int64_t nanoseconds, const std::string& what);
  /// Sleeps until `bell` was rung after `ticket`, or `limit` has passed. Gives the ticket back. Any thread.
  virtual void park(Doorbell& bell, std::uint32_t ticket, std::chrono::nanoseconds limit) {
    bell.park(ticket, limit);
  }
  /// Called between two steps on memory that ranks share. The simulated world lets other ranks run here.
  virtual void let_others_run() {}
  /// Runs `call`, which calls MPI beside the transport, while no other thread uses the transport. `call` must
  /// not use it either.
  virtual void exclusively(const std::function<void()>& call) { call(); }
};

/// The transport of a process, with a lock: threads that exchange data messages and answer requests use it
/// besides the main thread.
class SharedTransport final : public Transport {
 public:
  /// Sets the transport. Before this call only the clock and idle() work.
  void connect(Transport& transport) { transport_ = &transport; }
  [[nodiscard]] bool is_connected() const { return transport_ != nullptr; }

  [[nodiscard]] int rank() const override { return transport_->rank(); }
  void send(int destination, LineNumber line, Traffic traffic, ByteVector bytes) override;
  bool progress() override;
  std::optional<Envelope> receive() override;
  std::optional<Envelope> receive_request() override;
  std::optional<ByteVector> receive_from(int source, LineNumber line, Traffic traffic) override;
  [[nodiscard]] Bytes unsent(LineNumber line, Traffic traffic) const override;
  [[nodiscard]] bool all_sent() const override;
  void keep_memory(Bytes most) override;
  [[nodiscard]] ByteVector memory(Bytes size) override;
  void give_back(ByteVector bytes) override;
  [[nodiscard]] std::int64_t now() const override;
  void idle(std::int64_t nanoseconds, const std::string& what) override;
  void park(Doorbell& bell, std::uint32_t ticket, std::chrono::nanoseconds limit) override {
    transport_->park(bell, ticket, limit);
  }
  void let_others_run() override { transport_->let_others_run(); }
  void exclusively(const std::function<void()>& call) override;

 private:
  Transport* transport_ = nullptr;
  mutable std::mutex mutex_;
};

}  // namespace tailrace::comm
