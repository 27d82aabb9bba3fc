// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/lane.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

namespace tailrace::node {
namespace {

using Kind = Descriptor::Kind;

/// A node with two servers, on which each lane has room for sixteen pieces of a cache line.
struct Node {
  static constexpr Bytes line = 64;
  static constexpr int pieces = 16;

  struct Lane {
    LaneHeader header;
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<LaneProducer> producer;
    std::unique_ptr<SharedLaneReader> reader;

    Lane(NodeBells& bells, Announcing announcing) {
      header.capacity = least_lane + (pieces - 1) * line;
      header.readers = 2;
      memory.reset(new std::byte[static_cast<std::size_t>(header.capacity)]);
      producer = std::make_unique<LaneProducer>(&header, memory.get(), &bells, announcing);
      reader = std::make_unique<SharedLaneReader>(&header, memory.get(), 0, &bells);
    }
    bool publish(Kind kind, Bytes bytes) {
      if (producer->reserve(bytes) == nullptr) return false;
      Descriptor descriptor;
      descriptor.kind = kind;
      descriptor.bytes = bytes;
      producer->publish(descriptor);
      return true;
    }
    void release(std::uint64_t number) {
      for (int server = 0; server < 2; ++server)
        SharedLaneReader(&header, memory.get(), server).release(number);
    }
  };

  NodeBells bells;
  Lane one, other;
  explicit Node(Announcing announcing) : one(bells, announcing), other(bells, announcing) {}
  /// Counts the rings of this server's bell so far.
  std::uint32_t rings(int server = 0) {
    const std::uint32_t ticket = bells.reader[server].ticket();
    bells.reader[server].cancel();
    return ticket;
  }
};

TEST(Lane, is_refused_where_memory_holds_something_else_or_the_lane_of_another_rank) {
  LaneHeader header;
  header.owner = 3;
  EXPECT_TRUE(header.check(3).is_ok());
  EXPECT_EQ(header.check(2).code(), Code::corrupt);
  header.version = LaneHeader::newest_version + 1;
  EXPECT_EQ(header.check(3).code(), Code::corrupt);
  header.version = LaneHeader::newest_version;
  header.magic = 0;
  EXPECT_EQ(header.check(3).code(), Code::corrupt);
}

/// A server that maps the lane later finds its producer where it stands.
TEST(Lane, keeps_its_producer_s_state_in_its_own_memory) {
  Node node(Announcing::at_once);
  for (int piece = 0; piece < 5; ++piece) ASSERT_TRUE(node.one.publish(Kind::piece, Node::line));
  node.one.release(3);
  node.one.producer = std::make_unique<LaneProducer>(&node.one.header, node.one.memory.get(), &node.bells);
  int more = 0;
  while (node.one.publish(Kind::piece, Node::line)) ++more;
  EXPECT_EQ(more, Node::pieces - 2);
  EXPECT_EQ(node.one.reader->head(), 5U + static_cast<unsigned>(more));
}

/// A lane of 16 MiB of data, of which memory exists as far as it was asked for.
struct GrowingLane {
  static constexpr Bytes piece = Bytes{64} << 10, data = Bytes{16} << 20;
  NodeBells bells;
  LaneHeader header;
  std::vector<std::byte> memory;
  std::unique_ptr<LaneProducer> producer;
  std::unique_ptr<SharedLaneReader> reader;
  Bytes most = data;  // more is refused
  std::vector<Bytes> grown;

  GrowingLane() {
    header.capacity = descriptor_bytes(LaneCut::most_descriptors) + data;
    memory.resize(static_cast<std::size_t>(header.capacity));
    producer = std::make_unique<LaneProducer>(&header, memory.data(), &bells);
    reader = std::make_unique<SharedLaneReader>(&header, memory.data(), 0);
    producer->grow_with([this](Bytes bytes) {
      if (bytes > most) return Status(Code::memory, "no memory left");
      grown.push_back(bytes);
      return Status();
    });
  }
  [[nodiscard]] Bytes there() const { return grown.empty() ? 0 : grown.back(); }
  /// Writes a piece into the lane, which must lie in memory that exists. Returns false if there was no room.
  bool publish(std::byte value) {
    std::byte* const room = producer->reserve(piece);
    if (room == nullptr) return false;
    const Bytes at = room - memory.data() - cut_lane(header.capacity).data_at;
    EXPECT_LE(at + piece, there());
    std::fill_n(room, piece, value);
    Descriptor descriptor;
    descriptor.kind = Kind::piece;
    descriptor.bytes = piece;
    producer->publish(descriptor);
    return true;
  }
  [[nodiscard]] std::byte value_of(std::uint64_t number) const {
    ByteVector scratch;
    return reader->bytes(number, scratch).back();
  }
};

TEST(GrowingLane, grows_no_further_than_its_readers_are_behind) {
  GrowingLane lane;
  ASSERT_TRUE(lane.producer->make_ready(5 << 20).is_ok());
  for (std::uint64_t number = 0; number < 2000; ++number) {
    ASSERT_TRUE(lane.publish(static_cast<std::byte>(number)));
    if (number >= 50) {
      EXPECT_EQ(lane.value_of(number - 50), static_cast<std::byte>(number - 50));
      lane.reader->release(number - 49);
    }
  }
  EXPECT_EQ(lane.grown, std::vector<Bytes>{5 << 20});
}

TEST(GrowingLane, takes_all_of_its_data_where_readers_release_nothing) {
  GrowingLane lane;
  std::uint64_t pieces = 0;
  while (lane.publish(static_cast<std::byte>(pieces))) ++pieces;
  EXPECT_EQ(pieces, static_cast<std::uint64_t>(lane.producer->capacity() / GrowingLane::piece));
  EXPECT_EQ(lane.there(), lane.producer->capacity() / 64 * 64);
  for (std::uint64_t number = 0; number < pieces; ++number)
    ASSERT_EQ(lane.value_of(number), static_cast<std::byte>(number));
}

/// The node has no more memory when servers are behind: the rank waits for them, as if the lane were smaller.
TEST(GrowingLane, waits_for_its_readers_where_it_cannot_grow) {
  GrowingLane lane;
  lane.most = 5 << 20;
  ASSERT_TRUE(lane.producer->make_ready(5 << 20).is_ok());
  EXPECT_EQ(lane.producer->make_ready(6 << 20).code(), Code::memory);
  std::uint64_t number = 0;
  while (lane.publish(static_cast<std::byte>(number))) ++number;
  EXPECT_EQ(number, 80U);
  std::uint64_t released = 0;
  for (int round = 0; round < 300; ++round) {
    ASSERT_FALSE(lane.publish(static_cast<std::byte>(number)));
    EXPECT_EQ(lane.value_of(released), static_cast<std::byte>(released));
    lane.reader->release(++released);
    ASSERT_TRUE(lane.publish(static_cast<std::byte>(number)));
    ++number;
  }
  EXPECT_EQ(lane.there(), 5 << 20);
}

/// A lane that another server may take over.
struct KeepingLane {
  LaneHeader header;
  alignas(64) std::array<std::byte, 1 << 16> memory{};
  std::unique_ptr<LaneProducer> producer;
  std::unique_ptr<SharedLaneReader> reader;

  KeepingLane() {
    header.capacity = (1 << 15);
    header.kept = 1024;
    producer = std::make_unique<LaneProducer>(&header, memory.data(), nullptr);
    reader = std::make_unique<SharedLaneReader>(&header, memory.data(), 0);
  }
  bool define(std::uint32_t stream, std::size_t bytes, std::byte value) {
    Descriptor descriptor;
    descriptor.kind = Kind::define;
    descriptor.stream = stream;
    EXPECT_NE(producer->reserve(0), nullptr);
    if (!producer->keep(descriptor, ByteVector(bytes, value))) return false;
    producer->publish(descriptor);
    return true;
  }
  void fence(std::int64_t number) {
    Descriptor descriptor;
    descriptor.kind = Kind::fence;
    descriptor.step = number;
    EXPECT_NE(producer->reserve(0), nullptr);
    producer->publish(descriptor);
  }
};

TEST(KeepingLane, tells_a_later_server_of_definitions_that_were_read_and_released) {
  KeepingLane lane;
  ASSERT_TRUE(lane.define(1, 100, std::byte{1}));
  lane.fence(1);
  ASSERT_TRUE(lane.define(2, 30, std::byte{2}));
  ASSERT_TRUE(lane.define(1, 50, std::byte{3}));
  lane.reader->release(4);
  SharedLaneReader later(&lane.header, lane.memory.data(), 0);
  EXPECT_EQ(later.position().first, 4U);
  EXPECT_EQ(later.position().fences, 1);
  const std::vector<KeptDefinition> kept = later.kept()->all();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].bytes, ByteVector(100, std::byte{1}));
  EXPECT_EQ(kept[2].bytes, ByteVector(50, std::byte{3}));
  EXPECT_EQ(kept[2].number, 3U);
  EXPECT_EQ(later.kept()->newest_stream(), 2U);
  EXPECT_FALSE(later.lacks_something());
}

TEST(KeepingLane, has_the_fence_before_its_first_descriptor_that_is_not_released) {
  KeepingLane lane;
  for (std::int64_t number = 1; number <= 5; ++number) lane.fence(number);
  lane.reader->release(2);
  EXPECT_EQ(lane.reader->position().fences, 2);
  lane.reader->release(5);
  EXPECT_EQ(lane.reader->position().fences, 5);
}

/// The room of a stream that is over is used again, but not before a server has read its definitions.
TEST(KeepingLane, drops_definitions_once_they_were_read) {
  KeepingLane lane;
  ByteVector scratch;
  ASSERT_TRUE(lane.define(1, 700, std::byte{1}));
  lane.producer->drop(1);
  EXPECT_FALSE(lane.define(2, 700, std::byte{2}));
  EXPECT_TRUE(lane.reader->lacks_something());
  EXPECT_EQ(lane.reader->bytes(0, scratch).size(), 700U);
  EXPECT_EQ(lane.reader->bytes(0, scratch)[699], std::byte{1});
  lane.reader->release(1);
  EXPECT_TRUE(lane.define(3, 400, std::byte{3}));
  EXPECT_EQ(lane.reader->kept()->progress(1), nullptr);
  // A stream that was open has been read: it goes at once, and free blocks are joined.
  lane.reader->kept()->progress(3)->decided = 0;
  lane.producer->drop(3);
  EXPECT_TRUE(lane.define(4, 700, std::byte{4}));
}

TEST(Lane, that_announces_at_once_rings_for_each_descriptor) {
  Node node(Announcing::at_once);
  for (std::uint32_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(node.one.publish(n == 1 ? Kind::begin : Kind::piece, Node::line));
    EXPECT_EQ(node.one.reader->head(), n);
    EXPECT_EQ(node.rings(0), n);
    EXPECT_EQ(node.rings(1), n);
  }
}

TEST(Lane, of_a_patient_rank_is_announced_once_when_anything_but_a_piece_comes) {
  for (const Kind kind : {Kind::end, Kind::close, Kind::farewell, Kind::fence}) {
    Node node(Announcing::patient);
    ASSERT_TRUE(node.one.publish(Kind::begin, 0));
    for (int piece = 0; piece < 5; ++piece) ASSERT_TRUE(node.one.publish(Kind::piece, Node::line));
    EXPECT_EQ(node.one.reader->head(), 0U);
    EXPECT_EQ(node.rings(), 0U);
    ASSERT_TRUE(node.one.publish(kind, 0));
    EXPECT_EQ(node.one.reader->head(), 7U);
    EXPECT_EQ(node.rings(0), 1U);
    EXPECT_EQ(node.rings(1), 1U);
  }
}

TEST(Lane, of_a_patient_rank_is_announced_whenever_half_of_it_waits) {
  Node node(Announcing::patient);
  for (int piece = 1; piece <= Node::pieces; ++piece) {
    ASSERT_TRUE(node.one.publish(Kind::piece, Node::line));
    EXPECT_EQ(node.one.reader->head(), static_cast<std::uint64_t>(piece / 8 * 8)) << piece;
  }
  EXPECT_EQ(node.rings(), 2U);
}

TEST(Lane, of_a_patient_rank_is_announced_whenever_half_of_its_descriptors_wait) {
  Node node(Announcing::patient);
  for (std::uint64_t n = 1; n < LaneCut::least_descriptors / 2; ++n)
    ASSERT_TRUE(node.one.publish(Kind::piece, 0));
  EXPECT_EQ(node.rings(), 0U);
  ASSERT_TRUE(node.one.publish(Kind::piece, 0));
  EXPECT_EQ(node.one.reader->head(), LaneCut::least_descriptors / 2);
}

TEST(Lane, of_a_patient_rank_is_announced_when_the_rank_says_so_and_not_twice) {
  Node node(Announcing::patient);
  node.one.producer->announce();
  EXPECT_EQ(node.rings(), 0U);
  ASSERT_TRUE(node.one.publish(Kind::piece, Node::line));
  for (int times = 0; times < 2; ++times) node.one.producer->announce();
  EXPECT_EQ(node.one.reader->head(), 1U);
  EXPECT_EQ(node.rings(), 1U);
}

/// Servers may need what the other rank has captured before they can make room.
TEST(Lane, without_room_shows_what_all_patient_ranks_of_the_node_have_written_until_there_is_some) {
  Node node(Announcing::patient);
  ASSERT_TRUE(node.other.publish(Kind::piece, Node::line));
  for (int piece = 0; piece < 12; ++piece) ASSERT_TRUE(node.one.publish(Kind::piece, Node::line));
  EXPECT_EQ(node.one.reader->head(), 8U);
  EXPECT_EQ(node.other.reader->head(), 0U);
  const std::uint32_t before = node.rings(1);
  for (int times = 0; times < 3; ++times) EXPECT_FALSE(node.one.publish(Kind::piece, 5 * Node::line));
  EXPECT_GT(node.rings(1), before);
  EXPECT_EQ(node.one.reader->head(), 12U);
  EXPECT_EQ(node.other.reader->head(), 1U);
  ASSERT_TRUE(node.other.publish(Kind::piece, Node::line));
  EXPECT_EQ(node.other.header.head.load(), 2U) << "nobody announces late while somebody is in haste";

  node.one.release(12);
  ASSERT_TRUE(node.one.publish(Kind::piece, 5 * Node::line));
  EXPECT_EQ(node.bells.in_haste.load(), 0U);
  ASSERT_TRUE(node.other.publish(Kind::piece, Node::line));
  EXPECT_EQ(node.other.reader->head(), 2U);
}

TEST(Lane, of_a_patient_rank_is_seen_by_a_server_in_haste) {
  Node node(Announcing::patient);
  ASSERT_TRUE(node.one.publish(Kind::piece, Node::line));
  {
    const Haste haste(node.bells);
    EXPECT_EQ(node.one.reader->head(), 1U);
  }
  EXPECT_EQ(node.one.reader->head(), 0U);
}

}  // namespace
}  // namespace tailrace::node
