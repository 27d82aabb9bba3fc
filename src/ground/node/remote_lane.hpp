// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>

#include "ground/comm/line.hpp"
#include "ground/node/lane.hpp"

namespace tailrace::node {

/// A lane in memory of this process only.
class PrivateLane {
 public:
  explicit PrivateLane(Bytes capacity);
  [[nodiscard]] LaneHeader* header() const { return header_.get(); }
  /// Returns the bytes that would follow the header in a shared lane: descriptors, then data.
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] LaneMemory memory() const { return {header_.get(), memory_.get()}; }

 private:
  std::unique_ptr<LaneHeader> header_;
  std::unique_ptr<std::byte[]> memory_;
};

/// The rank's end of a lane to a server on another node. It sends what the rank publishes, as data messages.
class LaneSender {
 public:
  LaneSender(const PrivateLane& lane, comm::Line& line, int server)
      : lane_(lane), line_(line), server_(server) {}
  /// Sends more, as long as few bytes are under way. Returns true if something was sent.
  bool advance();
  /// Notes that the server needs no descriptor before `number` any more.
  void credit(std::uint64_t number) { lane_.header()->tail[0].store(number, std::memory_order_release); }

 private:
  static constexpr Bytes most_under_way = Bytes{64} << 20;
  const PrivateLane& lane_;
  comm::Line& line_;
  int server_;
  std::uint64_t sent_ = 0;
};

/// The server's end of the lane: a ring of the same size, in which each piece has the same position as in the
/// rank's ring. The rank sends only pieces that fit into its own ring, so each message finds its place.
class LaneReceiver {
 public:
  LaneReceiver(const PrivateLane& lane, comm::Line& line, int rank) : lane_(lane), line_(line), rank_(rank) {}
  /// Puts a message, one descriptor with its bytes, into the ring.
  void take(Unpacker in);
  /// Returns the credit to send to the rank, if room was freed since the last credit.
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
