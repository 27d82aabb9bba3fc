// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdlib>

#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "index_samples.hpp"
#include "resume_samples.hpp"

// Chains of lives of one run. Each begins behind a checkpoint, and is stopped in good order, killed, or loses
// its power. In the end the files are always those of a run that was never disturbed.
namespace tailrace::streams {
namespace {

using storage::CrashPolicy;
using storage::CrashTarget;
using storage::FaultPlan;

/// A checkpoint as the test keeps it: the position, and which steps before it have other bytes.
struct Copy {
  Position position;
  std::vector<bool> others;
};

class Chain {
 public:
  Chain(std::uint64_t seed, bool same_bytes) : random_(seed), same_bytes_(same_bytes), disk_(make_disk()) {
    per_day_ = pick(2, 6);
    steps_ = pick(per_day_, std::min(3 * per_day_, 12));
    copies_.push_back({position_behind(0, per_day_), {}});
    story_ = cat("seed ", seed, ", ", steps_, " steps, ", per_day_, " in a file");
  }

  void play() {
    const int lives = pick(2, 5);
    for (int life = 0; life < lives; ++life) ASSERT_NO_FATAL_FAILURE(live());
    const Plan last = begin();
    const Outcome outcome = forecast(disk_, last);
    ASSERT_TRUE(outcome.status.is_ok()) << story_ << ": " << outcome.status.text();
    const auto undisturbed = make_disk();
    ASSERT_TRUE(
        forecast(undisturbed, {.until = steps_, .others = last.others, .per_day = per_day_}).status.is_ok());
    // The right bytes must be on storage, and not only in the memory of the machine.
    expect_files(*disk_->crash({}, 1), files_of(*undisturbed), story_);
  }

 private:
  int pick(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool happens(int percent) { return pick(1, 100) <= percent; }

  /// Makes the plan of a life that goes on from the newest copy, or sometimes from an older one: then the
  /// newer ones are given up, as the documentation says.
  Plan begin() {
    // If bytes differ, an older copy may rely on steps that were written once more since.
    while (same_bytes_ && copies_.size() > 1 && happens(15)) copies_.pop_back();
    const Copy& from = copies_.back();
    Plan plan{.from = from.position, .until = steps_, .ahead = happens(50), .per_day = per_day_};
    plan.others = from.others;
    plan.others.resize(static_cast<std::size_t>(steps_), !same_bytes_ && happens(50));
    story_ += cat("; from ", from.position.steps);
    return plan;
  }

  void live() {
    Plan plan = begin();
    plan.until = pick(static_cast<int>(plan.from->steps), steps_);
    const bool stopped = happens(50);
    const auto faulty = storage::faulty_target(
        disk_,
        FaultPlan{stopped ? 0 : pick(1, 150), storage::Fault::io_error, storage::changing_calls, true});
    const Outcome outcome = forecast(faulty, plan);
    story_ += cat(" to ", plan.until, faulty->fired() ? " killed behind " : " stopped behind ",
                  plan.from->steps + static_cast<std::int64_t>(outcome.durable.size()));
    ASSERT_TRUE(outcome.status.is_ok() || faulty->fired()) << story_ << ": " << outcome.status.text();
    keep(outcome, plan);
    const bool power = happens(40);
    if (power) lose_power();
    ASSERT_NO_FATAL_FAILURE(expect_no_loss());
    if (power || !faulty->fired()) note_published();
  }

  /// Keeps some of the saves that the life may have committed.
  void keep(const Outcome& outcome, const Plan& plan) {
    for (const Position& position : outcome.durable) {
      if (!happens(60)) continue;
      copies_.push_back({position, plan.others});
      copies_.back().others.resize(static_cast<std::size_t>(position.steps));
    }
  }

  void lose_power() {
    using Writes = CrashPolicy::Writes;
    using Entries = CrashPolicy::Entries;
    const CrashPolicy policies[] = {{Writes::dropped, Entries::lost},
                                    {Writes::kept, Entries::lost},
                                    {Writes::dropped, Entries::kept},
                                    {Writes::torn, Entries::some},
                                    {Writes::garbage, Entries::some}};
    disk_ = disk_->crash(policies[pick(0, 4)], random_());
    story_ += ", power lost";
  }

  /// Expects that no published step goes away if each life has the same bytes.
  void expect_no_loss() {
    for (const auto& [path, bytes] : published_) {
      ASSERT_TRUE(*disk_->exists(path)) << story_ << ": " << path;
      const ByteVector now = get_bytes(*disk_, path);
      ASSERT_GE(now.size(), bytes.size()) << story_ << ": " << path;
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), now.begin())) << story_ << ": " << path;
    }
  }

  void note_published() {
    for (int step = 0; same_bytes_ && step < steps_; step += per_day_) {
      const std::string path = path_of(step, per_day_);
      if (*disk_->exists(path + ".ready")) published_[path] = get_bytes(*disk_, path);
    }
  }

  std::mt19937_64 random_;
  bool same_bytes_;
  std::shared_ptr<CrashTarget> disk_;
  int per_day_ = 0;
  int steps_ = 0;
  std::vector<Copy> copies_;  // the oldest first
  std::map<std::string, ByteVector> published_;
  std::string story_;
};

/// TAILRACE_CHAINS=N plays N of each kind.
std::uint64_t chains() {
  const char* const text = std::getenv("TAILRACE_CHAINS");
  if (text != nullptr) return static_cast<std::uint64_t>(std::atoll(text));
  return std::getenv("TEST_ALL") == nullptr ? 150 : 600;
}

TEST(resume_chain, any_stops_and_kills_leave_the_files_of_an_undisturbed_run) {
  for (std::uint64_t seed = 1; seed <= chains(); ++seed)
    ASSERT_NO_FATAL_FAILURE(Chain(seed, true).play()) << "seed " << seed;
}

TEST(resume_chain, what_holds_is_what_the_newest_life_has_put) {
  for (std::uint64_t seed = 1; seed <= chains(); ++seed)
    ASSERT_NO_FATAL_FAILURE(Chain(seed, false).play()) << "seed " << seed;
}

/// Makes a run that stops behind `closed` steps of a file of six, then continues to step `again`, and is
/// killed.
std::shared_ptr<CrashTarget> stopped_and_killed(int closed, int again) {
  const auto disk = make_disk();
  EXPECT_TRUE(forecast(disk, {.until = closed, .per_day = kSteps}).status.is_ok());
  const Plan killed{
      .from = position_behind(closed, kSteps), .until = again, .stays_open = true, .per_day = kSteps};
  EXPECT_TRUE(forecast(disk, killed).status.is_ok());
  return disk;
}

const std::map<std::string, ByteVector>& files_of_six_steps() {
  static const std::map<std::string, ByteVector> files = [] {
    const auto disk = make_disk();
    EXPECT_TRUE(forecast(disk, {.per_day = kSteps}).status.is_ok());
    return files_of(*disk);
  }();
  return files;
}

TEST(resume_chain, a_checkpoint_behind_steps_that_only_the_second_pair_has_is_continued_there) {
  for (int closed = 1; closed < kSteps; ++closed) {
    for (int again = closed; again <= kSteps; ++again) {
      for (int behind = closed; behind <= again; ++behind) {
        const std::string what = cat("stopped behind ", closed, ", killed behind ", again, ", from ", behind);
        const auto disk = stopped_and_killed(closed, again);
        const Status status =
            forecast(disk, {.from = position_behind(behind, kSteps), .per_day = kSteps}).status;
        ASSERT_TRUE(status.is_ok()) << what << ": " << status.text();
        ASSERT_NO_FATAL_FAILURE(expect_files(*disk, files_of_six_steps(), what));
      }
    }
  }
}

// A failed step is in neither pair: the pair with as many of the others holds what the checkpoint knows.
TEST(resume_chain, a_step_that_the_checkpoint_has_as_failed_does_not_speak_for_the_pair_that_has_it) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 4, .per_day = kSteps}).status.is_ok());
  Position position = position_behind(2, kSteps);
  const Plan killed{.from = position,
                    .until = 3,
                    .stays_open = true,
                    .others = std::vector<bool>(kSteps, true),
                    .per_day = kSteps};
  ASSERT_TRUE(forecast(disk, killed).status.is_ok());
  position = position_behind(4, kSteps);
  position.failed = {{3, lead_of(3, kSteps), "no space"}};
  Plan last{.from = position, .others = {}, .per_day = kSteps};
  ASSERT_TRUE(forecast(disk, last).status.is_ok());
  const Result<IndexContents> index = load_index(*disk, index_path(path_of(0, kSteps)));
  ASSERT_TRUE(index.is_ok());
  ASSERT_EQ(index->steps.size(), 5U);
  EXPECT_EQ(index->steps[2].end - index->steps[2].begin, 700 + 130 * 2 + 77);
  EXPECT_EQ(index->steps[3].lead, lead_of(4, kSteps));
}

TEST(resume_chain, existing_continue_goes_on_behind_the_steps_of_the_second_pair) {
  for (int again = 3; again < kSteps; ++again) {
    const auto disk = stopped_and_killed(3, again);
    const Plan last{.per_day = kSteps, .first = again, .options = "existing=continue"};
    const Status status = forecast(disk, last).status;
    ASSERT_TRUE(status.is_ok()) << again << ": " << status.text();
    ASSERT_NO_FATAL_FAILURE(expect_files(*disk, files_of_six_steps(), cat("behind ", again)));
  }
}

/// Returns how many steps the indexes tell. A step whose commit has failed may be there.
int steps_in(storage::Target& target) {
  std::size_t steps = 0;
  for (const auto& [path, bytes] : files_of(target))
    if (path.ends_with(".trx")) steps += load_index(target, path)->steps.size();
  return static_cast<int>(steps);
}

// Later runs look at the newest files alone: what is not finished before steps follow in another file would
// stay so.
TEST(resume_chain, existing_continue_finishes_the_file_before_whenever_the_disk_has_room_again) {
  const auto left = make_disk();
  ASSERT_TRUE(forecast(left, {.until = 2, .stays_open = true}).status.is_ok());
  using storage::Fault;
  // No open for reading fails for want of room.
  const storage::CallSet calls = storage::changing_calls & ~storage::set_of(storage::Call::open);
  for (const Fault fault : {Fault::no_space, Fault::quota, Fault::io_error}) {
    for (const bool for_good : {false, true}) {
      int nth = 1;
      for (bool fired = true; fired; ++nth) {
        const std::string what = cat("fault ", static_cast<int>(fault), for_good, ", call ", nth);
        const auto disk = left->crash({CrashPolicy::Writes::kept, CrashPolicy::Entries::kept}, 1);
        const auto faulty = storage::faulty_target(disk, FaultPlan{nth, fault, calls, for_good});
        const Plan first{.first = 2, .options = "existing=continue", .looks_behind = true};
        const Outcome full = forecast(faulty, first);
        fired = faulty->fired();
        if (*disk->exists(path_of(0) + ".ready")) break;  // what failed came behind
        ASSERT_TRUE(full.status.is_ok() || fired) << what << ": " << full.status.text();
        const Plan last{.first = steps_in(*disk), .options = "existing=continue", .looks_behind = true};
        const Status status = forecast(disk, last).status;
        ASSERT_TRUE(status.is_ok()) << what << ": " << status.text();
        ASSERT_NO_FATAL_FAILURE(expect_truth(*disk, what));
      }
      EXPECT_GT(nth, 10);
    }
  }
}

// The new index would be of another run, and nobody would know the second pair any more.
TEST(resume_chain, existing_continue_takes_no_second_pair_away_where_the_first_has_lost_its_index) {
  const auto disk = stopped_and_killed(3, kSteps - 1);
  const std::string path = path_of(0, kSteps);
  ASSERT_TRUE(disk->remove(index_path(path)).is_ok());
  const auto before = files_of(*disk);
  const Plan last{.per_day = kSteps, .first = kSteps - 1, .options = "existing=continue"};
  const Status status = forecast(disk, last).status;
  EXPECT_EQ(status.code(), Code::state) << status.text();
  EXPECT_NE(status.text().find(again_path(path)), std::string::npos) << status.text();
  EXPECT_EQ(files_of(*disk), before);
}

// The file has steps up to that lead already, if only in the second pair.
TEST(resume_chain, existing_continue_compares_leads_with_the_pair_that_came_further) {
  const auto disk = stopped_and_killed(3, kSteps - 1);
  const auto before = files_of(*disk);
  const Plan last{.per_day = kSteps, .first = kSteps - 2, .options = "existing=continue"};
  EXPECT_EQ(forecast(disk, last).status.code(), Code::order);
  EXPECT_EQ(files_of(*disk), before);
}

}  // namespace
}  // namespace tailrace::streams
