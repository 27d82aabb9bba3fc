// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/comm/doorbell.hpp"

namespace tailrace::comm {

/// Control messages are small and taken from anyone as they come, and so are requests and their answers,
/// which may be taken by another thread. Data messages and large broadcasts stay with their sender until the
/// receiver has room for them and asks. No kind waits for another.
enum class Traffic : std::uint8_t { control, request, data, broadcast };
/// Returns true if messages of that kind are taken from anyone as they come.
constexpr bool is_from_anyone(Traffic traffic) {
  return traffic == Traffic::control || traffic == Traffic::request;
}

/// Tells the messages of different lines apart. line.hpp says how numbers are given.
using LineNumber = std::uint64_t;

struct Envelope {
  int source = 0;
  LineNumber line = 0;
  ByteVector bytes;
};

/// Ordered messages between the ranks of one session, each for a line. No call blocks. One thread at a time
/// uses it: SharedTransport sees to that.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  /// Messages of one sender to one receiver in one line and kind of traffic arrive in the order sent. A rank
  /// can send to itself.
  virtual void send(int destination, LineNumber line, Traffic traffic, ByteVector bytes) = 0;
  /// Moves pending sends and receives on. Returns true if something completed.
  virtual bool progress() = 0;
  /// Returns the next control message that has arrived whole.
  virtual std::optional<Envelope> receive() = 0;
  /// Returns the next request, or answer to one, that has arrived whole.
  virtual std::optional<Envelope> receive_request() = 0;
  /// Returns the next message of `source` on `line` and `traffic`, data or a broadcast, if it has arrived
  /// whole. Asking allows it to arrive.
  virtual std::optional<ByteVector> receive_from(int source, LineNumber line, Traffic traffic) = 0;
  /// Returns the bytes handed to send() for `line` and `traffic` that have not left yet.
  [[nodiscard]] virtual Bytes unsent(LineNumber line, Traffic traffic) const = 0;
  /// Returns true if everything ever handed to send() has left, including empty messages and those of closed
  /// lines.
  [[nodiscard]] virtual bool all_sent() const = 0;
  /// Memory of messages that are over is kept for others, at most `most` bytes of it; none before this call.
  virtual void keep_memory(Bytes /*most*/) {}
  /// Returns memory for a message of `size` bytes, with any content.
  [[nodiscard]] virtual ByteVector memory(Bytes size) { return ByteVector(static_cast<std::size_t>(size)); }
  /// Takes the memory of a message that was received, and is over.
  virtual void give_back(ByteVector /*bytes*/) {}
  /// Returns the nanoseconds of a clock that only goes forward; simulated time in the simulated world. Any
  /// thread.
  [[nodiscard]] virtual std::int64_t now() const;
  /// Gives the core away for about `nanoseconds`, or less if something may have moved; 0 means for a moment.
  /// `what` names what the caller waits for.
  virtual void idle(std::int64_t nanoseconds, const std::string& what);
  /// Sleeps until `bell` was rung after `ticket`, or `limit` has passed. Gives the ticket back. Any thread.
  virtual void park(Doorbell& bell, std::uint32_t ticket, std::chrono::nanoseconds limit) {
    bell.park(ticket, limit);
  }
  /// Called between two steps on memory that ranks share: the simulated world lets other ranks run here.
  virtual void let_others_run() {}
};

/// The transport of a process, locked: threads that exchange data messages and answer requests use it beside
/// the main thread.
class SharedTransport final : public Transport {
 public:
  /// Before this call only the clock and idle() work.
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

 private:
  Transport* transport_ = nullptr;
  mutable std::mutex mutex_;
};

}  // namespace tailrace::comm
