// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "ground/comm/line.hpp"
#include "ground/node/lane.hpp"

namespace tailrace::node {

/// A lane in memory of this process alone.
class PrivateLane {
 public:
  explicit PrivateLane(Bytes capacity);
  [[nodiscard]] LaneHeader* header() const { return header_.get(); }
  /// Returns the bytes that follow the header in a lane that ranks share: descriptors, then data.
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] LaneMemory memory() const { return {header_.get(), memory_.get()}; }

 private:
  std::unique_ptr<LaneHeader> header_;
  std::unique_ptr<std::byte[]> memory_;
};

/// The rank's end of a lane to a server on another node. It sends what is published as data messages.
class LaneSender {
 public:
  LaneSender(const PrivateLane& lane, comm::Line& line, int server)
      : lane_(lane), line_(line), server_(server) {}
  /// Sends on while little is under way. Returns true if something was sent.
  bool advance();
  /// Notes that the server is done with all descriptors before `number`.
  void credit(std::uint64_t number) { lane_.header()->tail[0].store(number, std::memory_order_release); }

 private:
  static constexpr Bytes most_under_way = Bytes{64} << 20;
  const PrivateLane& lane_;
  comm::Line& line_;
  int server_;
  std::uint64_t sent_ = 0;
};

/// The server's end of the lane: a ring of the same size, in which each piece lies at the same position. The
/// rank never sends a piece that would not fit, so that a message always has its place.
class LaneReceiver {
 public:
  LaneReceiver(const PrivateLane& lane, comm::Line& line, int rank) : lane_(lane), line_(line), rank_(rank) {}
  /// Takes in one descriptor message.
  void take(Unpacker in);
  /// Returns the credit message to send if room was freed since the last one.
  [[nodiscard]] std::optional<std::uint64_t> fresh_credit();
  [[nodiscard]] int rank() const { return rank_; }

 private:
  const PrivateLane& lane_;
  comm::Line& line_;
  int rank_;
  std::uint64_t head_ = 0;
  std::uint64_t credited_ = 0;
  std::uint64_t farewell_ = ~std::uint64_t{0};
};

}  // namespace tailrace::node
