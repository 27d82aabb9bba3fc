// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "engine/pipeline/compute/lane_writer.hpp"
#include "ground/comm/line.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/sim/exposed.hpp"
#include "ground/sim/network.hpp"

namespace tailrace::node {
namespace {

using Kind = Descriptor::Kind;
using pipeline::LaneWriter;

/// Room for a few pieces of this suite, so that rings are full soon and turn often.
constexpr Bytes lane_capacity = least_lane + 4096;

/// A lane: the rank's end, the server's end, and what lies between them.
class Lane {
 public:
  virtual ~Lane() = default;
  [[nodiscard]] virtual LaneWriter& lane_writer() = 0;
  [[nodiscard]] virtual LaneReader& reader() = 0;
  /// Moves on everything that is between the two ends.
  virtual void move_on() {}
};

class SharedLane final : public Lane {
 public:
  SharedLane(Announcing announcing, Bytes kept)
      : lines_(static_cast<std::size_t>((lane_capacity + kept) / 64)) {
    std::byte* const memory = lines_.front().bytes;
    header_.capacity = lane_capacity;
    header_.kept = kept;
    lane_writer_ =
        std::make_unique<pipeline::RingLaneWriter>(LaneProducer(&header_, memory, &bells_, announcing));
    reader_ = std::make_unique<SharedLaneReader>(&header_, memory, 0, &bells_);
  }
  LaneWriter& lane_writer() override { return *lane_writer_; }
  LaneReader& reader() override { return *reader_; }
  void move_on() override { lane_writer_->announce(); }

 private:
  struct alignas(64) CacheLine {
    std::byte bytes[64];
  };
  NodeBells bells_;
  LaneHeader header_;
  std::vector<CacheLine> lines_;
  std::unique_ptr<pipeline::RingLaneWriter> lane_writer_;
  std::unique_ptr<SharedLaneReader> reader_;
};

/// Nobody waits here: the test itself moves everything on.
class NoWaiter final : public sim::Waiter {
 public:
  void look() override {}
  void idle(sim::Nanoseconds, const std::string&) override {}
  void park(comm::Doorbell&, std::uint32_t, sim::Nanoseconds) override {}
  void let_others_run() override {}
};

/// A rank, and a server that does not map its lane. The lane's bytes travel in messages, or in gets.
class RemoteLane final : public Lane {
 public:
  explicit RemoteLane(std::uint64_t seed, bool is_exposed = false, Bytes most = LaneReceiver::most_at_once)
      : scheduler_(seed), network_(scheduler_, 2) {
    for (int rank = 0; rank < 2; ++rank) {
      network_.port(rank).connect(waiter_);
      boards_[rank].connect(network_.port(rank));
      lines_[rank] = std::make_unique<comm::Line>(boards_[rank], comm::line_number::session, members_);
    }
    for (std::size_t rank = 0; rank < 2 && is_exposed; ++rank)
      exposed_[rank] = shared_.join(rank, rank == 0 ? PrivateLane::bytes_for(lane_capacity) : 0, [] {});
    const LaneKind kind = is_exposed ? LaneKind::onesided : LaneKind::usual;
    auto lane = is_exposed ? std::make_unique<PrivateLane>(lane_capacity, exposed_[0]->own().data())
                           : std::make_unique<PrivateLane>(lane_capacity);
    auto sender = std::make_unique<LaneSender>(*lane, *lines_[0], 1, kind, exposed_[0].get(), 8);
    const LaneProducer producer(lane->header(), lane->data(), nullptr);
    lane_writer_ = std::make_unique<pipeline::RingLaneWriter>(producer, std::move(lane), std::move(sender));
    receiver_ = std::make_unique<LaneReceiver>(received_, *lines_[1], 0, kind, exposed_[1].get(), most);
    reader_ = std::make_unique<SharedLaneReader>(received_.header(), received_.data(), 0, nullptr, true);
  }
  LaneWriter& lane_writer() override { return *lane_writer_; }
  LaneReader& reader() override { return *reader_; }
  void move_on() override {
    do {
      bring_messages();
      if (exposed_[1]) exposed_[1]->poll();
      receiver_->advance();
      if (const auto credit = receiver_->fresh_credit()) lane_writer_->credit(*credit);
    } while (scheduler_.run_one());
  }
  [[nodiscard]] const sim::SharedExposed& exposed() const { return shared_; }
  /// Has all messages come, and begins no get.
  void bring_all_messages() {
    do bring_messages();
    while (scheduler_.run_one());
  }

 private:
  void bring_messages() {
    lane_writer_->advance();
    for (auto& board : boards_) board.pump();
    while (const auto bytes = lines_[1]->receive_data(0)) {
      Unpacker in(*bytes);
      EXPECT_EQ(in.get<LaneKind>(), receiver_->kind());
      receiver_->take(in);
    }
  }
  NoWaiter waiter_;
  sim::Scheduler scheduler_;
  sim::Network network_;
  std::shared_ptr<const comm::Members> members_ = std::make_shared<const comm::Members>(std::vector{0, 1});
  comm::Switchboard boards_[2];
  std::unique_ptr<comm::Line> lines_[2];
  sim::SharedExposed shared_{scheduler_, 2};
  std::unique_ptr<comm::ExposedMemory> exposed_[2];
  PrivateLane received_{lane_capacity};
  std::unique_ptr<pipeline::RingLaneWriter> lane_writer_;
  std::unique_ptr<LaneReceiver> receiver_;
  std::unique_ptr<SharedLaneReader> reader_;
};

/// The rank is its own server.
class OwnLane final : public Lane {
 public:
  LaneWriter& lane_writer() override { return lane_writer_; }
  LaneReader& reader() override { return reader_; }

 private:
  std::shared_ptr<pipeline::LentLane> lane_ = std::make_shared<pipeline::LentLane>();
  pipeline::LentLaneWriter lane_writer_{lane_};
  pipeline::LentLaneReader reader_{lane_};
};

struct Candidate {
  std::string name;
  std::function<std::unique_ptr<Lane>()> make;
  bool is_bounded = true;          // a rank that is ahead finds no room
  bool may_be_taken_over = false;  // by another server
  bool is_remote = false;          // nobody hears when it is full
};

std::vector<Candidate> candidates() {
  std::vector<Candidate> all{
      {"shared", [] { return std::make_unique<SharedLane>(Announcing::at_once, 0); }},
      {"shared_patient", [] { return std::make_unique<SharedLane>(Announcing::patient, 0); }},
      {"shared_and_kept", [] { return std::make_unique<SharedLane>(Announcing::at_once, 4096); }, true, true},
      {"own_arrays", [] { return std::make_unique<OwnLane>(); }, false}};
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    all.push_back({"remote_seed_" + std::to_string(seed),
                   [seed] { return std::make_unique<RemoteLane>(seed); }, true, false, true});
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    all.push_back({"onesided_seed_" + std::to_string(seed),
                   [seed] {  // the last one cuts each piece
                     return std::make_unique<RemoteLane>(seed, true,
                                                         seed == 3 ? 100 : LaneReceiver::most_at_once);
                   },
                   true, false, true});
  return all;
}

/// Every second element of an array, in two levels.
struct Array {
  static constexpr Index count = 20;
  std::vector<std::int64_t> elements = std::vector<std::int64_t>(4 * count);
  std::shared_ptr<const layout::MemoryMap> map =
      std::make_shared<const layout::MemoryMap>(layout::MemoryMap{8, 2 * count * 8, {{8, {{count, 16}}}}});

  explicit Array(std::int64_t first) { fill(first); }
  void fill(std::int64_t first) { std::iota(elements.begin(), elements.end(), first); }
  [[nodiscard]] const std::byte* base() const { return std::as_bytes(std::span(elements)).data(); }
  [[nodiscard]] static std::vector<std::int64_t> packed(std::int64_t first, Index level) {
    std::vector<std::int64_t> expected;
    for (Index i = 0; i < count; ++i) expected.push_back(first + level * 2 * count + 2 * i + 1);
    return expected;
  }
};

Descriptor described(Kind kind, std::int64_t step) {
  Descriptor descriptor;
  descriptor.kind = kind;
  descriptor.stream = 7;
  descriptor.step = step;
  if (kind != Kind::define) descriptor.lead = 3600 * step;  // a definition's place in the lane
  descriptor.field = static_cast<std::int32_t>(step % 5);
  return descriptor;
}

class LaneReaderConformance : public testing::TestWithParam<Candidate> {
 protected:
  LaneWriter& lane_writer() { return lane->lane_writer(); }
  LaneReader& reader() { return lane->reader(); }
  /// Puts one level of an array whose first element is `first`.
  bool put(Array& array, std::int64_t step, std::int32_t level, bool may_lend = false) {
    Descriptor descriptor = described(Kind::piece, step);
    descriptor.level = level;
    return lane_writer().put(descriptor, array.map, array.base(), may_lend);
  }
  bool tell(Kind kind, std::int64_t step, std::string_view text) {
    return lane_writer().tell(described(kind, step), std::as_bytes(std::span(text)));
  }
  std::vector<std::int64_t> piece(std::uint64_t number) {
    ByteVector scratch;
    const auto bytes = reader().bytes(number, scratch);
    EXPECT_EQ(bytes.size(), static_cast<std::size_t>(reader().at(number).bytes));
    std::vector<std::int64_t> values(bytes.size() / 8);
    std::memcpy(values.data(), bytes.data(), values.size() * 8);
    return values;
  }
  std::string text(std::uint64_t number) {
    ByteVector scratch;
    const auto bytes = reader().bytes(number, scratch);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::unique_ptr<Lane> lane = GetParam().make();
};

TEST_P(LaneReaderConformance, an_empty_lane_has_nothing) {
  lane->move_on();
  EXPECT_EQ(reader().head(), 0U);
  EXPECT_TRUE(lane_writer().is_drained());
  EXPECT_FALSE(reader().is_full());
  EXPECT_FALSE(reader().lacks_something());
}

TEST_P(LaneReaderConformance, descriptors_come_in_the_order_of_the_calls_with_all_that_they_tell) {
  Array array(100);
  ASSERT_TRUE(tell(Kind::begin, 1, ""));
  ASSERT_TRUE(put(array, 2, 0));
  ASSERT_TRUE(put(array, 3, 1));
  ASSERT_TRUE(tell(Kind::end, 4, "a status"));
  lane->move_on();
  ASSERT_EQ(reader().head(), 4U);
  const Kind kinds[] = {Kind::begin, Kind::piece, Kind::piece, Kind::end};
  for (std::uint64_t number = 0; number < 4; ++number) {
    const Descriptor& descriptor = reader().at(number);
    const auto step = static_cast<std::int64_t>(number) + 1;
    EXPECT_EQ(descriptor.kind, kinds[number]) << number;
    EXPECT_EQ(descriptor.stream, 7U);
    EXPECT_EQ(descriptor.step, step);
    EXPECT_EQ(descriptor.lead, 3600 * step);
    EXPECT_EQ(descriptor.field, step % 5);
    EXPECT_EQ(descriptor.level, number == 2 ? 1 : 0);
  }
  EXPECT_EQ(text(0), "");
  EXPECT_EQ(piece(1), Array::packed(100, 0));
  EXPECT_EQ(piece(2), Array::packed(100, 1));
  EXPECT_EQ(text(3), "a status");
}

TEST_P(LaneReaderConformance, numbers_go_on_for_ever_and_bytes_are_exact) {
  Array array(0);
  for (std::int64_t step = 0; step < 1000; ++step) {
    array.fill(1000 * step);
    const auto number = static_cast<std::uint64_t>(2 * step);
    const std::string status(static_cast<std::size_t>(step % 97), static_cast<char>('a' + step % 26));
    ASSERT_TRUE(put(array, step, 1)) << step;
    ASSERT_TRUE(tell(Kind::end, step, status)) << step;
    lane->move_on();
    ASSERT_EQ(reader().head(), number + 2);
    ASSERT_EQ(reader().at(number).step, step);
    ASSERT_EQ(piece(number), Array::packed(1000 * step, 1)) << step;
    ASSERT_EQ(text(number + 1), status) << step;
    reader().release(number + 2);
    lane->move_on();
    ASSERT_TRUE(lane_writer().is_drained());
  }
}

TEST_P(LaneReaderConformance, what_is_not_released_stays_as_it_is) {
  Array array(0);
  constexpr std::int64_t most = 200;
  std::int64_t put_so_far = 0;
  for (std::int64_t first_kept = 0; first_kept < 40; ++first_kept) {
    for (; put_so_far < most; ++put_so_far) {
      array.fill(1000 * put_so_far);
      if (!put(array, put_so_far, 0)) break;
      lane->move_on();
    }
    ASSERT_EQ(put_so_far == most, !GetParam().is_bounded || first_kept + 30 > most);
    ASSERT_EQ(reader().head(), static_cast<std::uint64_t>(put_so_far));
    for (std::int64_t step = first_kept; step < put_so_far; ++step) {
      const auto number = static_cast<std::uint64_t>(step);
      ASSERT_EQ(reader().at(number).step, step);
      ASSERT_EQ(piece(number), Array::packed(1000 * step, 0)) << step << " of " << put_so_far;
    }
    reader().release(static_cast<std::uint64_t>(first_kept) + 1);
    lane->move_on();
  }
}

TEST_P(LaneReaderConformance, a_lane_is_drained_once_everything_is_released) {
  Array array(5);
  EXPECT_TRUE(put(array, 1, 0));
  EXPECT_FALSE(lane_writer().is_drained());
  EXPECT_TRUE(tell(Kind::end, 1, "x"));
  lane->move_on();
  reader().release(1);
  lane->move_on();
  EXPECT_FALSE(lane_writer().is_drained());
  EXPECT_EQ(text(1), "x");
  reader().release(2);
  lane->move_on();
  EXPECT_TRUE(lane_writer().is_drained());
}

TEST_P(LaneReaderConformance, the_array_may_change_after_it_was_put) {
  Array array(50);
  ASSERT_TRUE(put(array, 1, 0));
  array.fill(900);
  ASSERT_TRUE(put(array, 2, 1));
  array.fill(-1);
  lane->move_on();
  EXPECT_EQ(piece(0), Array::packed(50, 0));
  EXPECT_EQ(piece(1), Array::packed(900, 1));
}

TEST_P(LaneReaderConformance, a_lent_array_may_change_after_it_was_taken_in) {
  Array array(50);
  ASSERT_TRUE(put(array, 1, 0, true));
  lane->move_on();
  EXPECT_EQ(piece(0), Array::packed(50, 0));
  lane_writer().take_in();
  array.fill(-1);
  ASSERT_TRUE(put(array, 2, 1, true));
  lane->move_on();
  EXPECT_EQ(piece(0), Array::packed(50, 0));
  EXPECT_EQ(piece(1), Array::packed(-1, 1));
}

/// Puts the parts of a record of one rank together, and returns its elements.
std::vector<std::int64_t> placed(const LaneReader& reader, std::uint64_t number, Index elements) {
  std::vector<std::int64_t> record(static_cast<std::size_t>(elements));
  const layout::Rows rows{0, elements, elements, 1};
  for (layout::Stretch part{0, 0, 8, 1}; part.first < elements; part.first = part.end) {
    part.end = std::min(elements, part.first + 7);
    part.out = reinterpret_cast<std::byte*>(record.data() + part.first);
    reader.place(number, {&rows, 1}, part);
  }
  return record;
}

TEST_P(LaneReaderConformance, a_piece_that_may_stay_gives_the_parts_of_its_record) {
  Array array(50);
  ASSERT_TRUE(put(array, 1, 1));
  array.fill(-1);
  lane->move_on();
  ASSERT_EQ(reader().may_stay(0), !GetParam().is_remote);
  if (GetParam().is_remote) return;
  EXPECT_EQ(placed(reader(), 0, Array::count), Array::packed(50, 1));
}

/// An array that is lent is read where it lies, until it is taken in.
TEST_P(LaneReaderConformance, a_piece_that_may_stay_is_that_of_the_call_or_of_an_array_that_is_lent) {
  constexpr Index columns = 6, rows = 3, pitch = 10;
  std::vector<std::int64_t> field(rows * pitch);
  const auto map = std::make_shared<const layout::MemoryMap>(
      layout::MemoryMap{8, 0, {{16, {{rows, pitch * 8}, {columns, 8}}}}});
  const auto fill = [&](std::int64_t first) {
    std::iota(field.begin(), field.end(), first);
    std::vector<std::int64_t> packed;
    for (Index row = 0; row < rows; ++row)
      for (Index column = 0; column < columns; ++column) packed.push_back(first + row * pitch + column + 2);
    return packed;
  };
  const auto captured = fill(100);
  ASSERT_TRUE(
      lane_writer().put(described(Kind::piece, 1), map, std::as_bytes(std::span(field)).data(), true));
  lane->move_on();
  if (!reader().may_stay(0)) return;
  const auto now = fill(500);
  EXPECT_EQ(placed(reader(), 0, rows * columns), GetParam().is_bounded ? captured : now);
  lane_writer().take_in();
  fill(900);
  EXPECT_EQ(placed(reader(), 0, rows * columns), GetParam().is_bounded ? captured : now);
}

/// A rank that is ahead of its server is refused, and goes on where room was made.
TEST_P(LaneReaderConformance, room_comes_back_when_pieces_are_released) {
  if (!GetParam().is_bounded) {
    EXPECT_EQ(lane_writer().largest_piece(), 0);
    return;
  }
  Array array(0);
  std::uint64_t made = 0;
  while (put(array, static_cast<std::int64_t>(made), 0)) ++made;
  lane->move_on();
  ASSERT_EQ(reader().head(), made) << "what found no room was not published";
  EXPECT_EQ(reader().is_full(), !GetParam().is_remote);
  for (std::uint64_t number = 0; number < 100; ++number) {
    ASSERT_FALSE(put(array, 0, 0)) << number;
    reader().release(number + 1);
    lane->move_on();
    ASSERT_TRUE(put(array, 0, 0)) << number;
    lane->move_on();
    ASSERT_EQ(reader().head(), made + number + 1);
  }
  reader().release(made + 100);
  lane->move_on();
  EXPECT_TRUE(lane_writer().is_drained());
  ASSERT_TRUE(put(array, 0, 0));
  EXPECT_FALSE(reader().is_full());
}

TEST_P(LaneReaderConformance, definitions_have_their_bytes) {
  ASSERT_TRUE(tell(Kind::define, 0, "what the stream is"));
  ASSERT_TRUE(tell(Kind::define, 1, std::string(1000, 'f')));
  ASSERT_TRUE(tell(Kind::fence, 1, ""));
  lane->move_on();
  ASSERT_EQ(reader().head(), 3U);
  EXPECT_EQ(reader().at(1).kind, Kind::define);
  EXPECT_EQ(text(0), "what the stream is");
  EXPECT_EQ(text(1), std::string(1000, 'f'));
  EXPECT_EQ(text(2), "");
}

TEST_P(LaneReaderConformance, only_a_lane_that_may_be_taken_over_keeps_definitions) {
  ASSERT_TRUE(tell(Kind::define, 0, "what the stream is"));
  ASSERT_TRUE(tell(Kind::fence, 1, ""));
  lane->move_on();
  reader().release(2);
  lane->move_on();
  ASSERT_EQ(reader().kept() != nullptr, GetParam().may_be_taken_over);
  EXPECT_FALSE(reader().lacks_something());
  if (!GetParam().may_be_taken_over) return;
  ASSERT_EQ(reader().kept()->all().size(), 1U);
  EXPECT_EQ(reader().kept()->all()[0].bytes.size(), std::string("what the stream is").size());
  EXPECT_EQ(reader().position().first, 2U);
  EXPECT_EQ(reader().position().fences, 1);
  lane_writer().drop(7);
  EXPECT_TRUE(reader().kept()->all().empty());
}

TEST_P(LaneReaderConformance, what_a_later_server_would_need_and_not_find_is_told) {
  if (!GetParam().may_be_taken_over) return;
  ASSERT_TRUE(tell(Kind::begin, 1, ""));
  lane->move_on();
  reader().mark_failed(0);
  EXPECT_EQ(reader().at(0).kind, Kind::begin_failed);
  EXPECT_EQ(reader().at(0).step, 1);
  reader().tear(true);
  EXPECT_TRUE(reader().lacks_something());
  reader().tear(false);
  EXPECT_FALSE(reader().lacks_something());
  reader().release(1);
  std::uint64_t told = 1;
  while (!reader().lacks_something() && told < 100) {
    ASSERT_TRUE(tell(Kind::define, 0, std::string(500, 'd'))) << told;
    EXPECT_EQ(text(told), std::string(500, 'd')) << "one that finds no room beside the ring lies in it";
    reader().release(++told);
  }
  EXPECT_TRUE(reader().lacks_something());
}

TEST_P(LaneReaderConformance, threads_read_side_by_side) {
  std::vector<std::unique_ptr<Array>> arrays;
  for (std::int64_t step = 0; step < 12; ++step) {
    arrays.push_back(std::make_unique<Array>(1000 * step));
    ASSERT_TRUE(put(*arrays.back(), step, 0, true));
  }
  lane->move_on();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      ByteVector scratch;
      for (int i = 0; i < 300; ++i) {
        const auto number = static_cast<std::uint64_t>(i * (thread + 1) % 12);
        const auto bytes = reader().bytes(number, scratch);
        const auto expected = Array::packed(static_cast<std::int64_t>(1000 * number), 0);
        if (bytes.size() != expected.size() * 8 ||
            std::memcmp(bytes.data(), expected.data(), bytes.size()) != 0)
          ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(every_lane_reader, LaneReaderConformance, testing::ValuesIn(candidates()),
                         [](const auto& instance) { return instance.param.name; });

TEST(OneSidedLane, descriptors_come_in_their_order_once_their_bytes_were_got) {
  RemoteLane lane(1, true);
  Array array(100);
  const std::string_view text = "a status";
  ASSERT_TRUE(lane.lane_writer().tell(described(Kind::begin, 1), {}));
  ASSERT_TRUE(lane.lane_writer().put(described(Kind::piece, 1), array.map, array.base(), false));
  ASSERT_TRUE(lane.lane_writer().tell(described(Kind::close, 1), {}));
  lane.bring_all_messages();
  EXPECT_EQ(lane.reader().head(), 1U);
  lane.move_on();
  ASSERT_EQ(lane.reader().head(), 3U);
  ASSERT_TRUE(lane.lane_writer().tell(described(Kind::end, 2), std::as_bytes(std::span(text))));
  lane.bring_all_messages();
  EXPECT_EQ(lane.reader().head(), 3U);
  lane.move_on();
  EXPECT_EQ(lane.reader().head(), 4U);
}

TEST(OneSidedLane, a_piece_that_is_larger_than_a_get_comes_in_several) {
  RemoteLane lane(1, true, 64);
  Array array(100);
  ASSERT_TRUE(lane.lane_writer().put(described(Kind::piece, 1), array.map, array.base(), false));
  lane.move_on();
  ASSERT_EQ(lane.reader().head(), 1U);
  EXPECT_EQ(lane.exposed().most_bytes(), 64);
  EXPECT_EQ(lane.exposed().gets(), 3);  // of 160 bytes
}

}  // namespace
}  // namespace tailrace::node
