// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The setting check_conflicts: bytes or elements that one rank wrote while another used them are told, and
// nothing else is.
#include "faces/shared/safety/conflicts.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "faces/shared/elements/global_array.hpp"
#include "faces/shared/shared_file.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

using shared::Conflict;
using shared::Conflicts;
using shared::Doing;
using shared::Done;
using shared::GlobalArray;
using shared::SharedFile;

std::vector<int> everybody(int ranks) {
  std::vector<int> all;
  for (int i = 0; i < ranks; ++i) all.push_back(i);
  return all;
}

/// Returns what was printed on standard error. AddressSanitizer says there what it thinks of fibres.
std::string captured() {
  const std::string printed = testing::internal::GetCapturedStderr();
  return printed.starts_with("==") ? printed.substr(printed.find('\n') + 1) : printed;
}

/// Runs a program with the setting on ranks of one node, and of several ones: each time the same must be
/// printed, in lines of one warning each.
template <typename Program>
void expect_printed(int ranks, const std::string& lines, const Program& program,
                    const std::string& settings = "") {
  for (const int ranks_per_node : {ranks, 2, 1}) {
    SCOPED_TRACE(testing::Message() << ranks_per_node << " ranks on a node");
    SessionWorld world(
        {nodes_of(ranks, ranks_per_node), "check_conflicts=on " + settings, {}, storage::memory_target(), 1});
    set_log_level(LogLevel::warn);
    testing::internal::CaptureStderr();
    const Texts stuck = world.run([&](SessionRank& rank) { program(rank, *rank.group(everybody(ranks))); });
    const std::string printed = captured();
    EXPECT_EQ(stuck, Texts());
    EXPECT_EQ(world.failures().size(), 0u);
    EXPECT_EQ(printed, lines);
  }
}

std::string warning(const std::string& text) { return cat("tailrace: warning: ", text, "\n"); }

void ok(const Status& status) { EXPECT_TRUE(status.is_ok()) << status.text(); }

class File {
 public:
  File(const std::shared_ptr<files::Group>& group, const std::string& name, const std::string& mode = "w+")
      : file_(std::move(*SharedFile::open(
            group, "open", shared::Definition{name, *shared::read_mode(mode), 4096, 65536}))) {}
  void write(Bytes offset, Bytes count) {
    const std::string text(static_cast<std::size_t>(count), 'x');
    const shared::Source sources[] = {{std::as_bytes(std::span(text)), offset}};
    EXPECT_TRUE(file_->write(sources).is_ok());
  }
  Bytes read(Bytes offset, Bytes count) {
    ByteVector got(static_cast<std::size_t>(count));
    const shared::Sink sinks[] = {{got, offset}};
    return *file_->read(sinks);
  }
  SharedFile* operator->() { return file_.get(); }

 private:
  std::unique_ptr<SharedFile> file_;
};

TEST(conflicts, of_a_file_are_told_with_both_ranks_and_the_bytes) {
  const std::string without = "without a sync between the two";
  const std::string lines =
      warning(cat("tr_shared_sync(file): rank 0 wrote bytes 1024 to 2047, and rank 3 wrote them too, ",
                  without)) +
      warning(
          cat("tr_shared_sync(file): rank 3 wrote bytes 70000 to 70099, and rank 1 read them, ", without)) +
      warning(cat("tr_shared_flush(file): rank 2 wrote byte 5, and rank 0 read it, ", without)) +
      warning(
          cat("tr_shared_resize(file, 50000): rank 1 wrote bytes 99990 to 99999, and rank 2 wrote them too, ",
              without)) +
      warning(cat("tr_shared_close(file): rank 0 wrote bytes 0 to 9, and rank 2 read them, ", without));
  expect_printed(4, lines, [](SessionRank& rank, const std::shared_ptr<files::Group>& group) {
    File file(group, "file");
    const int me = rank.rank();
    if (me == 0) file.write(0, 2048);
    if (me == 3) file.write(1024, 1024);
    if (me == 3) file.write(70'000, 200);
    if (me == 1) file.read(69'990, 110);
    ok(file->sync());
    if (me == 2) file.write(5, 1);
    if (me == 0) file.read(0, 100);
    ok(file->flush());
    if (me == 1 || me == 2) file.write(99'990, 10);
    ok(file->resize(50'000));
    if (me == 0) file.write(0, 10);
    if (me == 2) file.read(0, 10);
    ok(file->close());
  });
}

TEST(conflicts, are_not_seen_in_programs_that_synchronise) {
  expect_printed(4, "", [](SessionRank& rank, const std::shared_ptr<files::Group>& group) {
    File file(group, "file");
    const int me = rank.rank();
    file.write(1000 * me, 1000);  // one behind the other
    file.write(1000 * me + 10, 500);
    file.read(1000 * me, 1000);
    ok(file->sync());
    const std::string text(100, 'a');
    for (int i = 0; i < 20; ++i) ok(file->append(std::as_bytes(std::span(text))).status());
    ok(file->sync());
    file.read(0, 4000);
    ok(file->sync());
    if (me == 1) file.write(0, 4000);
    ok(file->flush());
    if (me == 2) file.write(0, 4000);
    ok(file->resize(4000));
    // All of them come to the end, where nobody writes.
    file.read(3000, 10'000);
    ok(file->sync());
    if (me == 3) file.write(0, 4000);
    ok(file->close());
    File again(group, "file", "r+");
    again.read(0, 4000);
    ok(again->close());
  });
}

TEST(conflicts, a_read_that_ends_at_the_end_counts_what_it_asked_for) {
  expect_printed(2,
                 warning("tr_shared_close(file): rank 0 wrote bytes 100 to 199, and rank 1 read them, "
                         "without a sync between the two"),
                 [](SessionRank& rank, const std::shared_ptr<files::Group>& group) {
                   File file(group, "file");
                   if (rank.rank() == 0) file.write(0, 100);
                   ok(file->sync());
                   if (rank.rank() == 1) file.read(50, 1000);
                   if (rank.rank() == 0) file.write(100, 100);
                   ok(file->close());
                 });
}

TEST(conflicts, of_which_there_are_thousands_are_counted) {
  std::string lines;
  for (Bytes i = 0; i < 8; ++i)
    lines += warning(cat("tr_shared_close(file): rank 1 wrote byte ", 100 * i,
                         ", and rank 2 wrote it too, without a sync between the two"));
  lines += warning("tr_shared_close(file): 2992 more conflicts of this kind");
  expect_printed(3, lines, [](SessionRank& rank, const std::shared_ptr<files::Group>& group) {
    File file(group, "file");
    for (Bytes i = 3000; i-- > 0 && rank.rank() > 0;) file.write(100 * i, 1);
    ok(file->close());
  });
}

/// It is cut into stretches, which other ranks compare.
TEST(conflicts, of_a_large_range_are_one) {
  expect_printed(3,
                 warning("tr_shared_close(file): rank 0 wrote bytes 100 to 2999999, and rank 2 read them, "
                         "without a sync between the two"),
                 [](SessionRank& rank, const std::shared_ptr<files::Group>& group) {
                   File file(group, "file");
                   if (rank.rank() == 0) file.write(0, 3'000'000);
                   if (rank.rank() == 2) file.read(100, 4'000'000);
                   ok(file->close());
                 });
}

TEST(conflicts, without_the_setting_are_not_looked_for) {
  SessionWorld world({nodes_of(2, 1), {}, {}, storage::memory_target(), 1});
  set_log_level(LogLevel::warn);
  testing::internal::CaptureStderr();
  const Texts stuck = world.run([&](SessionRank& rank) {
    File file(*rank.group({0, 1}), "file");
    file.write(0, 10);
    ok(file->close());
  });
  EXPECT_EQ(stuck, Texts());
  EXPECT_EQ(captured(), "");
}

TEST(conflicts, what_cannot_be_noted_is_said_not_to_be_compared) {
  const std::string lines =
      warning("what: rank 0 wrote byte 0, and rank 1 wrote it too, without a sync between the two") +
      warning(
          "what: 1 rank used more places since the last sync than can be noted in 16MiB, or in what the "
          "memory budget leaves; the rest was not compared") +
      warning("what: rank 0 wrote bytes 7 to 8, and rank 1 wrote them too, without a sync between the two");
  expect_printed(
      2, lines,
      [](SessionRank& rank, const std::shared_ptr<files::Group>& group) {
        Conflicts conflicts(*group, "byte");
        const Index most = rank.rank() == 0 ? 300'000 : 1;
        for (Index i = 0; i < most; ++i) conflicts.note(Doing::write, 2 * i, 1);
        EXPECT_GE(group->budget().left(), group->budget().limit() / 4 - 8192);
        conflicts.compare(Index{1} << 40, "what");
        conflicts.note(Doing::write, 7, 2);
        conflicts.compare(Index{1} << 40, "what");
      },
      "memory=4MiB");
}

/// Ranges that touch are one, in whatever order they come: many small pieces need little memory.
TEST(conflicts, pieces_side_by_side_need_no_more_than_one) {
  expect_printed(2, "", [](SessionRank& rank, const std::shared_ptr<files::Group>& group) {
    Conflicts conflicts(*group, "byte");
    const Bytes before = group->budget().left();
    for (Index i = 0; i < 300'000 && rank.rank() == 0; ++i)
      conflicts.note(Doing::write, i * 7919 % 4096 * 8, 8);
    EXPECT_LE(before - group->budget().left(), 512 << 10);
    conflicts.compare(1'000'000, "what");
  });
}

std::unique_ptr<GlobalArray> make_array(const std::shared_ptr<files::Group>& group, Index count) {
  return std::move(
      *GlobalArray::create(group, "create", shared::GlobalDefinition{ElementType::i64, count, 4096}));
}

TEST(conflicts, of_a_global_array_are_told) {
  const std::string without = "without a sync between the two";
  const std::string sync = "tr_global_sync(int64[3000]): ";
  const std::string lines =
      warning(cat(sync, "rank 1 wrote element 7, and rank 2 read it, ", without)) +
      warning(cat(sync, "rank 0 wrote elements 100 to 199, and rank 1 wrote them too, ", without)) +
      warning(cat(sync, "rank 2 added to element 2000, and rank 0 read it, ", without)) +
      warning(cat(sync, "rank 0 wrote element 5, and rank 1 wrote it too, ", without)) +
      warning(cat("tr_global_free(int64[3000]): rank 1 wrote element 9, and rank 0 added to it, ", without));
  expect_printed(3, lines, [](SessionRank& rank, const std::shared_ptr<files::Group>& group) {
    const auto array = make_array(group, 3000);
    const int me = rank.rank();
    std::vector<std::int64_t> numbers(1000, me);
    auto* const values = reinterpret_cast<std::byte*>(numbers.data());
    const auto each = [](std::vector<Index> list) { return list; };
    if (me == 1) ok(array->scatter(each({3, 7, 3}), values));
    if (me == 2) ok(array->gather(each({7, 8}), values));
    if (me == 0) {
      ok(array->write(0, 3, values));
      ok(array->write(100, 500, values));
    }
    if (me == 1) ok(array->write(50, 150, values));
    if (me == 2) ok(array->accumulate(each({2000}), values, true));
    if (me == 0) ok(array->read(1990, 20, values));
    ok(array->sync());
    // With the lock all of them may add, without it only one.
    ok(array->accumulate(each({1, 2999, 1}), values, true));
    if (me < 2) ok(array->accumulate(each({5}), values, false));
    ok(array->sync());
    ok(array->read(0, 1000, values));
    ok(array->sync());
    if (me == 0) ok(array->accumulate(each({9}), values, true));
    if (me == 1) ok(array->accumulate(each({9}), values, false));
    ok(array->free());
  });
}

/// Looks at each place by itself.
bool is_conflict(const std::vector<Done>& done, Index at) {
  for (const Done& one : done) {
    for (const Done& other : done) {
      const auto has = [at](const Done& each) { return each.range.begin <= at && at < each.range.end; };
      if (one.rank == other.rank || !has(one) || !has(other)) continue;
      if (one.doing != other.doing || one.doing == Doing::write) return true;
    }
  }
  return false;
}

TEST(conflicts, are_those_that_a_look_at_each_place_finds) {
  for (std::uint64_t seed = 1; seed <= seeds(300); ++seed) {
    Scheduler dice(seed);
    std::vector<Done> done;
    for (int rank = 0; rank < 4; ++rank) {
      for (int doing = 0; doing < 3; ++doing) {
        for (Index at = dice.random(0, 60); at < 60;) {
          const Index end = at + dice.random(1, 10);
          done.push_back({{at, end}, rank, static_cast<Doing>(doing)});
          at = end + dice.random(0, 60);
        }
      }
    }
    const std::vector<Conflict> found = find_conflicts(done);
    std::vector<char> marked(100, 0);
    Index last = 0;
    for (const Conflict& each : found) {
      EXPECT_TRUE(last <= each.range.begin && each.range.begin < each.range.end);
      last = each.range.end;
      EXPECT_NE(each.first.rank, each.second.rank);
      for (Index at = each.range.begin; at < each.range.end; ++at) {
        marked[static_cast<std::size_t>(at)] = 1;
        for (const Conflict::Side& side : {each.first, each.second}) {
          EXPECT_TRUE(std::ranges::any_of(done, [&](const Done& one) {
            return one.rank == side.rank && one.doing == side.doing && one.range.begin <= at &&
                   at < one.range.end;
          }));
        }
      }
    }
    for (Index at = 0; at < 100; ++at)
      EXPECT_EQ(marked[static_cast<std::size_t>(at)] != 0, is_conflict(done, at)) << seed << ": " << at;
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tailrace::sim
