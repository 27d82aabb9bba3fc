// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Collective files on the library's own session, in simulated time: random programs of arrays, text,
// positions and asynchronous calls on files of overlapping groups of ranks, with ranks that compute for
// seconds and a network that delays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "engine/exchange/channel.hpp"
#include "engine/exchange/transfer.hpp"
#include "faces/unformatted/record_file.hpp"
#include "file_program.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/memory.hpp"
#include "scenario.hpp"
#include "support/crash.hpp"

namespace tailrace::sim {
namespace files_test {

using Texts = std::vector<std::string>;

/// Stripes are as small as possible, so that calls have several of them.
std::string random_settings(Scheduler& dice) {
  return cat("io_buffer=64KiB aggregators=", dice.random(1, 3), " parallel_threshold=", dice.random(0, 200),
             "B");
}

std::vector<NodeShape> random_nodes(Scheduler& dice, int ranks) {
  return nodes_of(ranks, static_cast<int>(dice.random(1, 5)));
}

Texts texts_of(const std::vector<Status>& failures) {
  Texts texts;
  for (const Status& each : failures) texts.push_back(each.text());
  return texts;
}

void run_random_program(const FileProgram::Size& size, int ranks_per_node, std::uint64_t seed) {
  Scheduler dice(seed * 6151);
  const FileProgram program(dice, size);
  const auto disk = storage::crash_target();
  SessionWorld world({nodes_of(size.ranks, ranks_per_node), random_settings(dice), {}, disk, seed});
  FileProgram::Heard heard;
  Texts wrong;
  const Texts unfinished = world.run([&](SessionRank& rank) {
    if (seed % 2 == 0) rank.files().set_shortest_own_row(0);
    program.run(rank, dice, heard, wrong);
  });
  EXPECT_EQ(wrong, Texts()) << "seed " << seed;
  EXPECT_EQ(unfinished, Texts()) << "seed " << seed;
  EXPECT_EQ(texts_of(world.failures()), Texts()) << "seed " << seed;
  EXPECT_EQ(program.differences(*disk), Texts()) << "seed " << seed;
  EXPECT_EQ(heard.size(), program.calls().size()) << "seed " << seed;
}

FileProgram::Size random_size(Scheduler& dice) {
  return {static_cast<int>(dice.random(1, 12)), static_cast<int>(dice.random(1, 4)), 30};
}

TEST(sim_files, every_call_of_a_correct_program_does_what_it_has_to) {
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    Scheduler dice(seed * 3571);
    const FileProgram::Size size = random_size(dice);
    run_random_program(size, static_cast<int>(dice.random(1, 5)), seed);
    if (testing::Test::HasFailure()) return;
  }
}

/// Gives no bytes from `end` on, although its size says that there are some: somebody else cuts it.
class CutFile final : public storage::File {
 public:
  CutFile(std::unique_ptr<File> below, Bytes end) : below_(std::move(below)), end_(end) {}
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    return below_->write_gathered(parts, offset);
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    const Bytes left = std::clamp(end_ - offset, Bytes{0}, std::ssize(data));
    return below_->read(data.first(static_cast<std::size_t>(left)), offset);
  }
  Status sync() override { return below_->sync(); }
  Status truncate(Bytes size) override { return below_->truncate(size); }
  Result<Bytes> size() override { return below_->size(); }
  storage::FileNumber number() override { return below_->number(); }
  Status close() override { return below_->close(); }

 private:
  const std::unique_ptr<File> below_;
  const Bytes end_;
};

class CutTarget final : public storage::MemoryTarget {
 public:
  explicit CutTarget(Bytes end) : MemoryTarget(false), end_(end) {}
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode,
                                              unsigned permissions) override {
    Result<std::unique_ptr<storage::File>> file = MemoryTarget::open(path, mode, permissions);
    TR_TRY(file.status());
    return std::unique_ptr<storage::File>(std::make_unique<CutFile>(std::move(*file), end_));
  }

 private:
  const Bytes end_;
};

/// Four ranks of a node read the blocks of an array that they have written, in the parallel mode. `heard`
/// gets what each was told, `right` counts the ranks whose memory has what was written before byte `end`.
Texts read_blocks(
    SessionWorld& world, Texts& heard, int& right, Bytes end,
    const std::function<void(SessionRank&)>& before_reading = [](SessionRank&) {}) {
  constexpr Index side = 100;
  heard.assign(4, {});
  right = 0;
  return world.run([&](SessionRank& rank) {
    rank.files().set_shortest_own_row(0);
    const auto group = rank.group({0, 1, 2, 3});
    const auto file =
        files::File::open({&rank.files(), *group, rank.rank()}, "blocks", *files::parse_mode("w+p"));
    const Index top = rank.rank() / 2 * 50, left = rank.rank() % 2 * 50;
    const layout::Layout layout = *layout::Layout::boxes(
        {side, side},
        {{{0, 0}, {50, 50}}, {{0, 50}, {50, 100}}, {{50, 0}, {100, 50}}, {{50, 50}, {100, 100}}});
    std::vector<double> values(2500);
    arrays::Array array;
    array.data = reinterpret_cast<std::byte*>(values.data());
    array.layout = &layout;
    const auto place = [&](std::size_t i) {
      const auto at = static_cast<Index>(i);
      return (top + at / 50) * side + left + at % 50;
    };
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(place(i));
    EXPECT_EQ((*file)->move_arrays("write", {&array, 1}, arrays::Direction::write).elements, side * side);
    (*file)->ask("rewind", [](std::FILE* s) { return files::Outcome{std::fseek(s, 0, SEEK_SET), 0, {}}; });
    before_reading(rank);
    std::fill(values.begin(), values.end(), -1.0);
    const auto read = (*file)->move_arrays("read", {&array, 1}, arrays::Direction::read);
    const auto eof = (*file)->ask("feof", [](std::FILE* s) {
      return files::Outcome{std::feof(s) != 0, 0, {}};
    });
    heard[static_cast<std::size_t>(rank.rank())] =
        cat(read.elements, " elements, eof ", eof.value, ", ", read.status.text());
    bool is_right = true;
    for (std::size_t i = 0; i < values.size(); ++i)
      if ((place(i) + 1) * 8 <= end) is_right = is_right && values[i] == static_cast<double>(place(i));
    right += is_right ? 1 : 0;
    EXPECT_TRUE((*file)->close().is_ok());
  });
}

bool are_alike(const Texts& heard) { return std::ranges::count(heard, heard[0]) == std::ssize(heard); }

TEST(sim_files, ranks_of_a_node_read_their_own_rows_or_all_go_through_the_aggregator) {
  using storage::Call;
  for (const int victim : {-1, 0, 3}) {
    for (const Call call : {Call::read, Call::open}) {
      SessionWorld world({nodes_of(4, 4), "parallel_threshold=0", {}, storage::memory_target(), 1});
      Texts heard;
      int right = 0;
      std::vector<std::int64_t> before(4);
      const Texts unfinished = read_blocks(world, heard, right, 80'000, [&](SessionRank& rank) {
        const std::int64_t never = 1'000'000;
        world.storage_at(rank.rank())
            .restart({rank.rank() == victim ? 1 : never, storage::Fault::io_error, set_of(call), false});
      });
      EXPECT_EQ(unfinished, Texts());
      EXPECT_TRUE(are_alike(heard)) << heard[0] << " | " << heard[3];
      const bool fails = victim >= 0 && call == Call::read;
      EXPECT_EQ(heard[0].find("Input/output error") != std::string::npos, fails) << heard[0];
      if (fails) continue;
      EXPECT_EQ(heard[0], "10000 elements, eof 0, ");
      EXPECT_EQ(right, 4);
      const bool may_not_open = call == Call::open && victim == 3;
      EXPECT_EQ(world.storage_at(3).fired(), may_not_open);
      for (int r = 1; r < 4 && call == Call::read; ++r) EXPECT_EQ(world.storage_at(r).calls(), 50) << r;
    }
  }
}

TEST(sim_files, a_file_that_is_cut_while_ranks_read_their_rows_ends_at_the_same_element_for_all) {
  for (const Bytes end : {80'000, 79'999, 41'003, 40'000, 803, 1}) {
    SessionWorld world({nodes_of(4, 4), "parallel_threshold=0", {}, std::make_shared<CutTarget>(end), 1});
    Texts heard;
    int right = 0;
    EXPECT_EQ(read_blocks(world, heard, right, end), Texts());
    EXPECT_TRUE(are_alike(heard));
    EXPECT_TRUE(heard[0].starts_with(cat(end / 8, " elements"))) << heard[0];
    EXPECT_EQ(right, 4) << end;
  }
}

/// The jobs of an aggregator run on threads, where an exception would end the process.
TEST(sim_files, memory_that_runs_out_in_a_job_of_an_array_fails_the_call_and_keeps_nobody_waiting) {
  SessionWorld world({nodes_of(2, 2), {}, {}, storage::memory_target(), 1});
  const Texts unfinished = world.run([](SessionRank& rank) {
    const auto group = rank.group({0, 1});
    exchange::Channel* const channel = *(*group)->channel("an array");
    exchange::Ring* const ring = *channel->ring(false);
    const layout::Layout layout = *layout::Layout::block({1000}, 2);
    std::vector<double> values(500);
    arrays::Array array;
    array.data = reinterpret_cast<std::byte*>(values.data());
    array.layout = &layout;
    for (const auto direction : {arrays::Direction::write, arrays::Direction::read}) {
      const auto plan = *arrays::make_plan(array, rank.rank(), direction);
      const auto tally = std::make_shared<exchange::Tally>();
      exchange::Transfer transfer(*channel, *ring, plan, 0, false, rank.session().threads().new_key());
      if (direction == arrays::Direction::write)
        transfer.write(
            array.data, [](auto...) -> Status { throw std::bad_alloc(); }, tally, nullptr);
      else
        transfer.read(
            array.data, [](auto...) -> Result<Bytes> { throw std::bad_alloc(); }, tally, false);
      EXPECT_EQ(tally->status().code(), rank.rank() == 0 ? Code::memory : Code::ok);
    }
  });
  EXPECT_EQ(unfinished, Texts());
  EXPECT_EQ(texts_of(world.failures()), Texts());
}

/// Fortran's iostat tells the end of a file from an error. Calls behind the one that has met the end answered
/// as it had.
TEST(sim_files, of_an_unformatted_file_only_the_call_that_meets_its_end_says_so) {
  using unformatted::RecordFile;
  SessionWorld world({nodes_of(2, 2), {}, {}, storage::memory_target(), 1});
  const Texts unfinished = world.run([](SessionRank& rank) {
    const auto group = rank.group({0, 1});
    const auto file =
        files::File::open({&rank.files(), *group, (*group)->rank()}, "records", *files::parse_mode("w+"));
    ByteVector word(4);
    RecordFile records(**file, {}, 0);
    EXPECT_TRUE(records.begin(arrays::Direction::write).is_ok());
    EXPECT_TRUE(records.put(word, 4).is_ok());
    EXPECT_TRUE(records.end().is_ok());
    const std::vector<std::function<Status()>> wrong = {
        [&] { return records.put(word, 4); }, [&] { return records.get(word, 4); },
        [&] { return records.end(); }, [&] { return records.seek(0); }};
    for (const auto& call : wrong) {
      EXPECT_TRUE(records.backspace().is_ok());
      while (records.begin(arrays::Direction::read).is_ok()) EXPECT_TRUE(records.end().is_ok());
      EXPECT_TRUE(records.has_ended());
      EXPECT_FALSE(call().is_ok());
      EXPECT_FALSE(records.has_ended());
    }
    EXPECT_TRUE(records.rewind().is_ok());
    RecordFile bytes(**file, {.sequential = false}, 12);
    EXPECT_TRUE(bytes.seek(10).is_ok());
    EXPECT_TRUE(bytes.begin(arrays::Direction::read).is_ok());
    EXPECT_FALSE(bytes.get(word, 4).is_ok());
    EXPECT_TRUE(bytes.has_ended());
    EXPECT_FALSE(bytes.rewind().is_ok());
    EXPECT_FALSE(bytes.has_ended());
    EXPECT_FALSE(bytes.end().is_ok());
    EXPECT_TRUE(bytes.has_ended());
    EXPECT_TRUE((*file)->close().is_ok());
  });
  EXPECT_EQ(unfinished, Texts());
  EXPECT_EQ(texts_of(world.failures()), Texts());
}

using Numbers = std::vector<std::int32_t>;

unformatted::Form form_of(Bytes marker, bool swapped, bool at_end = false) {
  unformatted::Form form;
  form.marker = marker;
  form.swapped = swapped;
  form.at_end = at_end;
  return form;
}

void put_record(unformatted::RecordFile& records, const Numbers& numbers) {
  EXPECT_TRUE(records.begin(arrays::Direction::write).is_ok());
  for (const std::int32_t each : numbers)
    EXPECT_TRUE(records.put(std::as_bytes(std::span(&each, 1)), 4).is_ok());
  EXPECT_TRUE(records.end().is_ok());
}

void expect_record(unformatted::RecordFile& records, const Numbers& expected) {
  const Status begun = records.begin(arrays::Direction::read);
  EXPECT_TRUE(begun.is_ok()) << begun.text();
  if (!begun.is_ok()) return;
  Numbers numbers(expected.size());
  for (std::int32_t& each : numbers)
    EXPECT_TRUE(records.get(std::as_writable_bytes(std::span(&each, 1)), 4).is_ok());
  EXPECT_EQ(numbers, expected);
  std::int32_t more = 0;
  EXPECT_FALSE(records.get(std::as_writable_bytes(std::span(&more, 1)), 4).is_ok());
  (void)records.end();
}

/// gfortran -frecord-marker=8 writes them. The first records of some files fit both lengths.
TEST(sim_files, of_unformatted_records_tell_the_length_of_their_markers) {
  using unformatted::RecordFile;
  const std::vector<std::vector<Numbers>> contents{{{1, 2, 3}, {4, 5}, {}, {6}},
                                                   {{4}, {4}, {4}, {7, 8}},
                                                   {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
                                                   {{}, {0}, {1}}};
  SessionWorld world({nodes_of(2, 2), {}, {}, storage::memory_target(), 1});
  const Texts unfinished = world.run([&](SessionRank& rank) {
    const auto group = rank.group({0, 1});
    const auto opened = [&](const char* mode) {
      return files::File::open({&rank.files(), *group, (*group)->rank()}, "markers",
                               *files::parse_mode(mode));
    };
    for (const Bytes marker : {4, 8}) {
      for (const bool swapped : {false, true}) {
        for (const std::vector<Numbers>& content : contents) {
          SCOPED_TRACE(
              cat("markers of ", marker, ", swapped ", swapped, ", content ", &content - contents.data()));
          Bytes size = 0;
          {
            const auto file = opened("w+");
            RecordFile records(**file, form_of(marker, swapped), 0);
            for (const Numbers& each : content) put_record(records, each);
            EXPECT_TRUE(records.finish().is_ok());
            size = records.size();
            EXPECT_TRUE((*file)->close().is_ok());
          }
          {
            const auto file = opened("r+");
            RecordFile records(**file, form_of(0, swapped, true), size);
            put_record(records, {11, 12});
            EXPECT_TRUE(records.finish().is_ok());
            EXPECT_EQ(records.size(), size + 8 + 2 * marker) << "what is added has the same markers";
            size = records.size();
            EXPECT_TRUE((*file)->close().is_ok());
          }
          const auto file = opened("r");
          RecordFile records(**file, form_of(0, swapped), size);
          for (const Numbers& each : content) expect_record(records, each);
          expect_record(records, {11, 12});
          EXPECT_FALSE(records.begin(arrays::Direction::read).is_ok());
          EXPECT_TRUE(records.has_ended());
          EXPECT_TRUE((*file)->close().is_ok());
          const auto again = opened("r");
          RecordFile back(**again, form_of(0, swapped, true), size);
          EXPECT_TRUE(back.backspace().is_ok());
          expect_record(back, {11, 12});
          EXPECT_TRUE((*again)->close().is_ok());
        }
      }
    }
  });
  EXPECT_EQ(unfinished, Texts());
  EXPECT_EQ(texts_of(world.failures()), Texts());
}

/// The bytes are those of gfortran 12 with -frecord-marker=8 -fmax-subrecord-length=16.
TEST(sim_files, of_unformatted_records_with_markers_of_8_bytes_are_those_of_gfortran) {
  const auto disk = storage::memory_target();
  SessionWorld world({nodes_of(1, 1), {}, {}, disk, 1});
  const Texts unfinished = world.run([&](SessionRank& rank) {
    const auto group = rank.group({0});
    const auto file =
        files::File::open({&rank.files(), *group, (*group)->rank()}, "markers", *files::parse_mode("w+"));
    unformatted::RecordFile records(**file, form_of(8, false), 0);
    records.set_subrecord(16);
    put_record(records, {1, 2, 3, 4, 5, 6});
    put_record(records, {4});
    EXPECT_TRUE(records.finish().is_ok());
    EXPECT_TRUE((*file)->close().is_ok());
  });
  EXPECT_EQ(unfinished, Texts());
  const Numbers expected{-16, -1, 1, 2, 3, 4, 16, 0, 8, 0, 5, 6, -8, -1, 4, 0, 4, 4, 0};
  Numbers got(expected.size() + 1);
  const auto file = disk->open("markers", storage::OpenMode::read);
  ASSERT_TRUE(file.is_ok());
  const Result<Bytes> bytes = (*file)->read(std::as_writable_bytes(std::span(got)), 0);
  ASSERT_TRUE(bytes.is_ok());
  got.resize(static_cast<std::size_t>(*bytes) / sizeof got[0]);
  EXPECT_EQ(got, expected);
}

/// A rank without threads waited for its asynchronous read, and kept others from what they needed to do that
/// read.
TEST(sim_files, asynchronous_reads_without_threads_move_everything_on) {
  Scheduler dice(348 * 3571);
  const FileProgram::Size size = random_size(dice);
  run_random_program(size, static_cast<int>(dice.random(1, 5)), 348);
}

TEST(sim_files, so_it_is_with_many_ranks_of_which_64_share_a_node) {
  FileProgram::Size size{std::getenv("TEST_ALL") != nullptr ? 2048 : 512, 1, 6};
  size.elements = 30'000;
  size.all_ranks = true;
  run_random_program(size, 64, 5);
}

/// Returns texts for calls whose ranks were told different things.
Texts disagreements(const FileProgram& program, const FileProgram::Heard& heard) {
  Texts found;
  for (const auto& [number, said] : heard) {
    const FileProgram::Said& first = said.begin()->second;
    for (const auto& [rank, each] : said) {
      if (each.is(first.value, first.code)) continue;
      found.push_back(cat(program.calls()[static_cast<std::size_t>(number)].name(), ": rank ", rank, ": ",
                          each.value, " ", each.text, "; rank ", said.begin()->first, ": ", first.value, " ",
                          first.text));
      break;
    }
  }
  return found;
}

/// The storage of one rank fails once, or from some call on. Each call tells all of its ranks the same, and
/// all come to the end.
TEST(sim_files, where_storage_fails_on_one_rank_all_are_told_the_same) {
  int struck = 0;
  for (std::uint64_t seed = 1; seed <= seeds(88); ++seed) {
    Scheduler dice(seed * 7919);
    const FileProgram::Size size = random_size(dice);
    const FileProgram program(dice, size);
    Job job;
    job.nodes = random_nodes(dice, size.ranks);
    job.settings = random_settings(dice);
    job.storage = storage::crash_target();
    job.seed = seed;
    job.more_settings[static_cast<int>(dice.random(0, size.ranks - 1))] =
        cat("fault=\"nth=", dice.random(1, 20), " calls=", dice.once_in(2) ? "all" : "changing",
            dice.once_in(2) ? " for=good" : "", dice.once_in(2) ? " fault=enospc" : "", "\"");
    SessionWorld world(job);
    FileProgram::Heard heard;
    Texts wrong;
    const Texts unfinished = world.run([&](SessionRank& rank) { program.run(rank, dice, heard, wrong); });
    EXPECT_EQ(disagreements(program, heard), Texts()) << "seed " << seed;
    EXPECT_EQ(unfinished, Texts()) << "seed " << seed;
    EXPECT_EQ(texts_of(world.failures()), Texts()) << "seed " << seed;
    if (wrong.empty()) {
      EXPECT_EQ(program.differences(*job.storage), Texts()) << "seed " << seed;
    }
    struck += wrong.empty() ? 0 : 1;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(struck, of_seeds(20));
}

/// A rank is lost in the middle. The others' answers until they had to wait for it are right, and each rank
/// that waits says in which call.
TEST(sim_files, what_was_told_before_a_rank_was_lost_is_right) {
  int waiting = 0;
  for (std::uint64_t seed = 1; seed <= seeds(30); ++seed) {
    Scheduler dice(seed * 5563);
    FileProgram::Size size = random_size(dice);
    size.ranks = std::max(size.ranks, 2);
    const FileProgram program(dice, size);
    const int lost = static_cast<int>(dice.random(0, size.ranks - 1));
    const int last = static_cast<int>(dice.random(0, 29));
    SessionWorld world(
        {random_nodes(dice, size.ranks), random_settings(dice), {}, storage::crash_target(), seed});
    FileProgram::Heard heard;
    Texts wrong;
    const Texts unfinished = world.run(
        [&](SessionRank& rank) {
          program.run(rank, dice, heard, wrong, rank.rank() == lost ? last : -1);
          if (rank.rank() != lost) return;
          rank.fibre().lose();
          rank.fibre().stall(1);
        },
        300 * FibreWorld::second);
    EXPECT_EQ(wrong, Texts()) << "seed " << seed;
    EXPECT_EQ(unfinished.size(), static_cast<std::size_t>(size.ranks) - 1) << "seed " << seed;
    for (const std::string& text : unfinished) waiting += text.find("file.") == std::string::npos ? 0 : 1;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(waiting, of_seeds(20));
}

/// Power is lost somewhere in the middle, for all ranks at once. After the next boot the bytes are there that
/// a durable flush had covered and no call was going to write over.
TEST(sim_files, what_a_durable_flush_has_covered_survives_a_loss_of_power) {
  using Policy = storage::CrashPolicy;
  int struck = 0;
  Bytes looked_at = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 4241);
    const FileProgram::Size size = random_size(dice);
    const FileProgram program(dice, size);
    const auto disk = storage::crash_target();
    const auto power =
        storage::faulty_target(disk, {dice.random(5, 60), storage::Fault::stopped, storage::all_calls, true});
    SessionWorld world({random_nodes(dice, size.ranks), random_settings(dice), {}, power, seed});
    FileProgram::Heard heard;
    Texts wrong;
    const Texts unfinished = world.run([&](SessionRank& rank) { program.run(rank, dice, heard, wrong); });
    EXPECT_EQ(unfinished, Texts()) << "seed " << seed;
    struck += power->fired() ? 1 : 0;
    for (const Policy policy : {Policy{Policy::Writes::dropped, Policy::Entries::lost},
                                Policy{Policy::Writes::torn, Policy::Entries::some},
                                Policy{Policy::Writes::garbage, Policy::Entries::some}})
      EXPECT_EQ(program.lost(*disk->crash(policy, seed), heard, looked_at), Texts()) << "seed " << seed;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(struck, of_seeds(30));
  EXPECT_GT(looked_at, of_seeds(100'000));
}

}  // namespace files_test
}  // namespace tailrace::sim
