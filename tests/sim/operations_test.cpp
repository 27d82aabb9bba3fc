// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Tests streams with interval= in simulated time. The files have the bytes of a program that accumulates by
// itself and puts the results, for any ranks, servers and layouts, also where jobs end in the middle of an
// interval and others go on from their checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "faces/checkpoint/checkpoint.hpp"
#include "faces/restart/outputs.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"
#include "support/crash.hpp"

namespace tailrace::sim {
namespace operations_test {

using checkpoint::Checkpoint;
using streams::Stream;

constexpr std::int64_t quarter = 900;  // seconds from step to step
constexpr std::int64_t hour = 4 * quarter;
constexpr float missing = -9.0F;

/// A field, and how often it is put: in the steps whose number is a multiple of `every`.
struct TimedVariable {
  const char* name;
  const char* operation;
  const char* statistic;  // that a program gives which accumulates by itself
  int levels;
  bool has_missing;
  std::int64_t every;
  const char* section = "";  // of the array, in the files
};
constexpr std::array<TimedVariable, 6> variables{{{"ta", "mean", "average", 2, false, 1},
                                                  {"pr", "accum", "accum", 1, false, 1, "1:5:2,0:7:3"},
                                                  {"tmin", "minimum", "minimum", 1, true, 1},
                                                  {"tmax", "maximum", "maximum", 3, false, 2},
                                                  {"zos", "mean", "average", 1, true, 3, ":,::2"},
                                                  {"ps", "instant", "", 1, false, 1}}};
const std::vector<Index> shape{5, 7};
constexpr Index elements = 35;

float value_at(std::size_t field, Index level, std::int64_t step, Index element) {
  // Thirds are not exact, so that sums in another order would differ.
  const std::int64_t mixed =
      (element * 37 + step * 101 + level * 11 + static_cast<std::int64_t>(field) * 7) % 113;
  if (variables[field].has_missing && (mixed % 3 == 0 || element % 10 == 0)) return missing;
  return static_cast<float>(mixed) * 1e3F / 3.0F - 9000.0F;
}

std::string options_of(const TimedVariable& variable, bool accumulates_itself) {
  std::string options = cat("levels=hybrid:1-", variable.levels);
  if (variable.has_missing) options += cat(" missing=", missing);
  if (variable.section[0] != 0) options += cat(" section=", variable.section);
  if (!accumulates_itself) return cat(options, " operation=", variable.operation);
  return variable.statistic[0] == 0 ? options : cat(options, " statistic=", variable.statistic, " since=1h");
}

/// Returns what the plain program has at one element in the interval of the steps behind `first` up to
/// `last`.
float result_at(std::size_t field, Index level, std::int64_t first, std::int64_t last, Index element) {
  const std::string operation = variables[field].operation;
  std::optional<double> state;
  std::int64_t count = 0;
  for (std::int64_t step = first + 1; step <= last; ++step) {
    if (step % variables[field].every != 0) continue;
    const float value = value_at(field, level, step, element);
    if (operation == "instant") state = value;
    if (operation == "instant" || (variables[field].has_missing && value == missing)) continue;
    ++count;
    if (!state)
      state = value;
    else if (operation == "minimum")
      state = std::min<double>(*state, value);
    else if (operation == "maximum")
      state = std::max<double>(*state, value);
    else
      *state += value;
  }
  if (!state) return missing;
  return static_cast<float>(operation == "mean" ? *state / static_cast<double>(count) : *state);
}

bool is_put_between(std::size_t field, std::int64_t first, std::int64_t last) {
  return last / variables[field].every > first / variables[field].every;
}

layout::Layout random_layout(Scheduler& dice, int ranks) {
  switch (dice.random(0, 4)) {
    case 0:
      return *layout::Layout::block(shape, ranks);
    case 1:
      return *layout::Layout::block_cyclic(shape, ranks, {dice.random(1, 3), dice.random(1, 3)});
    case 2:
      return *layout::Layout::replicated(shape, ranks);
    default: {
      std::vector<std::vector<Index>> lists(static_cast<std::size_t>(ranks));
      for (Index element = elements; element-- > 0;)
        lists[static_cast<std::size_t>(dice.random(0, ranks - 1))].push_back(element);
      return *layout::Layout::indexed(shape, lists);
    }
  }
}

/// The elements of a rank, in packed order.
std::vector<Index> own_elements(const layout::Layout& layout, int rank) {
  std::vector<Index> own;
  for (const layout::Rows& rows : layout.rows(rank)) {
    for (Index row = 0; row < rows.rows; ++row)
      for (Index k = 0; k < rows.count; ++k) own.push_back(rows.global + row * rows.stride + k);
  }
  return own;
}

using Values = std::map<std::pair<std::int64_t, std::size_t>, std::vector<float>>;

/// Puts one field. The array lives in `arrays`.
template <typename Value>
void put(Stream& stream, std::size_t field, std::int64_t step, const std::vector<Index>& own, Values& arrays,
         const Value& value) {
  std::vector<float>& array = arrays[{step, field}];
  array.clear();
  for (Index level = 0; level < variables[field].levels; ++level)
    for (const Index element : own) array.push_back(value(level, element));
  array.reserve(1);
  stream.put(variables[field].name, array.data(), nullptr);
}

std::string options_of_stream(const std::string& format) {
  return cat("base=2026-03-01 manifest=off format=", format);
}

Status define_all(Stream& stream, const std::vector<layout::Layout>& layouts, bool accumulates_itself) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const streams::PlacedLayout placed{layouts[i], static_cast<std::int64_t>(i), {}, {}, {}, false};
    TR_TRY(stream.define(variables[i].name, &placed, static_cast<int>(ElementType::f32),
                         options_of(variables[i], accumulates_itself)));
  }
  return {};
}

/// Returns the file that a program of one rank writes that accumulates by itself.
ByteVector plain_file(const std::string& format, std::int64_t steps, std::int64_t first = 0) {
  Job job;
  job.nodes = {{1, 0}};
  SessionWorld world(job);
  Values arrays;
  const Texts stuck = world.run([&](SessionRank& rank) {
    auto stream = Stream::create(rank.session(), name_for("fc.data", format), options_of_stream(format));
    ASSERT_TRUE(stream.is_ok()) << stream.status().text();
    const std::vector<layout::Layout> layouts(variables.size(), *layout::Layout::block(shape, 1));
    const Status defined = define_all(**stream, layouts, true);
    ASSERT_TRUE(defined.is_ok()) << defined.text();
    const std::vector<Index> own = own_elements(layouts[0], 0);
    for (std::int64_t last = first + 4; last <= steps; last += 4) {
      (*stream)->begin(last * quarter);
      for (std::size_t i = 0; i < variables.size(); ++i) {
        if (!is_put_between(i, last - 4, last)) continue;
        put(**stream, i, last, own, arrays,
            [&](Index level, Index element) { return result_at(i, level, last - 4, last, element); });
      }
      const Status ended = (*stream)->end();
      EXPECT_TRUE(ended.is_ok()) << ended.text();
    }
    const Status closed = (*stream)->close();
    EXPECT_TRUE(closed.is_ok()) << closed.text();
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  return read_file(world.storage(), name_for("fc.data", format));
}

/// Ways in which a job ends.
enum class End { stopped, killed, power_lost };

struct Life {
  std::vector<NodeShape> nodes;
  End end = End::stopped;
  std::int64_t steps = 0;
  std::int64_t save_every = 3;
  bool async = true;
  bool only_saves = false;  // loads and saves again, and never creates the stream
};

struct Answers {
  std::int64_t committed = 0;  // the last step behind which a save was reported committed
  int resumed = 0;             // in the middle of an interval
  Texts wrong;
};

int ranks_of(const Life& life) {
  int ranks = 0;
  for (const NodeShape& node : life.nodes) ranks += node.ranks;
  return ranks;
}

/// One rank of a job.
class Model {
 public:
  Model(SessionRank& rank, const std::vector<layout::Layout>& layouts, const std::string& format,
        const Life& life, Answers& answers)
      : rank_(rank),
        layouts_(layouts),
        format_(format),
        life_(life),
        answers_(answers),
        outputs_(rank.files(),
                 [this] {
                   restart::Open open;
                   if (stream_ != nullptr) open.streams.push_back(stream_.get());
                   return open;
                 }),
        one_(std::make_shared<const layout::Layout>(*layout::Layout::replicated({1}, rank.ranks()))) {
    for (const layout::Layout& layout : layouts_) own_.push_back(own_elements(layout, rank.rank()));
  }

  void run(Scheduler& dice, std::int64_t all_steps) {
    Result<std::unique_ptr<Checkpoint>> made = Checkpoint::create(
        rank_.session(), outputs_, "cp", "", checkpoint::parse_options(life_.async ? "" : "async=off"));
    if (!hear(made.status())) return;
    checkpoint_ = std::move(*made);
    if (load()) {
      const bool is_open = !life_.only_saves && open_stream();
      if (life_.only_saves && step_ > 0) save();
      const std::int64_t last = std::min(all_steps, step_ + life_.steps);
      while (is_open && step_ < last && take_step(dice)) {
        if (step_ % life_.save_every == 0) save();
      }
      wait();
      if (stream_ != nullptr) hear(stream_->close());
    }
    hear(checkpoint_->close());
  }

 private:
  bool hear(const Status& status) {
    if (!status.is_ok() && life_.end == End::stopped)
      answers_.wrong.push_back(cat("rank ", rank_.rank(), ", step ", step_, ": ", status.text()));
    return status.is_ok();
  }

  void name_items() {
    checkpoint::NamedItem step;
    step.name = "step";
    step.array.data = reinterpret_cast<std::byte*>(&step_);
    step.array.type = ElementType::i64;
    step.scalar = one_;
    checkpoint_->item(step);
  }

  bool load() {
    bool found = false;
    if (!hear(checkpoint_->begin(Checkpoint::Direction::load, &found))) return false;
    if (found) name_items();
    if (!hear(checkpoint_->end())) return false;
    if (step_ < answers_.committed)
      answers_.wrong.push_back(cat("step ", step_, " was loaded, ", answers_.committed, " was committed"));
    return true;
  }

  bool open_stream() {
    const std::optional<streams::Position> position = outputs_.stream(name_for("fc.data", format_));
    auto made = Stream::create(rank_.session(), name_for("fc.data", format_),
                               cat(options_of_stream(format_), " interval=1h"), position, outputs_.kept());
    if (!hear(made.status())) return false;
    stream_ = std::move(*made);
    outputs_.take_stream(name_for("fc.data", format_));
    if (!hear(define_all(*stream_, layouts_, false))) return false;
    if (rank_.rank() == 0 && position && position->interval) ++answers_.resumed;
    return true;
  }

  bool take_step(Scheduler& dice) {
    rank_.compute(dice.random(1, 1'000'000));
    const std::int64_t step = step_;
    stream_->begin(step * quarter);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const std::vector<Index>& own = own_[i];
      if (step % variables[i].every != 0) continue;
      if (own.empty() && dice.once_in(2) && rank_.rank() > 0) continue;
      put(*stream_, i, step, own, arrays_,
          [&](Index level, Index element) { return value_at(i, level, step, element); });
    }
    const bool is_good = hear(stream_->end());
    ++step_;
    return is_good;
  }

  void save() {
    saved_.reset();
    if (!hear(checkpoint_->begin(Checkpoint::Direction::save, nullptr))) return;
    name_items();
    if (hear(checkpoint_->end())) saved_ = step_;
    if (step_ % 2 == 0) wait();
  }

  void wait() {
    if (!hear(checkpoint_->wait())) saved_.reset();
    if (saved_) answers_.committed = std::max(answers_.committed, *saved_);
  }

  SessionRank& rank_;
  const std::vector<layout::Layout>& layouts_;
  const std::string& format_;
  const Life& life_;
  Answers& answers_;
  restart::Outputs outputs_;
  const std::shared_ptr<const layout::Layout> one_;
  std::vector<std::vector<Index>> own_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Stream> stream_;
  Values arrays_;
  std::int64_t step_ = 0;  // the next one
  std::optional<std::int64_t> saved_;
};

/// Runs one job. Returns the storage that the next one finds.
std::shared_ptr<storage::CrashTarget> live(const Life& life, const std::string& format,
                                           std::int64_t all_steps,
                                           const std::shared_ptr<storage::CrashTarget>& disk,
                                           std::uint64_t seed, Answers& answers) {
  Scheduler dice(seed);
  const int ranks = ranks_of(life);
  std::vector<layout::Layout> layouts;
  // A rank whose puts are the put order has a share in every field.
  for (std::size_t i = 0; i < variables.size(); ++i) layouts.push_back(random_layout(dice, ranks));
  const auto power = storage::faulty_target(disk, {life.end == End::stopped ? 0 : dice.random(1, 200),
                                                   storage::Fault::stopped, storage::all_calls, true});
  SessionWorld world(Job{life.nodes, "", {}, power, seed});
  const Texts stuck =
      world.run([&](SessionRank& rank) { Model(rank, layouts, format, life, answers).run(dice, all_steps); });
  EXPECT_EQ(answers.wrong, Texts());
  EXPECT_EQ(stuck, Texts());
  for (const Status& each : world.failures()) ADD_FAILURE() << each.text();
  if (life.end != End::power_lost) return disk;
  return disk->crash({storage::CrashPolicy::Writes::dropped, storage::CrashPolicy::Entries::lost}, seed);
}

TEST(sim_operations, files_have_the_bytes_of_a_program_that_accumulates_by_itself) {
  constexpr std::int64_t all_steps = 13;  // 0 to 12: three hours
  std::map<std::string, ByteVector> plain;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 7877);
    const std::string format = any_format(seed);
    if (!plain.contains(format)) plain[format] = plain_file(format, all_steps - 1);
    Life life;
    life.nodes = random_nodes(dice, static_cast<int>(dice.random(1, 6)), static_cast<int>(dice.random(0, 3)));
    life.steps = all_steps;
    life.save_every = dice.random(1, 20);
    life.async = dice.once_in(2);
    Answers answers;
    const auto disk = live(life, format, all_steps, storage::crash_target(), seed, answers);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    ASSERT_GE(plain[format].size(), 3U * 4 * elements * 7);
    ASSERT_TRUE(read_file(*disk, name_for("fc.data", format)) == plain[format])
        << "seed " << seed << ", " << format;
  }
}

TEST(sim_operations, a_chain_of_jobs_that_end_within_intervals_leaves_the_same_bytes) {
  constexpr std::int64_t all_steps = 25;  // six hours
  std::map<std::string, ByteVector> plain;
  int resumed = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 4523);
    const std::string format = any_format(seed);
    if (!plain.contains(format)) plain[format] = plain_file(format, all_steps - 1);
    auto disk = storage::crash_target();
    Answers answers;
    for (std::uint64_t number = 0; number < 7; ++number) {
      Life life;
      life.end = number == 6 ? End::stopped : static_cast<End>(dice.random(0, 2));
      life.nodes =
          random_nodes(dice, static_cast<int>(dice.random(1, 5)), static_cast<int>(dice.random(0, 3)));
      life.steps = number == 6 ? all_steps : dice.random(0, 12);
      life.save_every = dice.random(1, 5);
      life.async = dice.once_in(2);
      life.only_saves = number < 6 && dice.once_in(5);
      disk = live(life, format, all_steps, disk, seed * 100 + number, answers);
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", job " << number;
    }
    ASSERT_TRUE(read_file(*disk, name_for("fc.data", format)) == plain[format])
        << "seed " << seed << ", " << format;
    resumed += answers.resumed;
  }
  EXPECT_GT(resumed, of_seeds(60));
}

/// The file lacks the intervals whose step failed, and no other one: an interval begins with nothing of the
/// one before.
TEST(sim_operations, an_interval_that_fails_takes_no_other_one_along) {
  constexpr std::int64_t all_steps = 25;
  const ByteVector plain = plain_file("raw", all_steps - 1);
  const auto per_interval = static_cast<std::ptrdiff_t>(plain.size() / 6);
  std::size_t failed = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 6367);
    Job job;
    job.nodes = random_nodes(dice, static_cast<int>(dice.random(1, 4)), static_cast<int>(dice.random(1, 3)));
    job.seed = seed;
    SessionWorld world(job);
    const int faulty = static_cast<int>(dice.random(0, world.servers() - 1));
    world.storage_of(faulty).restart(
        {dice.random(1, 60), storage::Fault::no_space, storage::changing_calls, false});
    std::vector<layout::Layout> layouts;
    for (std::size_t i = 0; i < variables.size(); ++i) layouts.push_back(random_layout(dice, world.ranks()));
    streams::Position position;
    const Texts stuck = world.run([&](SessionRank& rank) {
      Values arrays;
      auto stream = Stream::create(rank.session(), "fc.data", cat(options_of_stream("raw"), " interval=1h"));
      if (!stream.is_ok() || !define_all(**stream, layouts, false).is_ok()) return;
      for (std::int64_t step = 0; step < all_steps; ++step) {
        (*stream)->begin(step * quarter);
        for (std::size_t i = 0; i < variables.size(); ++i) {
          if (step % variables[i].every != 0) continue;
          put(**stream, i, step, own_elements(layouts[i], rank.rank()), arrays,
              [&](Index level, Index element) { return value_at(i, level, step, element); });
        }
        const Status ended = (*stream)->end();
        if (step % 4 != 0) {
          EXPECT_TRUE(ended.is_ok()) << ended.text();
        }
      }
      (void)(*stream)->wait(true);
      if (rank.rank() == 0) position = (*stream)->position();
      (void)(*stream)->close();
    });
    ASSERT_EQ(stuck, Texts()) << "seed " << seed;
    ASSERT_EQ(position.steps, 6) << "seed " << seed;
    ByteVector expected;
    for (std::int64_t interval = 0; interval < 6; ++interval) {
      const auto is_it = [&](const streams::FailedStep& each) { return each.step == interval; };
      if (std::ranges::any_of(position.failed, is_it)) continue;
      const auto begin = plain.begin() + interval * per_interval;
      expected.insert(expected.end(), begin, begin + per_interval);
    }
    EXPECT_TRUE(read_file(world.storage(), "fc.data") == expected) << "seed " << seed;
    failed += position.failed.size();
  }
  EXPECT_GT(failed, seeds(20));
}

/// Writes half a year of monthly means, or of the means that the program itself has made.
ByteVector months(int ranks, int servers, bool accumulates_itself) {
  constexpr std::int64_t ten_days = 864000;
  Job job;
  job.nodes = {{ranks, servers}};
  SessionWorld world(job);
  const layout::Layout layout = *layout::Layout::block(shape, ranks);
  const Texts stuck = world.run([&](SessionRank& rank) {
    Values arrays;
    const std::string options = "base=2025-11-15 manifest=off format=cdf5 calendar=360_day";
    auto stream =
        Stream::create(rank.session(), "fc.data", cat(options, accumulates_itself ? "" : " interval=1mo"));
    ASSERT_TRUE(stream.is_ok()) << stream.status().text();
    const streams::PlacedLayout placed{layout, 0, {}, {}, {}, false};
    const Status defined = (*stream)->define(
        "ta", &placed, static_cast<int>(ElementType::f32),
        cat("levels=hybrid:1-2 ", accumulates_itself ? "statistic=average since=last" : "operation=mean"));
    ASSERT_TRUE(defined.is_ok()) << defined.text();
    for (std::int64_t step = 1; step <= 18; ++step) {
      if (accumulates_itself && step % 3 != 0) continue;
      (*stream)->begin(step * ten_days);
      put(**stream, 0, step, own_elements(layout, rank.rank()), arrays, [&](Index level, Index element) {
        if (!accumulates_itself) return value_at(0, level, step, element);
        double sum = value_at(0, level, step - 2, element);
        sum += value_at(0, level, step - 1, element);
        sum += value_at(0, level, step, element);
        return static_cast<float>(sum / 3);
      });
      const Status ended = (*stream)->end();
      EXPECT_TRUE(ended.is_ok()) << ended.text();
    }
    EXPECT_TRUE((*stream)->close().is_ok());
  });
  EXPECT_EQ(stuck, Texts());
  return read_file(world.storage(), "fc.data");
}

TEST(sim_operations, months_are_those_of_the_calendar_and_have_their_bounds) {
  const ByteVector plain = months(1, 0, true);
  ASSERT_GT(plain.size(), 6U * 2 * elements * 4);
  EXPECT_TRUE(months(1, 0, false) == plain);
  EXPECT_TRUE(months(3, 2, false) == plain);
}

}  // namespace operations_test
}  // namespace tailrace::sim
