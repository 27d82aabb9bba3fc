// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "ground/layout/stretch.hpp"
#include "ground/node/lane.hpp"
#include "ground/node/remote_lane.hpp"

namespace tailrace::pipeline {

/// Captures what a compute rank's calls give, and publishes it for the servers. put() and tell() never block:
/// they return false if there is no room, and the caller tries again.
class LaneWriter {
 public:
  virtual ~LaneWriter() = default;
  /// Captures one level of a field from the array at `base`. `descriptor` has stream, step, field and level.
  /// With `may_lend` the array stays unchanged until the end of the step: a lane writer whose own rank
  /// encodes the piece need not copy it.
  virtual bool put(node::Descriptor descriptor, const std::shared_ptr<const layout::MemoryMap>& map,
                   const std::byte* base, bool may_lend) = 0;
  /// Publishes a descriptor that is no piece, with its own bytes.
  virtual bool tell(node::Descriptor descriptor, std::span<const std::byte> bytes) = 0;
  /// Local. Wakes the servers for what was captured. Until a step ends the lane writer may leave that for
  /// later.
  virtual void announce() {}
  /// Moves on what must travel to another node. Returns true if something moved.
  virtual bool advance() { return false; }
  /// Copies the lent arrays. The program may change or free them afterwards.
  virtual void take_in() {}
  /// Local. Makes memory ready for `bytes` more bytes of pieces in each step. Blocks until it exists. Returns
  /// Code::memory if it is not to be had.
  virtual Status expect(Bytes /*bytes*/) { return {}; }
  /// Returns the largest piece that ever fits; 0 if there is no limit.
  [[nodiscard]] virtual Bytes largest_piece() const { return 0; }
  /// Returns true if everything published was used up.
  [[nodiscard]] virtual bool is_drained() const { return true; }
  /// Returns the bell that rings when room was freed, or nullptr if nothing rings.
  [[nodiscard]] virtual comm::Doorbell* space() { return nullptr; }
  virtual void credit(std::uint64_t) {}
  /// Drops the definitions of a stream that the servers have finished.
  virtual void drop(std::uint32_t) {}
};

/// Packs into the ring of a lane. The lane lies in memory that the node's servers share. With a sender it
/// lies in this rank's own memory, and the sender carries it to another node.
class RingLaneWriter final : public LaneWriter {
 public:
  explicit RingLaneWriter(node::LaneProducer producer, std::unique_ptr<node::PrivateLane> lane = nullptr,
                          std::unique_ptr<node::LaneSender> sender = nullptr)
      : producer_(producer), lane_(std::move(lane)), sender_(std::move(sender)) {}
  bool put(node::Descriptor descriptor, const std::shared_ptr<const layout::MemoryMap>& map,
           const std::byte* base, bool may_lend) override;
  bool tell(node::Descriptor descriptor, std::span<const std::byte> bytes) override;
  void announce() override { producer_.announce(); }
  bool advance() override { return sender_ != nullptr && sender_->advance(); }
  Status expect(Bytes bytes) override;
  [[nodiscard]] Bytes largest_piece() const override { return producer_.capacity(); }
  [[nodiscard]] bool is_drained() const override { return producer_.is_drained(); }
  [[nodiscard]] comm::Doorbell* space() override { return sender_ ? nullptr : &producer_.space(); }
  void credit(std::uint64_t number) override {
    if (sender_) sender_->credit(number);
  }
  void drop(std::uint32_t stream) override { producer_.drop(stream); }

 private:
  node::LaneProducer producer_;
  std::unique_ptr<node::PrivateLane> lane_;
  std::unique_ptr<node::LaneSender> sender_;
  Bytes expected_ = 0;  // bytes of a step of all streams
};

/// A lane whose pieces are lent and not copied: with 0 servers the caller's memory stays as it is until the
/// end of the step. Pieces are packed when they are sent or assembled.
class LentLane {
 public:
  struct Entry {
    node::Descriptor descriptor;
    std::shared_ptr<const layout::MemoryMap> map;  // of an array that is lent
    const std::byte* base = nullptr;
    ByteVector bytes;

    /// Packs the lent array.
    void pack(ByteVector& out) const;
    /// Copies the array, if it is lent.
    void take_in();
    /// Returns where the bytes lie, or nothing if they must be packed.
    [[nodiscard]] std::optional<layout::PackedRuns> runs() const;
  };
  void add(Entry entry);
  /// Removes the entries before `number`.
  void release(std::uint64_t number);
  void take_in();
  [[nodiscard]] bool is_empty() const { return entries_.empty(); }
  /// Returns the number of the entry that will be added next.
  [[nodiscard]] std::uint64_t end() const { return first_ + entries_.size(); }
  [[nodiscard]] const Entry& at(std::uint64_t number) const {
    return entries_[static_cast<std::size_t>(number - first_)];
  }
  /// Copies the elements of an entry that lie in a stretch of its record to the stretch. It needs no lock: a
  /// rank that serves itself runs all jobs in its own calls.
  void place(std::uint64_t number, std::span<const layout::Rows> rows, const layout::Stretch& stretch) const;

 private:
  std::deque<Entry> entries_;
  std::uint64_t first_ = 0;  // number of entries_.front()
};

class LentLaneWriter final : public LaneWriter {
 public:
  explicit LentLaneWriter(std::shared_ptr<LentLane> lane) : lane_(std::move(lane)) {}
  bool put(node::Descriptor descriptor, const std::shared_ptr<const layout::MemoryMap>& map,
           const std::byte* base, bool may_lend) override;
  bool tell(node::Descriptor descriptor, std::span<const std::byte> bytes) override;
  void take_in() override { lane_->take_in(); }
  [[nodiscard]] bool is_drained() const override { return lane_->is_empty(); }

 private:
  std::shared_ptr<LentLane> lane_;
};

class LentLaneReader final : public node::LaneReader {
 public:
  explicit LentLaneReader(std::shared_ptr<LentLane> lane) : lane_(std::move(lane)) {}
  [[nodiscard]] std::uint64_t head() const override { return lane_->end(); }
  [[nodiscard]] const node::Descriptor& at(std::uint64_t number) const override {
    return lane_->at(number).descriptor;
  }
  [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t number, ByteVector& scratch) const override;
  [[nodiscard]] bool may_stay(std::uint64_t number) const override {
    return lane_->at(number).runs().has_value();
  }
  void place(std::uint64_t number, std::span<const layout::Rows> rows,
             const layout::Stretch& stretch) const override {
    lane_->place(number, rows, stretch);
  }
  void release(std::uint64_t number) override { lane_->release(number); }

 private:
  std::shared_ptr<LentLane> lane_;
};

}  // namespace tailrace::pipeline
