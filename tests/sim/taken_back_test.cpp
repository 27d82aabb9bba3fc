// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Input streams that follow a writer which is killed again and again, goes on from an earlier checkpoint and
// takes steps back, in simulated time: between any two steps, and while records are read.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "faces/input/input_stream.hpp"
#include "formats/index/index.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"
#include "ground/storage/forwarding.hpp"
#include "scenario.hpp"
#include "shared_program.hpp"

namespace tailrace::sim::taken_back {
namespace {

constexpr std::int64_t hour = 3600;
constexpr Index steps = 6;
constexpr Index levels = 2;
const std::vector<Index> shape = {5, 4};

/// The writer: its index as it lies on storage, and the bytes of each step's records, as a number that tells
/// which try they are of. A writer cuts the index before it touches bytes, and commits when all are there.
class Writer {
 public:
  Writer(std::shared_ptr<storage::Target> target, std::uint64_t seed)
      : target_(std::move(target)), dice_(seed * 31) {
    streams::IndexHeader header;
    header.run = Uuid::random();
    header.format = "raw";
    header.base = from_seconds(0, Calendar::proleptic_gregorian);
    header.fields.push_back({"t", ElementType::f32, shape, "hybrid", {1, 2}});
    EXPECT_TRUE(target_->open("in", storage::OpenMode::create).is_ok());
    Result<streams::IndexWriter> index = streams::IndexWriter::create(*target_, "in.trx", header);
    EXPECT_TRUE(index.is_ok()) << index.status().text();
    index_.emplace(std::move(*index));
    marks_ = {size()};
  }

  /// Commits the next step, if there is one.
  void commit() {
    const Index step = committed();
    if (step == steps) return;
    written_[step] = ++tries_;
    const Bytes begin = index_->data_end();
    // Records of another try have another length, as those of GRIB mostly have.
    streams::IndexStep next{step, step * hour, begin, begin + 2 * (tries_ + 100), {}};
    for (std::int32_t level = 0; level < 2; ++level)
      next.records.push_back({0, level, begin + level * (tries_ + 100), tries_ + 100});
    EXPECT_TRUE(index_->append(next).is_ok());
    EXPECT_TRUE(index_->sync().is_ok());
    marks_.push_back(size());
  }
  /// Is killed, and cut back: some of the last steps are no more, and their bytes are anything.
  void die() {
    if (deaths_ == 4 || committed() == 0) return;
    cut_back_to(dice_.random(0, committed() - 1));
  }
  void cut_back_to(Index kept) {
    ++deaths_;
    index_.reset();
    marks_.resize(static_cast<std::size_t>(kept + 1));
    EXPECT_TRUE((*target_->open("in.trx", storage::OpenMode::existing))->truncate(marks_.back()).is_ok());
    for (Index step = kept; step < steps; ++step) written_[step] = 0;
    Result<streams::IndexWriter> index = streams::IndexWriter::open_existing(*target_, "in.trx");
    EXPECT_TRUE(index.is_ok()) << index.status().text();
    index_.emplace(std::move(*index));
  }
  /// Does at most one of both.
  void live_on() {
    if (life == Life::steady)
      commit();
    else if (life == Life::idle)
      return;
    else if (dice_.once_in(8))
      die();
    else if (dice_.once_in(2))
      commit();
  }

  [[nodiscard]] Index committed() const { return std::ssize(marks_) - 1; }
  [[nodiscard]] int deaths() const { return deaths_; }
  enum class Life { random, steady, idle };
  Life life = Life::random;  // steady: commits whenever it can, and is never killed
  int reads = 0;             // of records, by everybody
  /// Returns the try of which the bytes of this step are now; 0: of none.
  [[nodiscard]] int written(Index step) const { return written_.at(step); }
  /// Returns the least try that a reader may get who begins the step now.
  [[nodiscard]] int least_try(Index step) const {
    return step < committed() ? written_.at(step) : tries_ + 1;
  }

 private:
  [[nodiscard]] Bytes size() const { return **storage::size_if_there(*target_, "in.trx"); }

  std::shared_ptr<storage::Target> target_;
  Scheduler dice_;
  std::optional<streams::IndexWriter> index_;
  std::vector<Bytes> marks_;  // the size of the index with so many steps
  std::map<Index, int> written_;
  int tries_ = 0;
  int deaths_ = 0;
};

/// Storage on which the writer lives on whenever a rank looks whether a file is there.
class Lively final : public storage::ForwardingTarget {
 public:
  using ForwardingTarget::ForwardingTarget;
  Result<bool> exists(const std::string& path) override {
    if (writer != nullptr && path == "in") writer->live_on();
    return below_->exists(path);
  }
  Writer* writer = nullptr;
};

/// The writer's file, with the records that its index had when it was opened.
class Written final : public sources::Source {
 public:
  Written(Writer& writer, SessionRank& rank, Scheduler& dice, const streams::IndexContents& index)
      : writer_(writer), rank_(rank), dice_(dice) {
    inventory_.grids.push_back({shape, {}});
    for (const streams::IndexStep& step : index.steps) {
      for (const streams::IndexRecord& each : step.records) {
        sources::Record record;
        record.field = "t";
        record.level_type = "hybrid";
        record.level = each.level + 1;
        record.valid = step.lead;
        record.place = {step.step, each.level};
        inventory_.records.push_back(record);
      }
    }
  }
  Result<Index> read(const sources::RecordPlace& place, const sources::Grid& grid, const layout::Box& cut,
                     ElementType, std::byte* values, sources::Scratch&) const override {
    std::vector<Index> extents(2), at(2);
    for (std::size_t d = 0; d < 2; ++d) extents[d] = cut.upper[d] - cut.lower[d];
    const Index torn = writer_.life == Writer::Life::steady ? 0 : dice_.random(0, extents[0] * extents[1]);
    Index count = 0;
    ++writer_.reads;
    do {
      if (count++ == torn) {
        writer_.live_on();
        rank_.compute(dice_.random(1, 3'000'000));
      }
      const Index element = (cut.lower[0] + at[0]) * grid.shape[1] + cut.lower[1] + at[1];
      const auto number =
          static_cast<float>(100 * writer_.written(place[0]) + 10 * place[0] + 5 * place[1] + element % 5);
      std::memcpy(values, &number, sizeof number);
      values += sizeof number;
    } while (layout::advance(at, extents));
    return Index{0};
  }
  [[nodiscard]] Bytes scratch_bound(const sources::RecordPlace&, const sources::Grid&) const override {
    return 0;
  }

 private:
  Writer& writer_;
  SessionRank& rank_;
  Scheduler& dice_;
};

/// Every rank reads all steps, and tries one again that was taken back meanwhile.
struct Reader {
  Writer& writer;
  Hearing& hearing;
  std::uint64_t seed;
  std::map<std::int64_t, int> least{};  // by the number of a step of the program: the try that is due
  std::map<std::int64_t, int> got{};    // likewise: the try that the first rank has got
  int refused = 0;                      // steps that were taken back while they were read

  void run(SessionRank& rank) {
    Scheduler dice(seed * 1'000'003 + static_cast<std::uint64_t>(rank.rank()));
    const int me = rank.rank();
    const auto group = rank.group(all_ranks(rank.ranks()));
    if (!hearing.collective(me, "group", group.status())) return;
    storage::Target& target = rank.session().streams_target();
    const auto opener = [&](const std::string&) -> Result<std::shared_ptr<const sources::Source>> {
      const Result<streams::IndexContents> index = streams::load_index(target, "in.trx");
      TR_TRY(index.status());
      // A file that is begun anew cannot be opened before it has its head.
      if (index->steps.empty()) return Status(Code::state, "in: has no head");
      return std::shared_ptr<const sources::Source>(std::make_shared<Written>(writer, rank, dice, *index));
    };
    const std::string options = cat("base=1970-01-01 follow=on prefetch=", seed % 4);
    auto stream = input::InputStream::open(*group, "in", options, opener);
    if (!hearing.collective(me, "open", stream.status())) return;
    const streams::PlacedLayout placed{*layout::Layout::block(shape, rank.ranks()), 1, {0, 0}, {}, {}, false};
    if (!hearing.collective(me, "define", (*stream)->define("t", &placed, 5, "levels=hybrid:1,2"))) return;
    std::int64_t step = 0;
    for (Index lead = 0; lead < steps; ++step) {
      rank.compute(dice.random(1, 20'000'000));
      if (me == 0) writer.live_on();
      least.emplace(step, writer.least_try(lead));
      if (read(rank, **stream, placed, step, lead)) ++lead;
    }
    hearing.collective(me, "close", (*stream)->close());
  }

  bool read(SessionRank& rank, input::InputStream& stream, const streams::PlacedLayout& placed,
            std::int64_t step, Index lead) {
    const layout::Box box = placed.layout.box(rank.rank());
    const Index rows = box.upper[0] - box.lower[0], columns = box.upper[1] - box.lower[1];
    std::vector<float> t(static_cast<std::size_t>(levels * rows * columns), -1);
    stream.begin(lead * hour);
    stream.get("t", t.data(), nullptr);
    const Status ended = stream.end();
    if (ended.code() == Code::state) {
      refused += rank.rank() == 0;
      EXPECT_NE(ended.text().find("try the step again"), std::string::npos) << ended.text();
      return false;
    }
    if (!hearing.collective(rank.rank(), cat("end at ", lead), ended)) return true;
    for (Index level = 0; level < levels; ++level)
      for (Index y = 0; y < rows; ++y)
        for (Index x = 0; x < columns; ++x) {
          const Index element = (box.lower[0] + y) * shape[1] + box.lower[1] + x;
          const auto number =
              static_cast<Index>(t[static_cast<std::size_t>((level * rows + y) * columns + x)]);
          check(step, lead, number - 10 * lead - 5 * level - element % 5);
        }
    return true;
  }

  /// `number` is 100 times the try from which an element is.
  void check(std::int64_t step, Index lead, Index number) {
    const int from = static_cast<int>(number / 100);
    if (number % 100 != 0 || from < least.at(step) || got.emplace(step, from).first->second != from)
      hearing.wrong(cat("step ", step, ", lead ", lead, ": ", number, " of try ", from, ", expected ",
                        got.at(step), " and at least ", least.at(step)));
  }
};

TEST(sim_input, a_step_that_was_taken_back_is_never_given_and_all_ranks_get_the_same_try) {
  int deaths = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 104'729);
    Job job;
    job.nodes = nodes_of(static_cast<int>(dice.random(1, 6)), static_cast<int>(dice.random(1, 3)));
    job.seed = seed;
    job.limits_parks = true;
    const auto lively = std::make_shared<Lively>(job.storage);
    Writer writer(job.storage, seed);
    lively->writer = &writer;
    job.storage = lively;
    SessionWorld world(job);
    Hearing hearing(world.ranks());
    Reader reader{writer, hearing, seed};
    const Texts stuck = world.run([&](SessionRank& rank) { reader.run(rank); });
    EXPECT_EQ(stuck, Texts()) << "seed " << seed;
    EXPECT_TRUE(world.failures().empty()) << world.failures().front().text();
    EXPECT_EQ(hearing.wrong(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.failures(), 0) << "seed " << seed << hearing.said(0).back().text;
    deaths += writer.deaths();
    refused += reader.refused;
    if (HasFailure()) return;
  }
  EXPECT_GT(deaths, of_seeds(120));
  EXPECT_GT(refused, 0);
}

TEST(sim_input, a_record_is_read_once_though_its_writer_commits_other_steps_meanwhile) {
  Job job;
  job.nodes = nodes_of(1, 1);
  job.limits_parks = true;
  Writer writer(job.storage, 1);
  writer.life = Writer::Life::steady;
  SessionWorld world(job);
  Hearing hearing(world.ranks());
  Reader reader{writer, hearing, 4};
  EXPECT_EQ(world.run([&](SessionRank& rank) { reader.run(rank); }), Texts());
  EXPECT_EQ(hearing.wrong(), Texts());
  EXPECT_EQ(hearing.failures(), 0) << hearing.said(0).back().text;
  EXPECT_EQ(writer.reads, steps * levels);
}

/// On each node the second rank alone gets. The step is taken back between the two gets, and a rank of the
/// second node waits for it longer than TAILRACE_TIMEOUT.
TEST(sim_input, nodes_whose_first_ranks_get_nothing_learn_that_they_have_two_tries_of_a_step) {
  constexpr Nanoseconds second = 1'000'000'000;
  Job job;
  job.nodes = nodes_of(4, 2);
  job.limits_parks = true;
  job.settings = "timeout=5s";
  Writer writer(job.storage, 1);
  writer.life = Writer::Life::idle;
  writer.commit();
  SessionWorld world(job);
  int codes = 0;
  const Texts stuck = world.run([&](SessionRank& rank) {
    const int me = rank.rank();
    Scheduler dice(1);
    const auto group = rank.group(all_ranks(4));
    storage::Target& target = rank.session().streams_target();
    const auto opener = [&](const std::string&) -> Result<std::shared_ptr<const sources::Source>> {
      const Result<streams::IndexContents> index = streams::load_index(target, "in.trx");
      TR_TRY(index.status());
      return std::shared_ptr<const sources::Source>(std::make_shared<Written>(writer, rank, dice, *index));
    };
    auto stream = input::InputStream::open(*group, "in", "base=1970-01-01 follow=on prefetch=0", opener);
    const streams::PlacedLayout placed{*layout::Layout::block(shape, 4), 1, {0, 0}, {}, {}, false};
    EXPECT_TRUE((*stream)->define("t", &placed, 5, "levels=hybrid:1,2").is_ok());
    if (me >= 2) rank.compute((4 - me) * second);
    (*stream)->begin(0);
    std::vector<float> t(40);
    if (me % 2 == 1) (*stream)->get("t", t.data(), nullptr);
    if (me == 1) {
      writer.cut_back_to(0);
      rank.compute(20 * second);
      writer.commit();
    }
    const Status ended = (*stream)->end();
    EXPECT_EQ(ended.code(), Code::state) << ended.text();
    codes += ended.code() == Code::state;
    EXPECT_TRUE((*stream)->close().is_ok());
  });
  EXPECT_EQ(stuck, Texts());
  EXPECT_EQ(codes, 4);
}

}  // namespace
}  // namespace tailrace::sim::taken_back
