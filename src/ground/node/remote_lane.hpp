// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "ground/comm/exposed/exposed_memory.hpp"
#include "ground/comm/line.hpp"
#include "ground/node/lane.hpp"

namespace tailrace::node {

/// The lanes that a rank may have. It has the usual one from the beginning. The others carry the data of
/// streams that ask for their way of reaching the servers (pipeline::Handoff).
enum class LaneKind : std::uint32_t {
  usual = 0,     // in memory of the node if the node has a server, otherwise by messages
  messages = 1,  // by messages to the rank's home, also on one node
  onesided = 2,  // in memory that the rank exposes, from which its home gets the data
};
inline constexpr std::size_t lane_kinds = 3;

/// A lane that one process writes or reads alone.
class PrivateLane {
 public:
  /// Makes a lane in memory of this process only.
  explicit PrivateLane(Bytes capacity);
  /// Makes a lane in `memory` of bytes_for(capacity), which must outlive the object.
  PrivateLane(Bytes capacity, std::byte* memory);
  [[nodiscard]] static Bytes bytes_for(Bytes capacity) { return std::max(capacity, least_lane); }
  [[nodiscard]] LaneHeader* header() const { return header_.get(); }
  /// Returns the bytes that would follow the header in a shared lane: descriptors, then data.
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] LaneMemory memory() const { return {header_.get(), data_}; }

 private:
  std::unique_ptr<LaneHeader> header_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_;
};

/// The rank's end of a lane to a server that does not map it. It sends what the rank publishes as data
/// messages of the lane's kind: descriptors, each with its bytes. Small ones that follow one another share a
/// message. If the lane lies in exposed memory, larger bytes stay there, and the server gets them.
class LaneSender {
 public:
  /// `exposed` is nullptr, or has the lane's memory. All arguments must outlive the object.
  LaneSender(const PrivateLane& lane, comm::Line& line, int server, LaneKind kind = LaneKind::usual,
             comm::ExposedMemory* exposed = nullptr, Bytes least = least_exposed)
      : lane_(lane), line_(line), server_(server), kind_(kind), exposed_(exposed), least_(least) {}
  /// Sends more, as long as few bytes are under way. Returns true if something was sent.
  bool advance();
  /// Notes that the server needs no descriptor before `number` any more.
  void credit(std::uint64_t number) { lane_.header()->tail[0].store(number, std::memory_order_release); }

  /// Bytes of a descriptor from this size on stay in exposed memory, unless the constructor was given
  /// another: a get costs about as much as a small message.
  static constexpr Bytes least_exposed = Bytes{1} << 10;

 private:
  static constexpr Bytes most_under_way = Bytes{64} << 20;
  static constexpr Bytes most_together = Bytes{256} << 10;
  [[nodiscard]] std::span<const std::byte> sent_bytes(const Descriptor& descriptor) const;
  [[nodiscard]] ByteVector next_message(std::uint64_t head);
  const PrivateLane& lane_;
  comm::Line& line_;
  int server_;
  LaneKind kind_;
  comm::ExposedMemory* exposed_;
  Bytes least_;
  std::uint64_t sent_ = 0;
};

/// The server's end of the lane: a ring of the same size, in which each piece has the same position as in the
/// rank's ring. The rank publishes only pieces that fit into its own ring, so each piece finds its place.
class LaneReceiver {
 public:
  /// `exposed` is nullptr, or gets from the memory in which the rank's end lies. All arguments must outlive
  /// the object.
  LaneReceiver(const PrivateLane& lane, comm::Line& line, int rank, LaneKind kind = LaneKind::usual,
               comm::ExposedMemory* exposed = nullptr, Bytes most = most_at_once)
      : lane_(lane), line_(line), rank_(rank), kind_(kind), exposed_(exposed), most_(most) {}
  /// Puts a message into the ring. `in` is behind the lane's kind, which a message begins with.
  void take(Unpacker& in);
  /// Gets bytes that a message has left with the rank, at most 4 MiB at a time. Returns true if it began to.
  bool advance();
  /// Returns the credit to send to the rank, if room was freed since the last credit.
  [[nodiscard]] std::optional<std::uint64_t> fresh_credit();
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] LaneKind kind() const { return kind_; }

  /// One get brings at most so many bytes, unless the constructor was given another number. Between two gets
  /// the server goes on with other work.
  static constexpr Bytes most_at_once = Bytes{4} << 20;

 private:
  void take_one(Unpacker& in);
  [[nodiscard]] std::vector<comm::ExposedMemory::Range> next_batch();
  void publish();

  const PrivateLane& lane_;
  comm::Line& line_;
  int rank_;
  LaneKind kind_;
  comm::ExposedMemory* exposed_;
  Bytes most_;
  std::uint64_t come_ = 0;             // descriptors that have come
  std::deque<std::uint64_t> missing_;  // those of whose bytes some are left for later gets
  Bytes begun_ = 0;                    // bytes of the first of these, that no later get has to bring
  bool is_getting_ = false;
  std::uint64_t credited_ = 0;
  std::uint64_t farewell_ = ~std::uint64_t{0};
};

}  // namespace tailrace::node
