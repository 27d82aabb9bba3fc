// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/comm/doorbell.hpp"

namespace tailrace::node {

/// A message of a compute rank to its servers. Descriptors are in the order of its calls.
struct Descriptor {
  /// A fence belongs to no stream: the rank came to an agreement of all ranks.
  enum class Kind : std::uint32_t {
    begin = 1,
    piece = 2,
    end = 3,
    close = 4,
    farewell = 5,
    fence = 6,
    define = 7,       // bytes: what a stream is
    begin_failed = 8  // a server has put it in the place of `begin`: the ranks know that the step has failed
  };
  Kind kind = Kind::begin;
  std::uint32_t stream = 0;
  std::int64_t step = 0;  // begin, piece, end; fence: its number, from 1
  std::int64_t lead = 0;  // begin, close; piece: the rank's calls in an interval; define: where it is kept in
                          // the lane, behind 1; 0: not kept
  std::int32_t field = 0;      // piece; begin, end, close: how many fields the stream has
  std::int32_t level = 0;      // piece; begin, end, close: the reference; define: 1 if more of it follows
  std::uint64_t position = 0;  // where its bytes lie: ring position (counted on for ever), or a view's number
  std::int64_t bytes = 0;      // piece: packed elements; end: a packed Status, empty if all went well
  std::int64_t stamp =
      0;  // end: clock of the rank's node; begin: the lead behind which the step's interval begins
};

/// The producer of a lane knows by these how far it is. Positions in the ring are counted on for ever.
struct ProducerState {
  std::uint64_t head = 0;          // descriptors published
  std::uint64_t announced = 0;     // descriptors before this were announced
  std::uint64_t announced_to = 0;  // bytes before this were announced
  std::uint64_t position = 0;      // next free byte
  std::uint64_t reserved = 0;      // where the last reservation begins
  std::uint64_t freed = 0;         // bytes before this were released by all readers
  std::uint64_t reclaimed = 0;     // descriptors before this were released
};

/// The shared part of a lane: one producer (a compute rank), up to `most_readers` consumers (the servers of
/// its node). It tells all that a server has to know that maps the lane later: what it is, whose it is, and
/// where its producer stands.
struct LaneHeader {
  static constexpr int most_readers = 32;
  // "TRLANE" behind a byte that is no text.
  static constexpr std::uint64_t magic_of_lanes = 0x454e'414c'5254'9102;
  static constexpr std::uint32_t newest_version = 2;
  std::uint64_t magic = magic_of_lanes;
  std::uint32_t version = newest_version;
  std::int32_t owner = -1;                         // the compute rank that writes
  alignas(64) ProducerState made;                  // written by the producer alone
  alignas(64) std::atomic<std::uint64_t> head{0};  // descriptors announced to readers
  std::atomic<std::uint64_t> written{0};  // of a patient producer: descriptors written, for readers in haste
  alignas(64) std::atomic<std::uint64_t> tail[most_readers]{};  // descriptors that reader r is done with
  alignas(64) comm::Doorbell space;                             // rung by readers
  std::int64_t capacity = 0;  // bytes behind the header: descriptors, then data
  std::int32_t readers = 1;
  /// Bytes behind the ring for the definitions of open streams. 0: no server can take the lane over, and a
  /// piece is released once it is used up. Otherwise nothing of a step is released before the step has its
  /// verdict.
  Bytes kept = 0;
  std::atomic<std::int64_t> fences{0};        // number of the newest fence that is published
  std::atomic<bool> lacks_definition{false};  // one found no room in the kept part
  std::atomic<bool> is_full{false};           // the producer waits for room
  std::atomic<bool> is_torn{false};  // a step without a verdict did not fit, and a part of it was released

  /// Code::corrupt if this is not the lane of compute rank `expected`.
  [[nodiscard]] Status check(int expected) const;
};

/// Divides the bytes behind a lane's header: an eighth holds descriptors, at most `most_descriptors` of them,
/// and the rest is a ring of data. A larger lane never has a smaller ring.
struct LaneCut {
  static constexpr std::uint64_t least_descriptors = 64, most_descriptors = 16384;
  std::uint64_t descriptors = 0;
  Bytes data_at = 0;  // behind the header, on a cache line
  Bytes data = 0;
};

/// Returns the bytes of a lane that a piece occupies: pieces of two ranks are never on the same cache line.
constexpr Bytes room_in_lane(Bytes bytes) { return (bytes + 63) / 64 * 64; }

constexpr Bytes descriptor_bytes(std::uint64_t count) {
  return room_in_lane(static_cast<Bytes>(count * sizeof(Descriptor)));
}

/// The smallest lane: too small for data, enough to say farewell.
constexpr Bytes least_lane = descriptor_bytes(LaneCut::least_descriptors) + 64;

/// Returns the bytes of descriptors and data of a lane of `capacity`.
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

/// Returns the bytes of memory that a lane of `capacity` takes, header included.
constexpr Bytes lane_bytes(Bytes capacity) {
  return static_cast<Bytes>(sizeof(LaneHeader)) + ring_bytes(capacity);
}

/// Descriptors and data of a lane whose header is made.
class LaneMemory {
 public:
  LaneMemory(const LaneHeader* header, std::byte* memory)
      : cut_(cut_lane(header->capacity)), memory_(memory) {}
  [[nodiscard]] Descriptor& descriptor(std::uint64_t number) const {
    return reinterpret_cast<Descriptor*>(memory_)[number % cut_.descriptors];
  }
  /// `position` is counted on for ever.
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
