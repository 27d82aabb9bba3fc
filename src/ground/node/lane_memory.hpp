// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/comm/doorbell.hpp"

namespace tailrace::node {

/// A message of a compute rank to its servers. Descriptors follow one another in the order of the rank's
/// calls.
struct Descriptor {
  /// A fence belongs to no stream: the rank has come to an agreement of all ranks.
  enum class Kind : std::uint32_t {
    begin = 1,
    piece = 2,
    end = 3,
    close = 4,
    farewell = 5,
    fence = 6,
    define = 7,       // its bytes define a stream
    begin_failed = 8  // a server's mark in place of `begin`: the step has failed
  };
  Kind kind = Kind::begin;
  std::uint32_t stream = 0;
  std::int64_t step = 0;  // begin, piece, end: the step; fence: its number, from 1
  /// begin, close: the lead. piece: how many calls the rank has made in the interval. define: its place in
  /// the kept part of the lane plus 1, or 0 if it is not kept.
  std::int64_t lead = 0;
  std::int32_t field = 0;  // piece: the field; begin, end, close: number of fields
  /// piece: the level. begin, end, close: the reference. define: 1 if more of the definition follows.
  std::int32_t level = 0;
  /// Place of its bytes: a position in the ring, which never starts again from 0, or the number of a view.
  std::uint64_t position = 0;
  std::int64_t bytes = 0;  // piece: packed elements; end: a Status, empty if all is well
  /// end: the clock of the rank's node. begin: the lead after which the step's interval begins.
  std::int64_t stamp = 0;
};

/// The progress of a lane's producer. Positions in the ring never start again from 0.
struct ProducerState {
  std::uint64_t head = 0;          // descriptors published
  std::uint64_t announced = 0;     // descriptors before this were announced
  std::uint64_t announced_to = 0;  // bytes before this were announced
  std::uint64_t position = 0;      // next free byte
  std::uint64_t reserved = 0;      // position of the last reservation
  std::uint64_t freed = 0;         // all readers have released the bytes before this
  std::uint64_t reclaimed = 0;     // all readers have released the descriptors before this
};

/// The shared part of a lane. A lane has one producer (a compute rank) and up to `most_readers` consumers
/// (the servers of its node). The header tells a server that maps the lane later everything it has to know:
/// that it is a lane, whose lane it is, and where the producer stands.
struct LaneHeader {
  static constexpr int most_readers = 32;
  // "TRLANE" after a byte that is no text.
  static constexpr std::uint64_t magic_of_lanes = 0x454e'414c'5254'9102;
  static constexpr std::uint32_t newest_version = 3;
  std::uint64_t magic = magic_of_lanes;
  std::uint32_t version = newest_version;
  std::int32_t owner = -1;                         // the compute rank that writes
  alignas(64) ProducerState made;                  // written by the producer alone
  alignas(64) std::atomic<std::uint64_t> head{0};  // descriptors announced to readers
  /// Number of descriptors that a patient producer has written. Readers use it while somebody is in haste.
  std::atomic<std::uint64_t> written{0};
  alignas(64) std::atomic<std::uint64_t> tail[most_readers]{};  // descriptors that reader r is done with
  alignas(64) comm::Doorbell space;                             // rung by readers
  std::int64_t capacity = 0;  // bytes behind the header: descriptors, then data
  std::int32_t readers = 1;
  /// Bytes behind the ring for the definitions of open streams. If 0, no server can take over the lane, and a
  /// piece is released once it is used up. Otherwise no part of a step is released before the step has its
  /// verdict.
  Bytes kept = 0;
  std::atomic<std::int64_t> fences{0};        // number of the newest published fence
  std::atomic<bool> lacks_definition{false};  // a definition found no room in the kept part
  std::atomic<bool> is_full{false};           // the producer waits for room
  /// A step did not fit, and a part of it was released before its verdict.
  std::atomic<bool> is_torn{false};
  /// Written by the server at which the owner is at home. The owner's threads read them: they hear no
  /// messages.
  alignas(64) std::atomic<std::int64_t> failed_steps{0};  // as many failures of steps were sent to the owner
  /// Every step that the owner has ended before this fence has its last verdict. Those that failed are
  /// counted in `failed_steps` already.
  std::atomic<std::int64_t> settled_fence{0};

  /// Returns Code::corrupt if this is not the lane of compute rank `expected`.
  [[nodiscard]] Status check(int expected) const;
};

/// The division of the bytes behind a lane's header: an eighth holds descriptors, 64 to 16384 of them, and
/// the rest is a ring of data. A larger lane never has a smaller ring.
struct LaneCut {
  static constexpr std::uint64_t least_descriptors = 64, most_descriptors = 16384;
  std::uint64_t descriptors = 0;
  Bytes data_at = 0;  // behind the header, on a cache line
  Bytes data = 0;
};

/// Returns how many bytes of a lane a piece of `bytes` occupies. It is rounded up, so that two pieces never
/// share a cache line.
constexpr Bytes room_in_lane(Bytes bytes) { return (bytes + 63) / 64 * 64; }

constexpr Bytes descriptor_bytes(std::uint64_t count) {
  return room_in_lane(static_cast<Bytes>(count * sizeof(Descriptor)));
}

/// The smallest lane: too small for data, large enough for a farewell.
constexpr Bytes least_lane = descriptor_bytes(LaneCut::least_descriptors) + 64;

/// Returns how many bytes the descriptors and data of a lane of `capacity` take.
constexpr Bytes ring_bytes(Bytes capacity) { return std::max(capacity, least_lane); }

constexpr LaneCut cut_lane(Bytes capacity) {
  const Bytes whole = ring_bytes(capacity);
  LaneCut cut;
  cut.descriptors = std::clamp(static_cast<std::uint64_t>(whole) / 8 / sizeof(Descriptor),
                               LaneCut::least_descriptors, LaneCut::most_descriptors);
  cut.data_at = descriptor_bytes(cut.descriptors);
  cut.data = whole - cut.data_at;
  return cut;
}

/// Returns how many bytes of memory a lane of `capacity` takes, with its header.
constexpr Bytes lane_bytes(Bytes capacity) {
  return static_cast<Bytes>(sizeof(LaneHeader)) + ring_bytes(capacity);
}

/// Access to the descriptors and data of a lane whose header exists.
class LaneMemory {
 public:
  LaneMemory(const LaneHeader* header, std::byte* memory)
      : cut_(cut_lane(header->capacity)), memory_(memory) {}
  [[nodiscard]] Descriptor& descriptor(std::uint64_t number) const {
    return reinterpret_cast<Descriptor*>(memory_)[number % cut_.descriptors];
  }
  /// Returns the byte at `position`, which never starts again from 0.
  [[nodiscard]] std::byte* data(std::uint64_t position) const {
    return memory_ + cut_.data_at + position % static_cast<std::uint64_t>(cut_.data);
  }
  [[nodiscard]] std::uint64_t descriptors() const { return cut_.descriptors; }
  [[nodiscard]] Bytes data_bytes() const { return cut_.data; }

 private:
  LaneCut cut_;
  std::byte* memory_;
};

}  // namespace tailrace::node
