// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The last stage of a stream on a server, by itself: which bytes go where, in which writes.
#include "engine/pipeline/server/writing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "engine/pipeline/server/encoding.hpp"
#include "engine/pipeline/server/gathering.hpp"
#include "fibre_world.hpp"
#include "formats/registry/registry.hpp"
#include "ground/sim/disk.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/memory.hpp"
#include "ground/storage/scratch.hpp"

namespace tailrace::sim {
namespace {

using storage::bytes_of;
using storage::Call;
using storage::Fault;
using storage::set_of;

/// One server with a file of 4 bytes, on storage that counts its calls.
struct Site {
  explicit Site(const std::string& method = "") {
    EXPECT_TRUE(storage::put_file(*target, "a", "head").is_ok());
    stream.opening.method_name = method;
  }

  /// Lets the jobs run, and returns what became of them.
  Status settle() {
    do {
      while (scheduler.run_one()) continue;
    } while (threads.poll());
    return std::exchange(told, Status(Code::state, "nothing was told"));
  }
  Status write(std::vector<ByteVector> bytes, std::vector<Bytes> offsets, Bytes committed = 4,
               std::int64_t step = 0) {
    std::vector<pipeline::EncodedRecord> records;
    for (ByteVector& each : bytes) records.push_back({std::move(each)});
    return write(std::move(records), std::move(offsets), committed, step);
  }
  Status write(std::vector<pipeline::EncodedRecord> records, std::vector<Bytes> offsets, Bytes committed,
               std::int64_t step = 0) {
    writing.write({{step, std::move(records)}, "a", std::move(offsets), committed},
                  [this](const Status& status, pipeline::Encoded chunk) {
                    told = status;
                    given_back = std::move(chunk.records);
                  });
    return settle();
  }
  Status sync(std::vector<codec::Patch> patches) {
    writing.sync("a", 0, std::move(patches), done);
    return settle();
  }
  std::string contents() { return storage::contents_of(*target, "a"); }

  FibreWorld world{1, 1};
  Scheduler scheduler{1};
  SimThreads threads{scheduler, 1, nullptr, [] {}};
  std::shared_ptr<storage::FaultyTarget> target = storage::faulty_target(
      on_disk(storage::memory_target(), std::make_shared<Disk>(scheduler, 1e9, 0)), {});
  pipeline::OpenFiles files{target};
  pipeline::Statistics statistics;
  exchange::Roster roster;
  comm::Line line{world.board(0), comm::line_number::session,
                  std::make_shared<const comm::Members>(std::vector<int>{0})};
  pipeline::Context context{line, roster, 0, threads, files, {}, 0, 0, statistics, {}};
  pipeline::OpenStream stream{context, {}};
  pipeline::Writing writing{stream};
  Status told;
  std::vector<pipeline::EncodedRecord> given_back;
  const pipeline::Writing::Done done = [this](const Status& status) { told = status; };
};

TEST(sim_writing, records_that_follow_one_another_are_one_write) {
  Site site;
  site.target->restart({0, Fault::io_error, set_of(Call::write)});
  const Status status = site.write(
      {bytes_of("ab"), bytes_of("cde"), bytes_of("xy"), bytes_of("z"), bytes_of("mn")}, {4, 6, 20, 22, 12});
  EXPECT_TRUE(status.is_ok()) << status.text();
  EXPECT_EQ(site.contents(), std::string("headabcde\0\0\0mn\0\0\0\0\0\0xyz", 23));
  EXPECT_EQ(site.target->calls(), 3);
  EXPECT_EQ(site.stream.counters().encoded_bytes, 10);
  EXPECT_EQ(site.given_back.size(), 5U);
  EXPECT_EQ(site.given_back.at(1).bytes, bytes_of("cde"));
}

/// A record whose values are put together as they are written: byte i is i + `first`.
pipeline::EncodedRecord values(Bytes size, Bytes element, Bytes first) {
  pipeline::EncodedRecord record;
  record.size = size;
  record.element = element;
  record.put_together = [element, first](Bytes begin, Bytes end, std::byte* out) {
    EXPECT_TRUE(begin % element == 0 && end % element == 0 && begin < end);
    for (Bytes i = begin; i < end; ++i) *out++ = static_cast<std::byte>((i + first) % 251);
  };
  return record;
}

TEST(sim_writing, values_are_put_together_and_written_part_by_part) {
  Site site;
  site.target->restart({0, Fault::io_error, set_of(Call::write)});
  std::vector<pipeline::EncodedRecord> records;
  const std::vector<std::pair<Bytes, Bytes>> sizes{{3, 1}, {800'000, 16}, {8, 8}, {300'000, 4}};
  std::string expected = "head";
  std::vector<Bytes> offsets;
  for (const auto& [size, element] : sizes) {
    records.push_back(values(size, element, static_cast<Bytes>(offsets.size())));
    offsets.push_back(static_cast<Bytes>(expected.size()));
    for (Bytes i = 0; i < size; ++i)
      expected += static_cast<char>((i + static_cast<Bytes>(offsets.size()) - 1) % 251);
  }
  records.push_back({bytes_of("bytes")});  // right behind, and then values behind a gap
  offsets.push_back(static_cast<Bytes>(expected.size()));
  expected += "bytes";
  records.push_back(values(100, 4, 0));
  offsets.push_back(static_cast<Bytes>(expected.size()) + 10);
  expected += std::string(10, '\0');
  for (int i = 0; i < 100; ++i) expected += static_cast<char>(i);
  ASSERT_TRUE(site.write(std::move(records), offsets, 4).is_ok());
  EXPECT_TRUE(site.contents() == expected);
  // 1,100,011 bytes of values in parts of at most 256 KiB, whose last elements may be left to the next part.
  EXPECT_EQ(site.target->calls(), 5 + 2);
  EXPECT_EQ(site.stream.counters().encoded_bytes, 1'100'011 + 5 + 100);
}

TEST(sim_writing, a_part_of_values_that_fails_fails_the_write) {
  for (const int nth : {1, 3, 4}) {
    Site site;
    site.target->restart({nth, Fault::io_error, set_of(Call::write)});
    std::vector<pipeline::EncodedRecord> records;
    records.push_back(values(1'000'000, 4, 0));
    EXPECT_EQ(site.write(std::move(records), {4}, 4).code(), Code::io);
    EXPECT_EQ(site.target->calls(), nth);
  }
}

TEST(sim_writing, nothing_is_written_behind_the_end_of_a_file_that_was_cut) {
  Site site;
  site.target->restart({0, Fault::io_error, set_of(Call::write)});
  EXPECT_EQ(site.write({bytes_of("ab")}, {5}, 5).code(), Code::corrupt);
  EXPECT_EQ(site.target->calls(), 0);
}

TEST(sim_writing, patches_are_written_before_the_sync_as_often_as_they_say) {
  Site site;
  site.target->restart({0, Fault::io_error, set_of(Call::write, Call::sync)});
  const Status status = site.sync({{4, bytes_of("abc"), 1}, {10, bytes_of("xy"), 3}, {8, bytes_of("!"), 0}});
  EXPECT_TRUE(status.is_ok()) << status.text();
  EXPECT_EQ(site.contents(), std::string("headabc\0\0\0xyxyxy", 16));
  EXPECT_EQ(site.target->calls(), 3);
}

/// Bytes of the file in memory: no write may need more than 1 MiB.
TEST(sim_writing, bytes_that_are_repeated_often_are_written_in_pieces) {
  constexpr int times = 1'000'000;
  Site site;
  site.target->restart({0, Fault::io_error, set_of(Call::write)});
  ASSERT_TRUE(site.sync({{4, bytes_of("abc"), times}}).is_ok());
  EXPECT_EQ(site.target->calls(), 3);
  std::string expected = "head";
  for (int i = 0; i < times; ++i) expected += "abc";
  EXPECT_TRUE(site.contents() == expected);
}

TEST(sim_writing, a_patch_that_fails_fails_the_step_before_its_sync) {
  for (const int nth : {1, 2}) {
    Site site;
    site.target->restart({nth, Fault::io_error, set_of(Call::write, Call::sync)});
    EXPECT_EQ(site.sync({{4, bytes_of("abc"), 1}, {10, bytes_of("xy"), 3}}).code(), Code::io);
    EXPECT_EQ(site.target->calls(), nth);
  }
}

TEST(sim_writing, memory_of_records_is_used_again_by_those_of_its_size) {
  BytePool pool;
  ByteVector first = pool.take(1000, 9999), second = pool.take(1000, 9999), other = pool.take(10, 9999);
  const std::byte* const memory = second.data();
  pool.give_back(std::move(first));
  pool.give_back(std::move(other));
  pool.give_back(std::move(second));
  EXPECT_EQ(pool.size(), 2010);
  EXPECT_EQ(pool.take(1000, 9999).data(), memory) << "the last one is in the caches";
  EXPECT_EQ(pool.take(11, 9999).size(), 11U);
  EXPECT_EQ(pool.size(), 1010);
  pool.give_back(ByteVector(500));
  EXPECT_EQ(pool.take(500, 0).size(), 500U);
  EXPECT_EQ(pool.size(), 1010) << "nothing is freed where nothing is allocated";
  pool.give_back(ByteVector(500));
  EXPECT_EQ(pool.take(11, 1200).size(), 11U);
  EXPECT_EQ(pool.size(), 510) << "the oldest go before more is allocated";
  pool.shrink(510);
  EXPECT_EQ(pool.size(), 510);
  pool.shrink(499);
  EXPECT_EQ(pool.size(), 0);
  ByteVector shorter = pool.take(1000, 9999);
  const std::byte* const same = shorter.data();
  shorter.resize(900);
  pool.give_back(std::move(shorter));
  EXPECT_EQ(pool.size(), 1000) << "all of its memory counts";
  const ByteVector again = pool.take(950, 9999);
  EXPECT_EQ(again.data(), same);
  EXPECT_EQ(again.size(), 950U);
  EXPECT_EQ(pool.kept(950, 9999).capacity(), 0U) << "allocates nothing";
}

TEST(sim_writing, memory_kept_for_records_counts_against_the_workspace_and_shrinks_with_it) {
  Site site;
  site.roster = {{0}, {0}, {0}, {0}, {0}, {1}, true};
  site.context.workspace = 120;
  site.context.streams = 1;
  codec::StreamDefinition definition;
  definition.format = "raw";
  definition.base = {2026, 3, 1, 0, 0, 0};
  site.stream.codec = *formats::make_codec(definition);
  std::vector<Bytes> sizes;
  for (const Index elements : {12, 6}) {  // too short for parts: the records are put together in memory
    codec::FieldDefinition field;
    field.name = elements == 12 ? "a" : "b";
    field.shape = {elements};
    ASSERT_TRUE(site.stream.codec->define(field).is_ok());
    sizes.push_back(site.stream.codec->encoded_bound(static_cast<int>(sizes.size())));
    site.stream.opening.fields.push_back(field);
    site.stream.opening.layout_of.push_back(static_cast<int>(site.stream.plans.size()));
    site.stream.plans.emplace_back(*layout::Layout::block(field.shape, 1), site.roster, 0);
  }
  pipeline::Encoding encoding(site.stream);
  std::uint64_t chunk = 0;
  const auto encode = [&](std::int32_t field) {
    pipeline::SequenceEntry record{pipeline::SequenceEntry::Kind::record, field};
    record.chunk = ++chunk;
    encoding.announce(record);
    encoding.take({chunk, record, 0, false, {}});
    (void)site.settle();
    encoding.forget(chunk, encoding.hand_on(chunk));
  };
  encode(0);
  EXPECT_EQ(encoding.kept(), sizes[0]);
  encode(1);
  EXPECT_EQ(encoding.kept(), sizes[0] + sizes[1]);
  EXPECT_EQ(site.stream.counters().workspace_peak, sizes[0] + sizes[1]);
  site.context.streams = 3;
  encoding.shrink_pool();
  EXPECT_EQ(encoding.kept(), sizes[1]) << "a third of the workspace holds no record of the first field";
}

/// A lane with one level of a field after the other, all elements of which are the level's number.
class FakeLane final : public node::LaneReader {
 public:
  explicit FakeLane(Index elements) : elements_(static_cast<std::size_t>(elements)) {}

  [[nodiscard]] std::uint64_t head() const override { return 100; }
  [[nodiscard]] const node::Descriptor& at(std::uint64_t) const override { return descriptor_; }
  [[nodiscard]] std::span<const std::byte> bytes(std::uint64_t number, ByteVector& scratch) const override {
    const std::vector<float> values(elements_, static_cast<float>(number));
    const auto bytes = std::as_bytes(std::span(values));
    scratch.assign(bytes.begin(), bytes.end());
    return scratch;
  }
  [[nodiscard]] bool may_stay(std::uint64_t) const override { return true; }
  void place(std::uint64_t number, std::span<const layout::Rows> rows,
             const layout::Stretch& part) const override {
    ByteVector scratch;
    const auto piece = bytes(number, scratch);
    layout::place_stretch(rows, {piece.data(), {}, static_cast<Bytes>(piece.size())}, part);
  }
  void release(std::uint64_t number) override { released = number; }
  [[nodiscard]] bool is_full() const override { return full; }

  bool full = false;
  std::uint64_t released = 0;

 private:
  std::size_t elements_;
  node::Descriptor descriptor_;
};

/// A server with one field of raw float32 records. The pieces of the first rank lie in a lane; each other
/// rank has a node and a server of its own.
struct StayingSite : Site {
  static constexpr Index elements = 20;
  static constexpr Bytes record_bytes = 4 * elements;

  explicit StayingSite(int ranks = 1, const std::string& format = "raw") {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    roster = {all, all, all, all, all, std::vector<char>(all.size(), 1), true};
    context.streams = 1;
    codec::StreamDefinition definition;
    definition.format = format;
    definition.base = {2026, 3, 1, 0, 0, 0};
    stream.codec = *formats::make_codec(definition);
    codec::FieldDefinition field;
    field.name = "a";
    field.shape = {ranks * elements};
    EXPECT_TRUE(stream.codec->define(field).is_ok());
    stream.opening.fields.push_back(field);
    stream.opening.layout_of.push_back(0);
    stream.plans.emplace_back(*layout::Layout::block(field.shape, ranks), roster, 0);
    auto made = std::make_unique<FakeLane>(elements);
    lane = made.get();
    context.lanes.emplace(0, pipeline::LaneCursor(std::move(made)));
  }
  void take(pipeline::Encoding& encoding, std::uint64_t chunk) {
    pipeline::SequenceEntry record{pipeline::SequenceEntry::Kind::record, 0};
    record.chunk = chunk;
    const std::uint64_t number = context.lanes.at(0).pass();
    encoding.announce(record);
    encoding.take({number, record, 0, false, {{0, number, true}}});
  }
  static ByteVector record_of(int number) {
    const std::vector<float> values(elements, static_cast<float>(number));
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }

  FakeLane* lane = nullptr;
};

/// Registers an encoder that makes 24 bytes of each record.
std::string format_of_few_bytes() {
  static const tr_encoder functions{
      sizeof(tr_encoder),
      [](const tr_record* record, tr_encoded* out, void*, void*) {
        return tr_encoded_append(out, record->values, 24);
      },
      [](const tr_record*, tr_encoded*, void*) -> std::int64_t { return StayingSite::record_bytes; },
      nullptr,
      nullptr,
      nullptr};
  EXPECT_TRUE(formats::register_encoder("few_bytes", &functions, nullptr).is_ok());
  return "few_bytes";
}

TEST(sim_writing, a_record_that_becomes_small_lies_in_memory_of_its_size_and_all_memory_is_used_again) {
  StayingSite site(1, format_of_few_bytes());
  site.context.workspace = 1000;
  pipeline::Encoding encoding(site.stream);
  const std::byte* memory = nullptr;
  for (std::uint64_t chunk = 1; chunk <= 3; ++chunk) {
    site.take(encoding, chunk);
    EXPECT_EQ(encoding.kept(), chunk == 1 ? 0 : 24);
    (void)site.settle();
    EXPECT_EQ(encoding.kept(), StayingSite::record_bytes) << "what it was encoded in";
    pipeline::Encoded encoded = encoding.hand_on(chunk);
    const ByteVector& bytes = encoded.records.at(0).bytes;
    EXPECT_EQ(bytes.size(), 24U);
    EXPECT_LE(bytes.capacity(), 27U);
    if (chunk > 1) {
      EXPECT_EQ(bytes.data(), memory);
    }
    memory = bytes.data();
    encoding.forget(chunk, std::move(encoded));
    EXPECT_EQ(encoding.kept(), StayingSite::record_bytes + 24);
  }
  EXPECT_EQ(site.stream.counters().workspace_peak, StayingSite::record_bytes + 24);
}

TEST(sim_writing, values_stay_in_their_lane_until_they_are_written) {
  StayingSite site;
  site.context.workspace = 10 * StayingSite::record_bytes;
  pipeline::Encoding encoding(site.stream);
  site.take(encoding, 1);
  site.take(encoding, 1);
  EXPECT_FALSE(encoding.make_room()) << "nobody waits for room";
  EXPECT_EQ(site.lane->released, 0U);
  EXPECT_EQ(encoding.kept(), 0);
  pipeline::Encoded chunk = encoding.hand_on(1);
  ASSERT_EQ(chunk.size(), 2 * StayingSite::record_bytes);
  for (int i = 0; i < 2; ++i) {
    ByteVector got(StayingSite::record_bytes);
    chunk.records[static_cast<std::size_t>(i)].put_together(0, 40, got.data());
    chunk.records[static_cast<std::size_t>(i)].put_together(40, 80, got.data() + 40);
    EXPECT_EQ(got, StayingSite::record_of(i));
  }
  site.lane->full = true;
  EXPECT_FALSE(encoding.make_room()) << "what is being written stays where it is";
  encoding.forget(1, std::move(chunk));
  EXPECT_EQ(site.lane->released, 2U);
  EXPECT_EQ(site.stream.counters().workspace_peak, 0);
}

TEST(sim_writing, values_leave_the_lane_of_a_rank_that_waits_for_room_as_far_as_the_workspace_has_some) {
  StayingSite site;
  site.context.workspace = 3 * StayingSite::record_bytes;
  pipeline::Encoding encoding(site.stream);
  for (const std::uint64_t chunk : {1, 1, 2, 2}) site.take(encoding, chunk);
  site.lane->full = true;
  EXPECT_TRUE(encoding.make_room());
  EXPECT_EQ(site.lane->released, 0U) << "workers move them";
  EXPECT_FALSE(encoding.is_idle());
  (void)site.settle();
  EXPECT_TRUE(encoding.is_idle());
  EXPECT_EQ(site.lane->released, 3U) << "one record of the second chunk finds no room";
  EXPECT_FALSE(encoding.make_room());
  pipeline::Encoded first = encoding.hand_on(1);
  EXPECT_EQ(first.records.at(1).bytes, StayingSite::record_of(1));
  EXPECT_FALSE(first.records.at(1).put_together);
  encoding.forget(1, std::move(first));
  EXPECT_TRUE(encoding.make_room()) << "the oldest chunk has room in any case";
  (void)site.settle();
  EXPECT_EQ(site.lane->released, 4U);
  pipeline::Encoded second = encoding.hand_on(2);
  EXPECT_EQ(second.records.at(0).bytes, StayingSite::record_of(2));
  EXPECT_EQ(second.records.at(1).bytes, StayingSite::record_of(3));
  encoding.forget(2, std::move(second));
  EXPECT_EQ(site.stream.counters().workspace_peak, 3 * StayingSite::record_bytes);
}

/// The writing comes to a record before the worker does, while the worker is at it, or after it.
TEST(sim_writing, values_are_written_once_whichever_of_worker_and_writing_comes_first) {
  StayingSite site;
  site.context.workspace = 10 * StayingSite::record_bytes;
  pipeline::Encoding encoding(site.stream);
  for (const std::uint64_t chunk : {1, 2, 3}) site.take(encoding, chunk);
  site.lane->full = true;
  ASSERT_TRUE(encoding.make_room());
  pipeline::Encoded first = encoding.hand_on(1);
  first.records.at(0).settle();
  EXPECT_TRUE(first.records.at(0).put_together) << "the worker has not begun";
  ByteVector got(StayingSite::record_bytes);
  first.records.at(0).put_together(0, StayingSite::record_bytes, got.data());
  EXPECT_EQ(got, StayingSite::record_of(0));
  pipeline::Encoded second = encoding.hand_on(2);
  while (site.scheduler.run_one()) continue;  // the worker is done, and the server does not know yet
  second.records.at(0).settle();
  EXPECT_FALSE(second.records.at(0).put_together);
  EXPECT_EQ(second.records.at(0).bytes, StayingSite::record_of(1));
  encoding.forget(2, std::move(second));
  EXPECT_FALSE(encoding.is_idle());
  while (site.threads.poll()) continue;
  EXPECT_TRUE(encoding.is_idle());
  EXPECT_EQ(site.lane->released, 0U) << "the first is still being written";
  encoding.forget(1, std::move(first));
  EXPECT_EQ(site.lane->released, 3U);
  encoding.forget(3, encoding.hand_on(3));
  EXPECT_EQ(encoding.kept(), 3 * StayingSite::record_bytes);
  site.take(encoding, 4);
  EXPECT_TRUE(encoding.make_room()) << "nothing else counts any more";
  encoding.forget(4, encoding.hand_on(4));
  (void)site.settle();
  EXPECT_TRUE(encoding.is_idle());
  EXPECT_EQ(site.lane->released, 4U) << "a record that is dropped is not moved";
}

TEST(sim_writing, a_claim_has_one_owner_and_waits_for_a_move_that_has_begun) {
  for (int i = 0; i < 200; ++i) {
    pipeline::Claim claim;
    int value = 0;
    bool moved = false;
    std::thread mover([&] {
      if (!claim.begin_move()) return;
      value = 1;
      claim.end_move();
    });
    if (i % 2 == 0) std::this_thread::yield();
    moved = claim.take();
    EXPECT_EQ(value, moved ? 1 : 0);
    EXPECT_FALSE(claim.begin_move());
    mover.join();
  }
}

/// Two ranks, the lane of one of which another server reads. That one sends the pieces in messages.
struct SentSite : StayingSite {
  SentSite() : StayingSite(2) {}

  /// Gathers a record of a chunk of its own. The sent piece is `value` everywhere.
  void gather(std::uint64_t number, float value) {
    pipeline::SequenceEntry record{pipeline::SequenceEntry::Kind::record, 0};
    record.chunk = number;
    gathering.announce(record, 0);
    gathering.take(0, number);
    const std::vector<float> values(elements, value);
    Packer out;
    out.put(number).put(false).put(std::int32_t{1}).put(1).put_bytes(std::as_bytes(std::span(values)));
    const auto message = std::make_shared<const ByteVector>(out.take());
    messages.push_back(message);
    gathering.take_sent(1, Unpacker(*message), message);
    EXPECT_TRUE(gathering.advance());
  }
  static ByteVector sent_record(int number, float value) {
    ByteVector record = record_of(number);
    const std::vector<float> values(elements, value);
    const auto sent = std::as_bytes(std::span(values));
    record.insert(record.end(), sent.begin(), sent.end());
    return record;
  }

  pipeline::Encoding encoding{stream};
  pipeline::Gathering gathering{stream, encoding};
  std::vector<std::weak_ptr<const ByteVector>> messages;
};

TEST(sim_writing, sent_pieces_stay_in_the_memory_of_their_message_until_they_are_written) {
  SentSite site;
  site.context.workspace = 10 * StayingSite::record_bytes;
  site.gather(0, 70);
  EXPECT_FALSE(site.messages[0].expired());
  EXPECT_EQ(site.stream.counters().workspace_peak, StayingSite::record_bytes) << "the message counts";
  pipeline::Encoded chunk = site.encoding.hand_on(0);
  ASSERT_EQ(chunk.size(), 2 * StayingSite::record_bytes);
  ByteVector got(2 * StayingSite::record_bytes);
  for (const auto& [first, end] : {std::pair{0, 40}, {40, 76}, {76, 84}, {84, 160}})
    chunk.records[0].put_together(first, end, got.data() + first);
  EXPECT_EQ(got, SentSite::sent_record(0, 70));
  site.encoding.forget(0, std::move(chunk));
  EXPECT_TRUE(site.messages[0].expired());
  EXPECT_EQ(site.lane->released, 1U);
}

TEST(sim_writing, sent_pieces_free_their_message_when_they_move_into_the_workspace) {
  SentSite site;
  site.context.workspace = 3 * StayingSite::record_bytes;
  site.gather(0, 70);
  site.gather(1, 71);
  site.lane->full = true;
  EXPECT_TRUE(site.encoding.make_room());
  (void)site.settle();
  EXPECT_TRUE(site.messages[0].expired());
  EXPECT_FALSE(site.messages[1].expired()) << "the workspace holds one record and this message";
  EXPECT_EQ(site.stream.counters().workspace_peak, 3 * StayingSite::record_bytes);
  pipeline::Encoded first = site.encoding.hand_on(0);
  EXPECT_EQ(first.records[0].bytes, SentSite::sent_record(0, 70));
  site.encoding.forget(0, std::move(first));
  pipeline::Encoded second = site.encoding.hand_on(1);
  ByteVector got(2 * StayingSite::record_bytes);
  second.records[0].put_together(0, 160, got.data());
  EXPECT_EQ(got, SentSite::sent_record(1, 71));
  site.encoding.forget(1, std::move(second));
  EXPECT_TRUE(site.messages[1].expired());
  EXPECT_EQ(site.lane->released, 2U);
}

/// Returns how often the write of a step opens the file: once to look whether it is whole, and once more if
/// it is not open.
std::int64_t opens_of(Site& site, std::int64_t step, Bytes offset) {
  site.target->restart({0, Fault::io_error, set_of(Call::open)});
  EXPECT_TRUE(site.write({bytes_of("step")}, {offset}, offset, step).is_ok());
  return site.target->calls();
}

void tell(Site& site, std::int64_t step, const Status& verdict) {
  site.writing.on_verdict(step, verdict);
  EXPECT_EQ(site.settle().code(), Code::state);
}

// The root has cut off what the step has written. On a full disk its space must be free at once.
TEST(sim_writing, closes_a_file_when_a_step_in_it_has_failed) {
  const Status failed(Code::space, "another server has no space");
  Site site;
  EXPECT_EQ(opens_of(site, 0, 4), 2);
  tell(site, 0, {});
  EXPECT_EQ(opens_of(site, 1, 8), 1) << "the next step goes on with it";
  tell(site, 1, failed);
  EXPECT_EQ(opens_of(site, 2, 8), 2);
  tell(site, 1, failed);
  EXPECT_EQ(opens_of(site, 3, 12), 1) << "that was no news";
  EXPECT_EQ(site.contents(), "headstepstepstep");
}

// A file that is closed does not synchronise what was written to it.
TEST(sim_writing, closes_a_file_with_bytes_of_a_later_step_behind_that_one) {
  Site site;
  EXPECT_EQ(opens_of(site, 0, 4), 2);
  EXPECT_EQ(opens_of(site, 1, 4), 1);
  tell(site, 0, Status(Code::io, "another server has failed"));
  EXPECT_EQ(opens_of(site, 2, 8), 1);
  tell(site, 1, {});
  EXPECT_EQ(opens_of(site, 3, 12), 1);
  tell(site, 2, {});
  tell(site, 3, {});
  EXPECT_EQ(opens_of(site, 4, 16), 2);
}

/// A server with several writes under way. The disk makes each of them when somebody waits for it.
struct OverlappedSite : Site {
  OverlappedSite() : Site("writer_aio") { target->restart({0, Fault::io_error, set_of(Call::write)}); }

  /// Queues a chunk of one record of 4 bytes, which goes behind those before it.
  void queue(const std::string& text, std::int64_t step = 0, Bytes committed = 4) {
    std::vector<pipeline::EncodedRecord> records;
    records.push_back({bytes_of(text)});
    writing.write({{step, std::move(records)}, "a", {end}, committed},
                  [this, text](const Status& status, pipeline::Encoded chunk) {
                    EXPECT_EQ(chunk.records.at(0).bytes, bytes_of(text));
                    outcomes.emplace_back(text, status);
                  });
    end += static_cast<Bytes>(text.size());
  }
  /// Runs the jobs that are queued. Nobody hears of their ends.
  void run_jobs() {
    while (scheduler.run_one()) continue;
  }

  Bytes end = 4;
  std::vector<std::pair<std::string, Status>> outcomes;
};

TEST(sim_writing, two_chunks_of_a_file_are_under_way) {
  OverlappedSite site;
  for (const char* const text : {"one.", "two.", "tri.", "for."}) site.queue(text);
  site.run_jobs();
  EXPECT_EQ(site.target->calls(), 4) << "all have begun";
  EXPECT_EQ(site.contents(), "headone.two.") << "the last two are under way";
  (void)site.settle();
  EXPECT_EQ(site.contents(), "headone.two.tri.for.");
  ASSERT_EQ(site.outcomes.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(site.outcomes[i].first, std::vector<std::string>({"one.", "two.", "tri.", "for."})[i]);
    EXPECT_TRUE(site.outcomes[i].second.is_ok());
  }
  EXPECT_EQ(site.stream.counters().encoded_bytes, 16);
}

TEST(sim_writing, a_chunk_that_comes_alone_is_waited_for) {
  OverlappedSite site;
  for (const char* const text : {"one.", "two."}) {
    site.queue(text);
    (void)site.settle();
    EXPECT_EQ(site.outcomes.back().first, text);
  }
  EXPECT_EQ(site.contents(), "headone.two.");
}

TEST(sim_writing, of_chunks_that_are_under_way_the_one_fails_whose_write_has_failed) {
  for (int nth = 1; nth <= 4; ++nth) {
    OverlappedSite site;
    site.target->restart({nth, Fault::io_error, set_of(Call::write)});
    for (const char* const text : {"one.", "two.", "tri.", "for."}) site.queue(text);
    (void)site.settle();
    ASSERT_EQ(site.outcomes.size(), 4U);
    for (int i = 0; i < 4; ++i) {
      const Status& status = site.outcomes[static_cast<std::size_t>(i)].second;
      EXPECT_EQ(status.code(), i + 1 == nth ? Code::io : Code::ok) << nth << ": " << status.text();
    }
  }
}

TEST(sim_writing, a_chunk_without_space_is_written_once_more_if_the_stream_waits_for_room) {
  for (const bool waits : {false, true}) {
    OverlappedSite site;
    if (waits) site.stream.opening.policy.wait_for_space_seconds = 3600;
    site.target->restart({2, Fault::no_space, set_of(Call::write)});
    for (const char* const text : {"one.", "two.", "tri."}) site.queue(text);
    (void)site.settle();
    ASSERT_EQ(site.outcomes.size(), 3U);
    EXPECT_EQ(site.outcomes[1].second.code(), waits ? Code::ok : Code::space);
    EXPECT_TRUE(site.outcomes[2].second.is_ok());
    EXPECT_EQ(site.stream.counters().space_waits, waits ? 1 : 0);
    if (waits) {
      EXPECT_EQ(site.contents(), "headone.two.tri.");
    }
  }
}

TEST(sim_writing, a_sync_covers_chunks_that_are_under_way) {
  OverlappedSite site;
  site.queue("one.");
  site.queue("two.", 1);
  Status synced(Code::state, "not yet");
  site.writing.sync("a", 0, {{100, bytes_of("!"), 1}}, [&](const Status& status) { synced = status; });
  site.run_jobs();
  EXPECT_EQ(site.contents().substr(0, 12), "headone.two.");
  (void)site.settle();
  EXPECT_TRUE(synced.is_ok()) << synced.text();
  EXPECT_EQ(site.outcomes.size(), 2U);
}

TEST(sim_writing, no_chunk_is_begun_behind_the_end_of_a_file_that_was_cut) {
  OverlappedSite site;
  site.queue("one.", 0, 5);
  (void)site.settle();
  ASSERT_EQ(site.outcomes.size(), 1U);
  EXPECT_EQ(site.outcomes[0].second.code(), Code::corrupt);
  EXPECT_EQ(site.target->calls(), 0);
}

TEST(sim_writing, values_that_are_put_together_stand_among_chunks_that_are_under_way) {
  OverlappedSite site;
  site.queue("one.");
  std::vector<pipeline::EncodedRecord> records;
  records.push_back(values(300'000, 4, 0));
  const Status status = site.write(std::move(records), {8}, 4);
  EXPECT_TRUE(status.is_ok()) << status.text();
  EXPECT_EQ(site.outcomes.size(), 1U);
  EXPECT_EQ(site.contents().substr(0, 8), "headone.");
  EXPECT_EQ(site.contents().size(), 300'008U);
}

}  // namespace
}  // namespace tailrace::sim
