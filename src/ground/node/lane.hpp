// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/comm/doorbell.hpp"
#include "ground/layout/stretch.hpp"
#include "ground/node/kept_definitions.hpp"
#include "ground/node/lane_memory.hpp"

namespace tailrace::node {

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
      : header_(header),
        memory_(header, memory),
        kept_(memory + ring_bytes(header->capacity), header->kept),
        bells_(bells),
        announcing_(announcing) {
    if (keeps()) kept_.clear();
  }
  /// Makes memory exist for the first bytes of the data.
  using Grow = std::function<Status(Bytes)>;
  /// Says that no memory exists for the data yet. Without this call all of it exists.
  void grow_with(Grow grow) {
    grow_ = std::move(grow);
    ready_ = 0;
  }
  /// Local. Makes memory exist for `bytes` of data, or for all if the lane has less. Later the lane grows by
  /// itself where readers have not released what it has. Returns the error of `grow`, and the lane is as
  /// before.
  Status make_ready(Bytes bytes);
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
  /// Returns true if the lane keeps definitions for servers that take it over.
  [[nodiscard]] bool keeps() const { return kept_.is_there(); }
  /// Keeps the bytes of the descriptor that is published next. Returns false if there is no room.
  [[nodiscard]] bool keep(Descriptor& descriptor, std::span<const std::byte> bytes);
  /// Drops the definitions of a stream that all servers have finished.
  void drop(std::uint32_t stream);

 private:
  void drop_what_was_read();
  void reclaim();
  [[nodiscard]] std::uint64_t place_for(std::uint64_t size);
  [[nodiscard]] bool fits(std::uint64_t start, std::uint64_t size);
  [[nodiscard]] bool may_wait(Descriptor::Kind kind) const;
  void hurry(bool in_haste);
  void note_full(bool is_full);
  void ring();
  [[nodiscard]] ProducerState& state() { return header_->made; }
  LaneHeader* header_;
  LaneMemory memory_;
  KeptDefinitions kept_;
  NodeBells* bells_;
  Announcing announcing_;
  Grow grow_;
  Bytes ready_ = memory_.data_bytes();  // the first bytes of the data, for which memory exists
  std::vector<std::pair<std::uint32_t, std::uint64_t>>
      dropped_;  // streams, and the descriptors before each drop
  bool in_haste_ = false;
  bool is_full_ = false;  // as the readers know it
};

/// The place from which a server reads a lane that another server may have read before.
struct LanePosition {
  std::uint64_t first = 0;  // the first descriptor that is not released
  std::int64_t fences = 0;  // the newest fence before it
};

/// One server's view of a lane.
class LaneReader {
 public:
  virtual ~LaneReader() = default;
  /// Returns the number of descriptors published so far. Numbers go on for ever.
  [[nodiscard]] virtual std::uint64_t head() const = 0;
  [[nodiscard]] virtual const Descriptor& at(std::uint64_t number) const = 0;
  /// Any thread. Returns the packed bytes of a descriptor. Uses `scratch` if they must be packed first.
  [[nodiscard]] virtual std::span<const std::byte> bytes(std::uint64_t number, ByteVector& scratch) const = 0;
  /// Returns true if a piece may stay in the lane until it is written. This takes a lane whose is_full()
  /// tells when the rank waits for room.
  [[nodiscard]] virtual bool may_stay(std::uint64_t /*number*/) const { return false; }
  /// Any thread. Copies what a piece that may stay has of a stretch of its record. `rows` are those of its
  /// rank.
  virtual void place(std::uint64_t /*number*/, std::span<const layout::Rows> /*rows*/,
                     const layout::Stretch& /*stretch*/) const {}
  /// Puts begin_failed in the place of a `begin` that is not released, for a server that takes the lane over.
  virtual void mark_failed(std::uint64_t /*number*/) {}
  /// Says that this reader needs nothing before `number` any more.
  virtual void release(std::uint64_t number) = 0;
  [[nodiscard]] virtual LanePosition position() const { return {}; }
  /// Returns the definitions in a lane that another server may take over, or nullptr.
  [[nodiscard]] virtual KeptDefinitions* kept() { return nullptr; }
  /// Returns true if the lane lacks a definition, or a part of a step, that another server would need.
  [[nodiscard]] virtual bool lacks_something() const { return false; }
  /// Returns true if the rank waits for room.
  [[nodiscard]] virtual bool is_full() const { return false; }
  /// Says whether a part of a step was released that has no verdict yet.
  virtual void tear(bool /*torn*/) {}
};

/// A lane in memory that both sides map.
class SharedLaneReader final : public LaneReader {
 public:
  /// `bells` are the node's, if producers are patient. The producer of a `remote` lane has another header.
  SharedLaneReader(LaneHeader* header, std::byte* memory, int reader, const NodeBells* bells = nullptr,
                   bool remote = false)
      : header_(header),
        memory_(header, memory),
        kept_(memory + ring_bytes(header->capacity), header->kept),
        reader_(reader),
        bells_(bells),
        remote_(remote) {}
  /// The result goes back to what was announced when nobody is in haste any more.
  [[nodiscard]] std::uint64_t head() const override;
  [[nodiscard]] const Descriptor& at(std::uint64_t number) const override {
    return memory_.descriptor(number);
  }
  [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t number, ByteVector&) const override;
  [[nodiscard]] bool may_stay(std::uint64_t) const override { return !remote_; }
  void place(std::uint64_t number, std::span<const layout::Rows> rows,
             const layout::Stretch& stretch) const override;
  void release(std::uint64_t number) override;
  void mark_failed(std::uint64_t number) override {
    memory_.descriptor(number).kind = Descriptor::Kind::begin_failed;
  }
  [[nodiscard]] LanePosition position() const override;
  [[nodiscard]] KeptDefinitions* kept() override { return kept_.is_there() ? &kept_ : nullptr; }
  [[nodiscard]] bool lacks_something() const override {
    return header_->lacks_definition || header_->is_torn;
  }
  [[nodiscard]] bool is_full() const override { return header_->is_full; }
  void tear(bool torn) override { header_->is_torn = torn; }

 private:
  LaneHeader* header_;
  LaneMemory memory_;
  KeptDefinitions kept_;
  int reader_;
  const NodeBells* bells_;
  bool remote_;
};

}  // namespace tailrace::node
