// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Tests checkpoints on the library's own session, in simulated time, with chains of jobs. Each job loads,
// computes, saves and ends in any way, each on another number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>

#include "faces/checkpoint/checkpoint.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "no_outputs.hpp"
#include "scenario.hpp"
#include "session_world.hpp"
#include "support/crash.hpp"

namespace tailrace::sim {
namespace checkpoints_test {

using checkpoint::Checkpoint;
using Texts = std::vector<std::string>;

/// Ways in which a job ends.
enum class End {
  closed,
  killed,      // at some call of storage, which keeps what it was given
  power_lost,  // the same, and data that was not durable may be gone
  failing,     // the job goes on, but a call of one rank's storage fails
  rank_lost    // the others wait, until somebody kills the job
};

struct Life {
  int ranks = 1;
  int ranks_per_node = 1;
  End end = End::closed;
  std::string options;
  int steps = 0;
  int loses_rank_at = 0;

  [[nodiscard]] std::string text() const {
    static constexpr std::array ends{"closed", "killed", "power lost", "failing", "rank lost"};
    return cat(ranks, " ranks, ", steps, " steps, ", options, ", ", ends[static_cast<std::size_t>(end)]);
  }
};

/// The answers that the ranks of a chain's jobs got.
struct Told {
  std::int64_t committed = -1;  // the last step whose save was reported committed
  std::int64_t begun = -1;      // the last step that was saved, or may have been
  int loads = 0;                // loads that gave a copy
  int failures = 0;
  std::map<int, std::map<int, Code>> heard;  // answers in one job: by call, by rank
  Texts wrong;
};

double value_of(std::int64_t step, Index at) {
  return static_cast<double>(step) * 1e6 + static_cast<double>(at);
}

constexpr Index elements = 700;

/// One rank of a job: its part of an array, and the number of the step.
class Model {
 public:
  Model(SessionRank& rank, const Life& life, Told& told)
      : rank_(rank),
        life_(life),
        told_(told),
        layout_(*layout::Layout::block({elements}, rank.ranks())),
        one_(std::make_shared<const layout::Layout>(*layout::Layout::replicated({1}, rank.ranks()))),
        part_(static_cast<std::size_t>(layout_.count(rank.rank()))) {}

  void run(Scheduler& dice) {
    Result<std::unique_ptr<Checkpoint>> made = Checkpoint::create(
        rank_.session(), outputs_, "cp", life_.options, checkpoint::parse_options(life_.options));
    if (!hear(made.status())) return;
    checkpoint_ = std::move(*made);
    if (!load()) return;
    const std::int64_t first = step_;
    while (step_ < first + life_.steps) {
      if (rank_.rank() == life_.loses_rank_at && life_.end == End::rank_lost &&
          step_ >= first + life_.steps / 2) {
        rank_.fibre().lose();
        rank_.fibre().stall(1);
      }
      rank_.fibre().stall(dice.random(1, dice.once_in(10) ? FibreWorld::second : 1'000'000));
      ++step_;
      save();
      if (step_ % 3 == 0) wait();
    }
    wait();
    hear(checkpoint_->close());
  }

 private:
  /// Returns true if a collective call succeeded; it did on all ranks or on none.
  bool hear(const Status& status) {
    told_.heard[calls_++][rank_.rank()] = status.code();
    if (!status.is_ok()) ++told_.failures;
    if (!status.is_ok() && life_.end == End::closed) wrong(status.text());
    return status.is_ok();
  }

  void name_items() {
    checkpoint::NamedItem step;
    step.name = "step";
    step.array.data = reinterpret_cast<std::byte*>(&step_);
    step.array.type = ElementType::i64;
    step.scalar = one_;
    checkpoint_->item(step);
    checkpoint::NamedItem field;
    field.name = "field";
    field.array.data = reinterpret_cast<std::byte*>(part_.data());
    field.array.layout = &layout_;
    field.array.layout_number = 1;
    checkpoint_->item(field);
  }

  /// Returns false if the job cannot go on.
  bool load() {
    bool found = false;
    if (!hear(checkpoint_->begin(Checkpoint::Direction::load, &found))) return false;
    if (found) name_items();
    if (!hear(checkpoint_->end())) return false;
    if (!found) {
      if (told_.committed >= 0) wrong("nothing was found");
      return true;
    }
    ++told_.loads;
    // If storage does not give the newest copy, the job loads the one before it.
    if (life_.end == End::failing) told_.committed = std::min(told_.committed, step_);
    if (step_ < told_.committed || step_ > told_.begun) wrong(cat("step ", step_, " was loaded"));
    const layout::Box box = layout_.box(rank_.rank());
    for (std::size_t i = 0; i < part_.size(); ++i) {
      if (part_[i] == value_of(step_, box.lower[0] + static_cast<Index>(i))) continue;
      wrong(cat("element ", i, " of step ", step_, " is ", part_[i]));
      break;
    }
    return true;
  }

  void save() {
    if (!part_.empty()) {
      const layout::Box box = layout_.box(rank_.rank());
      for (std::size_t i = 0; i < part_.size(); ++i)
        part_[i] = value_of(step_, box.lower[0] + static_cast<Index>(i));
    }
    told_.begun = std::max(told_.begun, step_);
    saved_.reset();
    if (!hear(checkpoint_->begin(Checkpoint::Direction::save, nullptr))) return;
    name_items();
    if (hear(checkpoint_->end())) saved_ = step_;
  }

  void wait() {
    // The library tells a failure once.
    if (!hear(checkpoint_->wait())) saved_.reset();
    if (saved_) told_.committed = std::max(told_.committed, *saved_);
  }

  void wrong(const std::string& text) {
    told_.wrong.push_back(cat("rank ", rank_.rank(), ": ", text, ", where ", told_.committed,
                              " was committed and ", told_.begun, " begun"));
  }

  SessionRank& rank_;
  const Life& life_;
  Told& told_;
  NoOutputs outputs_;
  const layout::Layout layout_;
  const std::shared_ptr<const layout::Layout> one_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::vector<double> part_;
  std::int64_t step_ = 0;
  std::optional<std::int64_t> saved_;  // the last step whose save was begun
  int calls_ = 0;
};

Texts disagreements(const Told& told) {
  Texts found;
  for (const auto& [call, codes] : told.heard) {
    for (const auto& [rank, code] : codes) {
      if (code == codes.begin()->second) continue;
      found.push_back(cat("call ", call, ": rank ", rank, " was told ", static_cast<int>(code), " and rank ",
                          codes.begin()->first, " ", static_cast<int>(codes.begin()->second)));
      break;
    }
  }
  return found;
}

Life random_life(Scheduler& dice, End end) {
  Life life;
  life.ranks = static_cast<int>(dice.random(end == End::rank_lost ? 2 : 1, 9));
  life.ranks_per_node = static_cast<int>(dice.random(1, 4));
  life.end = end;
  life.options = cat("keep=", dice.random(2, 3), dice.once_in(3) ? " async=off" : "",
                     dice.once_in(3) ? " mode=local" : "", dice.once_in(4) ? " compress=zstd" : "");
  life.steps = static_cast<int>(dice.random(0, 7));
  life.loses_rank_at = static_cast<int>(dice.random(0, life.ranks - 1));
  return life;
}

/// Runs one job. Returns the storage that the next one finds.
std::shared_ptr<storage::CrashTarget> live(const Life& life,
                                           const std::shared_ptr<storage::CrashTarget>& disk,
                                           std::uint64_t seed, Told& told) {
  using Policy = storage::CrashPolicy;
  Scheduler dice(seed);
  const bool stops = life.end == End::killed || life.end == End::power_lost;
  const storage::FaultPlan stopped{stops ? dice.random(1, 90) : 0, storage::Fault::stopped,
                                   storage::all_calls, true};
  const auto power = storage::faulty_target(disk, stopped);
  Job job{nodes_of(life.ranks, life.ranks_per_node), "", {}, power, seed};
  if (life.end == End::failing)
    job.more_settings[static_cast<int>(dice.random(0, life.ranks - 1))] =
        cat("fault=\"nth=", dice.random(1, 20), dice.once_in(2) ? " calls=all" : "", "\"");
  SessionWorld world(job);
  constexpr Nanoseconds limit = 300 * FibreWorld::second;
  // A program that is unwound after the limit must not reach storage any more.
  if (life.end == End::rank_lost) {
    world.world().scheduler().after(limit - 1, [&] {
      power->restart({1, storage::Fault::stopped, storage::all_calls, true});
    });
  }
  told.heard.clear();
  const Texts unfinished = world.run([&](SessionRank& rank) { Model(rank, life, told).run(dice); }, limit);
  EXPECT_EQ(told.wrong, Texts());
  EXPECT_EQ(disagreements(told), Texts());
  if (life.end != End::rank_lost || life.steps == 0) {
    EXPECT_EQ(unfinished, Texts());
  }
  for (const Status& each : world.failures()) ADD_FAILURE() << each.text();
  if (life.end != End::power_lost) return disk;
  constexpr std::array policies{Policy{Policy::Writes::dropped, Policy::Entries::lost},
                                Policy{Policy::Writes::torn, Policy::Entries::some},
                                Policy{Policy::Writes::garbage, Policy::Entries::some}};
  return disk->crash(policies[static_cast<std::size_t>(dice.random(0, 2))], seed);
}

TEST(sim_checkpoints, a_chain_of_jobs_goes_on_from_what_was_committed_however_they_end) {
  int loads = 0;
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 3571);
    auto disk = storage::crash_target();
    Told told;
    std::string texts;
    for (std::uint64_t number = 0; number < 6; ++number) {
      const Life life = random_life(dice, static_cast<End>(dice.random(0, 4)));
      texts += cat("job ", number, ": ", life.text(), "; ");
      SCOPED_TRACE(cat("seed ", seed, ": ", texts));
      disk = live(life, disk, seed * 100 + number, told);
      if (testing::Test::HasFailure()) return;
    }
    loads += told.loads;
    failures += told.failures;
  }
  EXPECT_GT(loads, of_seeds(100));
  EXPECT_GT(failures, of_seeds(100));
}

TEST(sim_checkpoints, many_ranks_save_and_fewer_load) {
  const int ranks = std::getenv("TEST_ALL") != nullptr ? 1024 : 512;
  auto disk = storage::crash_target();
  Told told;
  for (const int each : {ranks, ranks / 2}) {
    disk = live({each, 64, End::closed, "keep=2", 2, 0}, disk, 7, told);
  }
  EXPECT_EQ(told.loads, ranks / 2);
  EXPECT_EQ(told.committed, 4);
}

}  // namespace checkpoints_test
}  // namespace tailrace::sim
