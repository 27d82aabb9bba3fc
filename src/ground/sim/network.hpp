// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "ground/comm/transport.hpp"
#include "ground/sim/scheduler.hpp"

namespace tailrace::sim {

class Network;

/// A rank's program, as the network sees it. It lets other programs run wherever a real program may lose its
/// core.
class Waiter {
 public:
  virtual ~Waiter() = default;
  /// Called when a message arrives at the rank or leaves it.
  virtual void look() = 0;
  virtual void idle(Nanoseconds nanoseconds, const std::string& what) = 0;
  virtual void park(comm::Doorbell& bell, std::uint32_t ticket, Nanoseconds limit) = 0;
  virtual void let_others_run() = 0;
};

/// One rank's end of the simulated network.
///
/// Messages of one pair of ranks and one kind of traffic arrive in order, each after its own delay. Between
/// different pairs or kinds of traffic there is no order. The order holds over all lines, although the
/// library does not rely on that. A small message leaves its sender at once. A large data message stays with
/// its sender until the receiver asks for it, as in MPI's rendezvous protocol. Nothing is lost or doubled, as
/// MPI promises.
///
/// With Scheduler::costs() each message occupies the adapter of its sender, and then that of its receiver,
/// one after another, and takes each of their ranks some time: a rank that gets a message from each of 4,096
/// others is busy.
class Port final : public comm::Transport {
 public:
  Port(Network& network, int rank) : network_(network), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  void send(int destination, comm::LineNumber line, comm::Traffic traffic, ByteVector bytes) override;
  bool progress() override;
  std::optional<comm::Envelope> receive() override { return take_first(control_); }
  std::optional<comm::Envelope> receive_request() override { return take_first(requests_); }
  std::optional<ByteVector> receive_from(int source, comm::LineNumber line, comm::Traffic traffic) override;
  [[nodiscard]] Bytes unsent(comm::LineNumber line, comm::Traffic traffic) const override;
  [[nodiscard]] bool all_sent() const override { return leaving_ == 0; }
  [[nodiscard]] std::int64_t now() const override;
  /// Return how many messages, and how many bytes, it has sent to other ranks so far.
  [[nodiscard]] std::int64_t messages() const { return messages_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  /// When its adapter was busy with messages that leave, and with messages that come.
  struct Carrying {
    BusyTime sending, receiving;
  };
  /// Return this for data messages, and for all others.
  [[nodiscard]] const Carrying& data() const { return carrying_[1]; }
  [[nodiscard]] const Carrying& others() const { return carrying_[0]; }
  /// Returns when its rank sent and took messages.
  [[nodiscard]] const BusyTime& handling() const { return handling_; }
  /// Returns how long the messages that were sent and taken since its last call take the rank. The rank
  /// spends this time from now on.
  Nanoseconds take_handling();
  /// Sets the clock of its node ahead by `offset`.
  void set_clock(Nanoseconds offset) { clock_offset_ = offset; }

  void idle(Nanoseconds nanoseconds, const std::string& what) override { waiter_->idle(nanoseconds, what); }
  void park(comm::Doorbell& bell, std::uint32_t ticket, std::chrono::nanoseconds limit) override {
    waiter_->park(bell, ticket, limit.count());
  }
  void let_others_run() override { waiter_->let_others_run(); }
  void connect(Waiter& waiter) { waiter_ = &waiter; }
  /// True if something arrived or left since the last progress().
  [[nodiscard]] bool has_news() const { return news_; }

 private:
  friend class Network;
  using Way = std::pair<comm::LineNumber, comm::Traffic>;
  struct Incoming {
    ByteVector bytes;
    Port* sender = nullptr;
    Way way;
    Bytes held = 0;  // bytes that the sender keeps until the transfer ends
    bool asked = false;
    bool here = false;  // all its bytes are here
  };
  static constexpr Bytes eager = 1024;  // data messages up to this size leave at once, without costs
  std::optional<comm::Envelope> take_first(std::deque<comm::Envelope>& from);
  void arrive(int source, const std::shared_ptr<Incoming>& message);
  void ask_for(int source, const std::shared_ptr<Incoming>& message);
  void hear();
  void has_left(const Way& way, Bytes bytes);
  static std::tuple<int, comm::LineNumber, comm::Traffic> inbox(int source, const Way& way);

  Network& network_;
  int rank_;
  Nanoseconds clock_offset_ = 0;
  std::map<Way, Bytes> unsent_;
  std::int64_t leaving_ = 0;  // messages that have not left yet
  std::int64_t messages_ = 0;
  Bytes bytes_ = 0;
  Carrying carrying_[2];  // other messages, data messages
  BusyTime handling_;
  std::int64_t handled_ = 0;        // messages that were sent and taken since the last take_handling()
  Nanoseconds sends_until_ = 0;     // its adapter is busy until then
  Nanoseconds receives_until_ = 0;  // likewise
  bool news_ = false;
  bool departed_ = false;  // a send completed since the last progress()
  std::deque<comm::Envelope> control_;
  std::deque<comm::Envelope> requests_;
  // By source, tag and traffic. As with MPI, messages of two lines with the same tag are not told apart.
  std::map<std::tuple<int, comm::LineNumber, comm::Traffic>, std::deque<std::shared_ptr<Incoming>>> data_;
  Waiter* waiter_ = nullptr;
};

class Network {
 public:
  Network(Scheduler& scheduler, int size);

  [[nodiscard]] Port& port(int rank) { return *ports_[static_cast<std::size_t>(rank)]; }
  /// Called for each message that a rank sends, also to itself.
  using OnSend =
      std::function<void(int source, int destination, comm::Traffic traffic, const ByteVector& bytes)>;
  void on_send(OnSend hook) { on_send_ = std::move(hook); }

 private:
  friend class Port;
  using Event = std::function<void()>;
  [[nodiscard]] Bytes in_full(comm::Traffic traffic, Bytes bytes) const;
  [[nodiscard]] bool is_eager(comm::Traffic traffic, Bytes bytes) const;
  Nanoseconds in_order(int source, int destination, comm::Traffic traffic, Nanoseconds arrival);
  void carry(Port& from, Port& to, comm::Traffic traffic, Bytes bytes, Event left, Event arrived);

  Scheduler& scheduler_;
  OnSend on_send_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::map<std::tuple<int, int, comm::Traffic>, Nanoseconds> last_arrival_;
};

}  // namespace tailrace::sim
