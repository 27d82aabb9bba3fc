// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "comm/transport.hpp"
#include "sim/scheduler.hpp"

namespace tailrace::sim {

class Network;

/// One rank's end of the simulated network.
///
/// The model: messages of one pair on one channel arrive in order, each after a delay of its own; between
/// pairs and channels there is no order. The order holds over all lines, though nobody relies on that. A
/// small message leaves its sender at once. A large data message stays with its sender until the receiver
/// asks for it, as MPI's rendezvous protocol does. Nothing is lost or doubled: MPI promises that.
class Port final : public comm::Transport {
 public:
  Port(Network& network, int rank, Nanoseconds clock_offset)
      : network_(network), rank_(rank), clock_offset_(clock_offset) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override;
  void send(int destination, comm::LineNumber line, comm::Channel channel, ByteVector bytes) override;
  bool progress() override;
  std::optional<comm::Envelope> receive() override;
  std::optional<ByteVector> receive_from(int source, comm::LineNumber line, comm::Channel channel) override;
  [[nodiscard]] Bytes unsent(comm::LineNumber line, comm::Channel channel) const override;
  [[nodiscard]] bool all_sent() const override { return leaving_ == 0; }
  [[nodiscard]] std::int64_t now() const override;

  void idle(Nanoseconds nanoseconds, const std::string& what) override { on_idle_(nanoseconds, what); }
  [[nodiscard]] bool has_own_thread() const override { return false; }
  /// Called where the rank has nothing to do: lets the others run.
  void on_idle(std::function<void(Nanoseconds, const std::string&)> hook) { on_idle_ = std::move(hook); }
  /// Something arrived or left since the last progress().
  [[nodiscard]] bool has_news() const { return news_; }
  /// Called at each arrival and departure.
  void on_news(std::function<void()> hook) { on_news_ = std::move(hook); }

 private:
  friend class Network;
  using Way = std::pair<comm::LineNumber, comm::Channel>;
  struct Incoming {
    ByteVector bytes;
    Port* sender = nullptr;
    Way way;
    Bytes held = 0;  // bytes that stay with the sender until the transfer is over
    bool asked = false;
    bool here = false;
  };
  void hear();
  void has_left(const Way& way, Bytes bytes);
  static std::tuple<int, comm::LineNumber, comm::Channel> inbox(int source, const Way& way);

  Network& network_;
  int rank_;
  Nanoseconds clock_offset_;
  std::map<Way, Bytes> unsent_;
  std::int64_t leaving_ = 0;  // messages that have not left yet
  bool news_ = false;
  bool departed_ = false;  // a send completed since the last progress()
  std::deque<comm::Envelope> control_;
  // By source, tag and channel: as with MPI, lines of the same tag are not told apart.
  std::map<std::tuple<int, comm::LineNumber, comm::Channel>, std::deque<std::shared_ptr<Incoming>>> data_;
  std::function<void()> on_news_;
  std::function<void(Nanoseconds, const std::string&)> on_idle_;
};

class Network {
 public:
  /// `clock_offset[rank]`: how far the clock of the rank's node is ahead.
  Network(Scheduler& scheduler, const std::vector<Nanoseconds>& clock_offset);

  [[nodiscard]] Port& port(int rank) { return *ports_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int size() const { return static_cast<int>(ports_.size()); }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] std::int64_t messages() const { return messages_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  friend class Port;
  static constexpr Bytes eager = 1024;  // data messages up to this size leave at once
  Nanoseconds arrival_delay(int source, int destination, comm::Channel channel);
  void deliver_control(int source, int destination, comm::LineNumber line, ByteVector bytes);
  void deliver_data(int source, int destination, const Port::Way& way, ByteVector bytes);
  void leave_later(Port& sender, const Port::Way& way, Bytes bytes);

  Scheduler& scheduler_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::map<std::tuple<int, int, comm::Channel>, Nanoseconds> last_arrival_;
  std::int64_t messages_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace tailrace::sim
