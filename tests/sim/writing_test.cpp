// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The last stage of a stream on a server, by itself: which bytes go where, in which writes.
#include "stages/writing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fibre_world.hpp"
#include "formats/registry.hpp"
#include "sim/disk.hpp"
#include "stages/encoding.hpp"
#include "storage/faulty.hpp"
#include "storage/memory.hpp"
#include "storage/scratch.hpp"

namespace tailrace::sim {
namespace {

using storage::bytes_of;
using storage::Call;
using storage::Fault;
using storage::set_of;

/// One server with a file of 4 bytes, on storage that counts its calls.
struct Site {
  Site() { EXPECT_TRUE(storage::put_file(*target, "a", "head").is_ok()); }

  /// Lets the jobs run, and returns what became of them.
  Status settle() {
    while (scheduler.run_one()) continue;
    while (threads.poll()) continue;
    return std::exchange(told, Status(Code::state, "nothing was told"));
  }
  Status write(std::vector<ByteVector> records, std::vector<Bytes> offsets, Bytes committed = 4,
               std::int64_t step = 0) {
    writing.write({{step, std::move(records)}, "a", std::move(offsets), committed},
                  [this](const Status& status, stages::Encoded chunk) {
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
  std::shared_ptr<storage::FaultyTarget> target = storage::faulty_target(storage::memory_target(), {});
  pipeline::OpenFiles files{target};
  pipeline::Statistics statistics;
  exchange::Roster roster;
  comm::Line line{world.board(0), comm::line_number::session,
                  std::make_shared<const comm::Members>(std::vector<int>{0})};
  pipeline::Context context{line, roster, 0, threads, files, {}, 0, 0, statistics, {}};
  stages::OpenStream stream{context, {}};
  stages::Writing writing{stream};
  Status told;
  std::vector<ByteVector> given_back;
  const stages::Writing::Done done = [this](const Status& status) { told = status; };
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
  EXPECT_EQ(site.given_back.at(1), bytes_of("cde"));
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
  stages::RecordPool pool;
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
}

TEST(sim_writing, memory_kept_for_records_counts_against_the_workspace_and_shrinks_with_it) {
  Site site;
  site.roster = {{0}, {0}, {0}, {0}, {0}, {1}, true};
  site.context.workspace = 2000;
  site.context.streams = 1;
  codec::StreamDefinition definition;
  definition.format = "raw";
  definition.base = {2026, 3, 1, 0, 0, 0};
  site.stream.codec = *formats::make_codec(definition);
  std::vector<Bytes> sizes;
  for (const Index elements : {200, 100}) {
    codec::FieldDefinition field;
    field.name = elements == 200 ? "a" : "b";
    field.shape = {elements};
    ASSERT_TRUE(site.stream.codec->define(field).is_ok());
    sizes.push_back(site.stream.codec->encoded_bound(static_cast<int>(sizes.size())));
    site.stream.opening.fields.push_back(field);
    site.stream.opening.layout_of.push_back(static_cast<int>(site.stream.plans.size()));
    site.stream.plans.emplace_back(*layout::Layout::block(field.shape, 1), site.roster, 0);
  }
  stages::Encoding encoding(site.stream);
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

}  // namespace
}  // namespace tailrace::sim
