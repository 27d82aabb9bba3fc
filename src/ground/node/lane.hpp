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

/// The bells of a node's servers, one for each reader number. Producers ring them.
struct NodeBells {
  comm::Doorbell reader[LaneHeader::most_readers];
  /// Number of readers that cannot wait until patient producers announce what they have written, plus the
  /// number of patient producers that wait for room.
  alignas(64) std::atomic<std::uint32_t> in_haste{0};
};

/// While it lives, readers see everything that patient producers have written, and those producers announce
/// at once.
class Haste {
 public:
  explicit Haste(NodeBells& bells) : bells_(bells) { bells_.in_haste.fetch_add(1); }
  ~Haste() { bells_.in_haste.fetch_sub(1); }
  Haste(const Haste&) = delete;
  Haste& operator=(const Haste&) = delete;

 private:
  NodeBells& bells_;
};

/// When a producer announces what it has written. A patient producer holds back definitions, beginnings of
/// steps and pieces. It announces them once it writes anything else, or half of the lane is not announced, or
/// somebody is in haste. The reason: where ranks share cores, a server that is woken in the middle of a step
/// takes the core from the rank that captures the step.
enum class Announcing { at_once, patient };

/// Writes into a lane. Never blocks: if a piece does not fit it is refused, and the caller tries again.
class LaneProducer {
 public:
  /// `memory` lies behind the header. A patient producer must have bells.
  LaneProducer(LaneHeader* header, std::byte* memory, NodeBells* bells,
               Announcing announcing = Announcing::at_once)
      : header_(header),
        memory_(header, memory),
        kept_(memory + ring_bytes(header->capacity), header->kept),
        bells_(bells),
        announcing_(announcing) {
    if (keeps()) kept_.clear();
  }
  /// A function that allocates memory for the first bytes of the data.
  using Grow = std::function<Status(Bytes)>;
  /// Sets the function that allocates, and declares that the data has no memory yet. Without this call all of
  /// its memory exists.
  void grow_with(Grow grow) {
    grow_ = std::move(grow);
    ready_ = 0;
  }
  /// Local. Allocates memory for `bytes` of data, or for all if the lane has less. Later the lane grows by
  /// itself when readers have not released the memory it has. If `grow` fails, returns its error and leaves
  /// the lane as it was.
  Status make_ready(Bytes bytes);
  /// Returns room for `bytes` contiguous bytes and one descriptor. Returns nullptr if readers must release
  /// some first. Then this producer is in haste until there is room.
  [[nodiscard]] std::byte* reserve(Bytes bytes);
  /// Adds `descriptor` for the reserved bytes. Announces it at once, or, if the producer is patient, perhaps
  /// later.
  void publish(Descriptor descriptor);
  /// Announces all that was published, and wakes the readers. A rank calls it before it waits for anything.
  void announce();
  [[nodiscard]] comm::Doorbell& space() { return header_->space; }
  /// Returns the size of the largest piece that can ever fit. Pieces begin on cache lines.
  [[nodiscard]] Bytes capacity() const { return memory_.data_bytes() / 64 * 64; }
  /// True once every reader has released everything.
  [[nodiscard]] bool is_drained() const;
  /// True if the lane keeps definitions for servers that take it over.
  [[nodiscard]] bool keeps() const { return kept_.is_there(); }
  /// Keeps `bytes` as the definition of `descriptor`, which is published next. Returns false if there is no
  /// room.
  [[nodiscard]] bool keep(Descriptor& descriptor, std::span<const std::byte> bytes);
  /// Drops the definitions of a stream that all servers have finished with.
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
  Bytes ready_ = memory_.data_bytes();  // as many bytes of the data have memory
  /// Streams to drop, each with the number of descriptors published before.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> dropped_;
  bool in_haste_ = false;
  bool is_full_ = false;  // as the readers were told
};

/// The place at which a server begins to read a lane. Another server may have read the lane before.
struct LanePosition {
  std::uint64_t first = 0;  // the first descriptor that was not released
  std::int64_t fences = 0;  // the newest fence before that descriptor
};

/// One server's view of a lane.
class LaneReader {
 public:
  virtual ~LaneReader() = default;
  /// Returns how many descriptors were published so far. The numbers never start again.
  [[nodiscard]] virtual std::uint64_t head() const = 0;
  [[nodiscard]] virtual const Descriptor& at(std::uint64_t number) const = 0;
  /// Returns the packed bytes of a descriptor. Uses `scratch` if it has to pack them first. Any thread.
  [[nodiscard]] virtual std::span<const std::byte> bytes(std::uint64_t number, ByteVector& scratch) const = 0;
  /// True if a piece may stay in the lane until it is written. Only for lanes whose is_full() tells when the
  /// rank waits for room.
  [[nodiscard]] virtual bool may_stay(std::uint64_t /*number*/) const { return false; }
  /// Copies those elements of a piece that are in a stretch of its record to the stretch. The piece may stay
  /// in the lane. `rows` are the elements of its rank. Any thread.
  virtual void place(std::uint64_t /*number*/, std::span<const layout::Rows> /*rows*/,
                     const layout::Stretch& /*stretch*/) const {}
  /// Replaces a `begin` that is not released by begin_failed, for a server that takes over the lane.
  virtual void mark_failed(std::uint64_t /*number*/) {}
  /// Tells the producer that this reader needs nothing before descriptor `number` any more.
  virtual void release(std::uint64_t number) = 0;
  [[nodiscard]] virtual LanePosition position() const { return {}; }
  /// Returns the kept definitions, or nullptr if no other server can take over the lane.
  [[nodiscard]] virtual KeptDefinitions* kept() { return nullptr; }
  /// True if the lane lacks a definition, or a part of a step, that a server would need to take it over.
  [[nodiscard]] virtual bool lacks_something() const { return false; }
  /// True if the rank waits for room.
  [[nodiscard]] virtual bool is_full() const { return false; }
  /// Notes whether a part of a step was released before the step has its verdict.
  virtual void tear(bool /*torn*/) {}
  /// Tell the threads of the lane's rank, which hear no messages: that one more failure of a step is sent to
  /// the rank, and that all steps that the rank has ended before fence `number` have their last verdict.
  virtual void tell_failure() {}
  virtual void tell_settled(std::int64_t /*number*/) {}
};

/// Reads a lane in memory that both sides map.
class SharedLaneReader final : public LaneReader {
 public:
  /// `bells`: the node's, if producers are patient. `remote`: the lane belongs to a rank of another node,
  /// whose producer has a header of its own.
  SharedLaneReader(LaneHeader* header, std::byte* memory, int reader, const NodeBells* bells = nullptr,
                   bool remote = false)
      : header_(header),
        memory_(header, memory),
        kept_(memory + ring_bytes(header->capacity), header->kept),
        reader_(reader),
        bells_(bells),
        remote_(remote) {}
  /// When nobody is in haste any more, the result falls back to what was announced.
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
  void tell_failure() override { ++header_->failed_steps; }
  void tell_settled(std::int64_t number) override { header_->settled_fence = number; }

 private:
  LaneHeader* header_;
  LaneMemory memory_;
  KeptDefinitions kept_;
  int reader_;
  const NodeBells* bells_;
  bool remote_;
};

}  // namespace tailrace::node
