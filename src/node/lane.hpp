// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "base/types.hpp"
#include "comm/doorbell.hpp"

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
    define = 7  // bytes: what a stream is
  };
  Kind kind = Kind::begin;
  std::uint32_t stream = 0;
  std::int64_t step = 0;   // begin, piece, end; fence: its number, from 1
  std::int64_t lead = 0;   // begin
  std::int32_t field = 0;  // piece; begin, end, close: how many fields the stream has
  std::int32_t level =
      0;  // piece; begin, end, close: the stream's reference; define: 1 if more of it follows
  std::uint64_t position = 0;  // where its bytes lie: ring position (counted on for ever), or a view's number
  std::int64_t bytes = 0;      // piece: packed elements; end: a packed Status, empty if all went well
  std::int64_t stamp = 0;      // clock of the rank's node when it was published
};

/// Where the producer of a lane stands. Positions in the ring are counted on for ever.
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
  static constexpr std::uint64_t magic_of_lanes =
      0x454e'414c'5254'9102;  // "TRLANE" behind a byte that is no text
  static constexpr std::uint32_t newest_version = 1;
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

/// Returns the bytes of a lane that a piece occupies. Every piece begins on a cache line: two ranks that copy
/// pieces never write to the same line.
constexpr Bytes room_in_lane(Bytes bytes) { return (bytes + 63) / 64 * 64; }

constexpr Bytes descriptor_bytes(std::uint64_t count) {
  return room_in_lane(static_cast<Bytes>(count * sizeof(Descriptor)));
}

/// The smallest lane: too small for data, enough to say farewell.
constexpr Bytes least_lane = descriptor_bytes(LaneCut::least_descriptors) + 64;

constexpr LaneCut cut_lane(Bytes capacity) {
  const Bytes whole = std::max(capacity, least_lane);
  LaneCut cut;
  cut.descriptors = std::clamp(static_cast<std::uint64_t>(whole) / 8 / sizeof(Descriptor),
                               LaneCut::least_descriptors, LaneCut::most_descriptors);
  cut.data_at = descriptor_bytes(cut.descriptors);
  cut.data = whole - cut.data_at;
  return cut;
}

/// Returns the bytes of memory that a lane of `capacity` takes, header included.
constexpr Bytes lane_bytes(Bytes capacity) {
  return static_cast<Bytes>(sizeof(LaneHeader)) + std::max(capacity, least_lane);
}

/// Returns the size of a lane, header included, whose ring has room for `data` bytes at least.
constexpr Bytes lane_for(Bytes data) {
  Bytes capacity = std::max(data, least_lane);
  while (cut_lane(capacity).data < data) capacity += 64;
  return capacity;
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

/// The bells of a node's servers. Producers ring them, one for each reader number.
struct NodeBells {
  comm::Doorbell reader[LaneHeader::most_readers];
  /// Number of readers that cannot wait until patient producers announce what they have written.
  alignas(64) std::atomic<std::uint32_t> in_haste{0};
};

/// While it lives, readers see what patient producers have written, and those producers announce at once.
class Haste {
 public:
  explicit Haste(NodeBells& bells) : bells_(bells) { bells_.in_haste.fetch_add(1); }
  ~Haste() { bells_.in_haste.fetch_sub(1); }
  Haste(const Haste&) = delete;
  Haste& operator=(const Haste&) = delete;

 private:
  NodeBells& bells_;
};

/// When a producer announces what it has written. A patient one leaves definitions, beginnings of steps and
/// pieces until anything else comes, half of the lane is waiting, or somebody is in haste: where ranks share
/// cores, a server that is woken in the middle of a step takes the core of the rank that captures it.
enum class Announcing { at_once, patient };

/// Writes into a lane. Never blocks: a piece that does not fit is refused, and the caller tries again.
class LaneProducer {
 public:
  /// `memory` lies behind the header. A patient producer has bells.
  LaneProducer(LaneHeader* header, std::byte* memory, NodeBells* bells,
               Announcing announcing = Announcing::at_once)
      : header_(header), memory_(header, memory), bells_(bells), announcing_(announcing) {}
  /// Returns room for `bytes` contiguous bytes and one descriptor, or nullptr if readers must release some
  /// first. The readers are in haste then until there is room.
  [[nodiscard]] std::byte* reserve(Bytes bytes);
  /// Makes the reserved bytes and their descriptor visible, and wakes the readers or leaves that for later.
  void publish(Descriptor descriptor);
  /// Wakes the readers for all that was published. A rank announces before it waits for anything.
  void announce();
  [[nodiscard]] comm::Doorbell& space() { return header_->space; }
  /// Returns the largest piece that ever fits: pieces begin on cache lines.
  [[nodiscard]] Bytes capacity() const { return memory_.data_bytes() / 64 * 64; }
  /// Returns true once every reader has released everything.
  [[nodiscard]] bool is_drained() const;

 private:
  void reclaim();
  [[nodiscard]] bool may_wait(Descriptor::Kind kind) const;
  void hurry(bool in_haste);
  void ring();
  [[nodiscard]] ProducerState& state() { return header_->made; }
  LaneHeader* header_;
  LaneMemory memory_;
  NodeBells* bells_;
  Announcing announcing_;
  bool in_haste_ = false;
};

/// One server's view of a lane.
class LaneReader {
 public:
  virtual ~LaneReader() = default;
  /// Returns the number of descriptors published so far. Numbers go on for ever.
  [[nodiscard]] virtual std::uint64_t head() const = 0;
  [[nodiscard]] virtual const Descriptor& at(std::uint64_t number) const = 0;
  /// Returns the packed bytes of a descriptor. Uses `scratch` if they must be packed first. Worker threads
  /// call it.
  [[nodiscard]] virtual std::span<const std::byte> bytes(std::uint64_t number, ByteVector& scratch) const = 0;
  /// Says that this reader needs nothing before `number` any more.
  virtual void release(std::uint64_t number) = 0;
};

/// A lane in memory that both sides map.
class SharedLaneReader final : public LaneReader {
 public:
  /// `bells` are the node's, if producers are patient.
  SharedLaneReader(LaneHeader* header, std::byte* memory, int reader, const NodeBells* bells = nullptr)
      : header_(header), memory_(header, memory), reader_(reader), bells_(bells) {}
  /// The result goes back to what was announced when nobody is in haste any more.
  [[nodiscard]] std::uint64_t head() const override;
  [[nodiscard]] const Descriptor& at(std::uint64_t number) const override {
    return memory_.descriptor(number);
  }
  [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t number, ByteVector&) const override;
  void release(std::uint64_t number) override;

 private:
  LaneHeader* header_;
  LaneMemory memory_;
  int reader_;
  const NodeBells* bells_;
};

}  // namespace tailrace::node
