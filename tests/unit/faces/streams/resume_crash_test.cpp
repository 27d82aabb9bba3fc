// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "faces/restart/run_state.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/resume/resume.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "index_samples.hpp"
#include "resume_samples.hpp"

// Power is lost at each storage call of a run, and once more while the run is continued. Each time the run
// goes on from each position that a checkpoint can have recorded.
namespace tailrace::streams {
namespace {

using storage::CrashPolicy;
using storage::CrashTarget;
using storage::FaultPlan;

/// The way in which a run ends before its time.
struct Ending {
  std::string name;
  bool power = true;  // false: the process is killed; its writes stay, whether they are durable or not
  CrashPolicy policy;
  std::uint64_t seed = 1;
  bool power_second = true;  // the same for the run that continues
};

std::vector<Ending> endings(std::uint64_t seed) {
  using Writes = CrashPolicy::Writes;
  using Entries = CrashPolicy::Entries;
  return {{"lost", true, {Writes::dropped, Entries::lost}, seed},
          {"kept", true, {Writes::kept, Entries::kept}, seed},
          {"only data", true, {Writes::kept, Entries::lost}, seed},
          {"only names", true, {Writes::dropped, Entries::kept}, seed},
          {"torn", true, {Writes::torn, Entries::some}, seed},
          {"garbage", true, {Writes::garbage, Entries::some}, seed + 1},
          {"killed", false, {}, seed, false},
          {"killed, then lost", false, {}, seed, true}};
}

/// A run whose `nth` storage call fails, and every later one.
struct Interrupted {
  std::shared_ptr<CrashTarget> disk;  // storage as the next run finds it
  std::vector<Position> positions;    // positions that a checkpoint may have recorded in it
  bool struck = false;                // the fault struck
};

Interrupted interrupted(const std::shared_ptr<CrashTarget>& disk, const Plan& run, std::int64_t nth,
                        const Ending& ending, bool power) {
  const auto faulty =
      storage::faulty_target(disk, FaultPlan{nth, storage::Fault::io_error, storage::changing_calls, true});
  const Outcome outcome = forecast(faulty, run);
  const auto seed = ending.seed + static_cast<std::uint64_t>(nth);
  return {power ? disk->crash(ending.policy, seed) : disk, outcome.durable, faulty->fired()};
}

/// Gives the same disk again and again. After a loss of power everything there is durable and can be copied;
/// the remains of a killed process are made anew.
class Maker {
 public:
  Maker(std::function<Interrupted()> make, bool power)
      : make_(std::move(make)), first_(make_()), power_(power) {}
  [[nodiscard]] const Interrupted& first() const { return first_; }
  [[nodiscard]] std::shared_ptr<CrashTarget> disk() const {
    if (!power_) return make_().disk;
    return first_.disk->crash({CrashPolicy::Writes::kept, CrashPolicy::Entries::kept}, 1);
  }

 private:
  std::function<Interrupted()> make_;
  Interrupted first_;
  bool power_;
};

/// A program that waits for the marker of a file must find the file.
void expect_published_is_whole(CrashTarget& disk, const std::string& what) {
  for (int step = 0; step < kSteps; step += 2) {
    if (!*disk.exists(path_of(step) + ".ready")) continue;
    ASSERT_TRUE(get_bytes(disk, path_of(step)) == truth().at(path_of(step))) << what << ": " << path_of(step);
  }
}

/// Continues undisturbed. Then the right bytes must be on storage, and not only in the memory of the machine.
void expect_exact_end(const std::shared_ptr<CrashTarget>& disk, const Position& from, bool ahead,
                      const std::string& what) {
  const Status status = forecast(disk, {.from = from, .ahead = ahead}).status;
  ASSERT_TRUE(status.is_ok()) << what << ": " << status.text();
  ASSERT_NO_FATAL_FAILURE(expect_truth(*disk->crash({}, 1), what));
}

struct Case {
  Ending ending;
  bool ahead = false;
  bool same_bytes = true;  // in every run
  int stride = 1;          // of the second interruptions
  int offset = 0;
};

std::vector<Position> with(Position first, const std::vector<Position>& others) {
  std::vector<Position> all{std::move(first)};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

/// Continues behind `from`, is interrupted at every `stride`-th call, and continues once more behind any
/// position.
void expect_exact_twice(const Case& each, const Maker& left, const Position& from, const std::string& what) {
  const Plan second{.from = from, .ahead = each.ahead};
  for (std::int64_t nth = 1 + each.offset % each.stride;; nth += each.stride) {
    const bool power = each.ending.power_second;
    const Maker again([&] { return interrupted(left.disk(), second, nth, each.ending, power); },
                      power && each.ending.power);
    if (!again.first().struck) return;
    for (const Position& position : with(from, again.first().positions)) {
      const std::string third =
          cat(what, ", ended again at call ", nth, ", continued behind ", position.steps);
      const auto disk = again.disk();
      if (each.same_bytes) ASSERT_NO_FATAL_FAILURE(expect_published_is_whole(*disk, third));
      ASSERT_NO_FATAL_FAILURE(expect_exact_end(disk, position, each.ahead, third));
    }
  }
}

/// Interrupts `run` at every `step`-th call and continues behind each of the positions that `choose` picks.
void expect_exact(Case each, const Plan& run, int step,
                  const std::function<std::vector<Position>(const std::vector<Position>&)>& choose) {
  for (std::int64_t nth = 1 + each.offset % step;; nth += step) {
    const Maker left([&] { return interrupted(make_disk(), run, nth, each.ending, each.ending.power); },
                     each.ending.power);
    if (!left.first().struck) return;
    for (const Position& from : choose(left.first().positions)) {
      const std::string what = cat(each.ending.name, " at call ", nth, ", continued behind ", from.steps);
      if (each.same_bytes) ASSERT_NO_FATAL_FAILURE(expect_published_is_whole(*left.disk(), what));
      ASSERT_NO_FATAL_FAILURE(expect_exact_end(left.disk(), from, each.ahead, what));
      // Each case has another offset: together they meet every call.
      each.offset += 7;
      ASSERT_NO_FATAL_FAILURE(expect_exact_twice(each, left, from, what));
    }
  }
}

/// TAILRACE_RESUME_STRIDE=1 interrupts at every single call, which takes very long with sanitizers.
int stride(int usual) {
  const char* const text = std::getenv("TAILRACE_RESUME_STRIDE");
  return text == nullptr ? usual : std::max(1, std::atoi(text));
}

/// Three of four interruptions are for --all: there are sixteen endings, and each begins at another call.
int rare(int usual) { return std::getenv("TEST_ALL") == nullptr ? 4 * usual + 1 : usual; }

class ResumeAfter : public ::testing::TestWithParam<std::tuple<std::size_t, bool>> {
 protected:
  [[nodiscard]] Case made_case(bool same_bytes, int usual) const {
    const auto [number, ahead] = GetParam();
    return {endings(7)[number], ahead, same_bytes, stride(rare(usual)),
            static_cast<int>(number) * 5 + (ahead ? 3 : 0)};
  }
};

TEST_P(ResumeAfter, any_interruption_and_a_second_one_the_files_are_those_of_an_undisturbed_run) {
  const Case each = made_case(true, 89);
  expect_exact(each, {.ahead = each.ahead}, std::min(3, stride(3)),
               [](const std::vector<Position>& known) { return with(position_behind(0), known); });
}

// The bytes that the first run has put behind the position differ from those of the second.
TEST_P(ResumeAfter, an_interruption_nothing_stays_of_what_lay_behind_the_position) {
  for (int behind = 0; behind < kSteps; ++behind) {
    const Case each = made_case(false, 47);
    const Plan run{.differs_from = behind, .ahead = each.ahead};
    expect_exact(each, run, std::min(5, stride(5)), [behind](const std::vector<Position>& known) {
      const bool is_known = static_cast<int>(known.size()) >= behind;
      return is_known ? std::vector<Position>{position_behind(behind)} : std::vector<Position>();
    });
  }
}

/// A second pair has no ending until it is finished, and then takes the place of a file that has one.
TEST(resume, in_netcdf4_any_interruption_of_a_second_pair_leaves_files_with_right_endings) {
  if (!formats::check_can_finish("netcdf4").is_ok()) GTEST_SKIP() << "built without HDF5";
  const std::string format = "format=netcdf4";
  const auto undisturbed = make_disk();
  ASSERT_TRUE(forecast(undisturbed, {.options = format}).status.is_ok());
  const auto expected = files_of(*undisturbed);
  for (const std::size_t number : {0, 4, 6}) {
    const Ending ending = endings(7)[number];
    for (const bool same_bytes : {true, false}) {
      const auto before = make_disk();
      ASSERT_TRUE(
          forecast(before, {.differs_from = same_bytes ? kSteps : 1, .options = format}).status.is_ok());
      for (std::int64_t nth = 1 + static_cast<std::int64_t>(number) / 2;; nth += stride(5)) {
        const auto disk = before->crash({CrashPolicy::Writes::kept, CrashPolicy::Entries::kept}, 1);
        const Plan second{.from = position_behind(1), .options = format};
        const Interrupted left = interrupted(disk, second, nth, ending, ending.power);
        if (!left.struck) break;
        const Position from = left.positions.empty() ? *second.from : left.positions.back();
        const std::string what = cat(ending.name, " at call ", nth, ", continued behind ", from.steps);
        const Status status = forecast(left.disk, {.from = from, .options = format}).status;
        ASSERT_TRUE(status.is_ok()) << what << ": " << status.text();
        ASSERT_NO_FATAL_FAILURE(expect_files(*left.disk->crash({}, 1), expected, what));
      }
    }
  }
}

/// Restores the stream from outside. Then no file that is still to be written has a step behind the position.
void expect_restored(CrashTarget& disk, const Position& from, const std::string& what) {
  const Status restored = restart::restore_stream(disk, from, {});
  ASSERT_TRUE(restored.is_ok()) << what << ": " << restored.text();
  std::vector<restart::OutputState> states;
  restart::look_at_stream(disk, from, {}, states);
  for (const restart::OutputState& state : states)
    ASSERT_EQ(state.outlook, restart::Outlook::agrees) << what << ": " << state.path << ": " << state.text;
  for (int step = 0; step < kSteps; step += 2) {
    for (const std::string& data : {path_of(step), again_path(path_of(step))}) {
      const Result<IndexContents> contents = load_index(disk, index_path(data));
      if (!contents.is_ok() || contents->closed || contents->steps.empty()) continue;
      ASSERT_TRUE(from.lead && contents->steps.back().lead <= *from.lead) << what << ": " << data;
      ASSERT_EQ(std::ssize(get_bytes(disk, data)), contents->data_end()) << what << ": " << data;
    }
  }
}

/// Ends a restore behind `from` at every `step`-th call, and repeats it; then a run goes on.
void expect_exact_after_restores(const Case& each, const Maker& left, const Position& from, int step,
                                 const std::string& what) {
  for (std::int64_t nth = 1;; nth += step) {
    const auto disk = left.disk();
    const auto faulty =
        storage::faulty_target(disk, FaultPlan{nth, storage::Fault::io_error, storage::changing_calls, true});
    (void)restart::restore_stream(*faulty, from, {}).is_ok();
    const std::string then = cat(what, ", restored until call ", nth);
    const auto seed = each.ending.seed + static_cast<std::uint64_t>(nth);
    const auto after = each.ending.power_second ? disk->crash(each.ending.policy, seed) : disk;
    ASSERT_NO_FATAL_FAILURE(expect_restored(*after, from, then));
    if (each.same_bytes) ASSERT_NO_FATAL_FAILURE(expect_published_is_whole(*after, then));
    ASSERT_NO_FATAL_FAILURE(expect_exact_end(after, from, each.ahead, then));
    if (!faulty->fired()) return;
  }
}

std::vector<restart::OutputState> looked_at(CrashTarget& disk, const Position& position, bool any_run) {
  std::vector<restart::OutputState> states;
  restart::look_at_stream(disk, position, {any_run}, states);
  return states;
}

TEST(run_streams, files_of_several_other_runs_do_not_tell_which_one_went_on) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 3, .stays_open = true}).status.is_ok());
  const Position own = position_behind(3);
  Position position = own;
  position.run = Uuid::random();
  ASSERT_TRUE(disk->make_directories(index_path("out/no_index.raw")).is_ok());  // no file either
  ASSERT_LT(looked_at(*disk, position, true).at(0).outlook, restart::Outlook::lost);
  Result<IndexContents> other = load_index(*disk, index_path(path_of(0)));
  ASSERT_TRUE(other.is_ok());
  other->header.run = Uuid::random();
  other->header.base = parse_stream(own.pattern, "format=raw base=2026-03-05")->definition.base;
  put_bytes(*disk, path_of(8), {});
  ASSERT_TRUE(IndexWriter::create(*disk, index_path(path_of(8)), other->header).is_ok());
  const restart::OutputState state = looked_at(*disk, position, true).at(0);
  EXPECT_EQ(state.outlook, restart::Outlook::unknown);
  EXPECT_NE(state.text.find("files of several runs have names of the pattern"), std::string::npos)
      << state.text;
  EXPECT_EQ(restart::restore_stream(*disk, position, {true}).code(), Code::io);
  EXPECT_LT(looked_at(*disk, own, true).at(0).outlook, restart::Outlook::lost);
}

TEST(run_streams, data_beside_a_file_whose_index_a_killed_restore_has_removed_are_removed) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 5, .stays_open = true}).status.is_ok());
  for (const int behind : {1, 5}) {  // beside a file behind the checkpoint, and beside that of its last step
    const std::string again = again_path(path_of(behind == 1 ? 2 : 4));
    const Position from = position_behind(behind);
    put_bytes(*disk, again, ByteVector(10));
    if (behind == 1) {
      const auto states = looked_at(*disk, from, false);
      EXPECT_EQ(std::ranges::count(states, path_of(2), &restart::OutputState::path), 1);
      EXPECT_TRUE(std::ranges::any_of(states, [](const restart::OutputState& each) {
        return each.path == path_of(2) && each.outlook == restart::Outlook::ahead;
      }));
    }
    const auto copy = disk->crash({CrashPolicy::Writes::kept, CrashPolicy::Entries::kept}, 1);
    const Status restored = restart::restore_stream(*copy, from, {});
    EXPECT_TRUE(restored.is_ok()) << restored.text();
    EXPECT_FALSE(*copy->exists(again));
  }
}

TEST(run_streams, an_empty_file_that_a_killed_run_has_left_without_an_index_is_removed) {
  const auto disk = make_disk();
  ASSERT_TRUE(forecast(disk, {.until = 3, .stays_open = true}).status.is_ok());
  const Position from = position_behind(3);
  const std::string foreign = path_of(6), other_name = "out/notes.raw";
  put_bytes(*disk, path_of(4), {});
  put_bytes(*disk, foreign, ByteVector(10));
  put_bytes(*disk, other_name, {});
  const auto states = looked_at(*disk, from, false);
  EXPECT_TRUE(std::ranges::any_of(states, [](const restart::OutputState& each) {
    return each.path == path_of(4) && each.outlook == restart::Outlook::ahead;
  }));
  const Status restored = restart::restore_stream(*disk, from, {});
  EXPECT_TRUE(restored.is_ok()) << restored.text();
  EXPECT_FALSE(*disk->exists(path_of(4)));
  EXPECT_TRUE(*disk->exists(foreign));
  EXPECT_TRUE(*disk->exists(other_name));
}

TEST(resume, a_full_disk_leaves_no_empty_file_without_an_index) {
  for (std::int64_t nth = 1;; ++nth) {
    const auto disk = make_disk();
    const auto faulty = storage::faulty_target(
        disk, FaultPlan{nth, storage::Fault::no_space, set_of(storage::Call::write), true});
    (void)forecast(faulty, {}).status.is_ok();
    for (int step = 0; step < kSteps; step += 2) {
      const bool is_orphan = *disk->exists(path_of(step)) && !*disk->exists(index_path(path_of(step)));
      EXPECT_FALSE(is_orphan) << nth << ", " << step;
    }
    if (!faulty->fired()) break;
  }
}

TEST(run_streams, a_restore_that_is_killed_anywhere_and_repeated_leaves_no_file_behind_the_checkpoint) {
  const Position from = position_behind(1);
  for (std::int64_t nth = 1;; ++nth) {
    const auto disk = make_disk();
    ASSERT_TRUE(forecast(disk, {.until = 5, .stays_open = true}).status.is_ok());
    ASSERT_TRUE(*disk->exists(path_of(4)));
    const auto faulty =
        storage::faulty_target(disk, FaultPlan{nth, storage::Fault::stopped, storage::changing_calls, true});
    (void)restart::restore_stream(*faulty, from, {}).is_ok();
    const Status repeated = restart::restore_stream(*disk, from, {});
    ASSERT_TRUE(repeated.is_ok()) << nth << ": " << repeated.text();
    EXPECT_FALSE(*disk->exists(path_of(4))) << nth;
    EXPECT_FALSE(*disk->exists(index_path(path_of(4)))) << nth;
    if (!faulty->fired()) break;
  }
}

TEST_P(ResumeAfter, an_interruption_and_restores_from_outside_the_files_are_those_of_an_undisturbed_run) {
  for (const bool same_bytes : {true, false}) {
    const Case each = made_case(same_bytes, 23);
    const Plan run{.differs_from = same_bytes ? kSteps : 1, .ahead = each.ahead};
    for (std::int64_t nth = 1 + each.offset % 5;; nth += stride(rare(4))) {
      const Maker left([&] { return interrupted(make_disk(), run, nth, each.ending, each.ending.power); },
                       each.ending.power);
      if (!left.first().struck) break;
      std::vector<Position> known = left.first().positions;
      if (!same_bytes && known.size() > 1) known.resize(1);
      for (const Position& from : same_bytes ? with(position_behind(0), known) : known) {
        const std::string what = cat(each.ending.name, " at call ", nth, ", continued behind ", from.steps);
        ASSERT_NO_FATAL_FAILURE(expect_exact_after_restores(each, left, from, stride(rare(5)), what));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(endings, ResumeAfter,
                         ::testing::Combine(::testing::Range<std::size_t>(0, endings(0).size()),
                                            ::testing::Bool()));

}  // namespace
}  // namespace tailrace::streams
