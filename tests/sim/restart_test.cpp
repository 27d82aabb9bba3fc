// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Tests streams that go on behind checkpoints, in simulated time, with chains of jobs. Jobs stop, are killed,
// lose power, fail or lose a rank, each with another method, handoff and number of ranks and servers. In the
// end the files have the bytes of a run that was never disturbed, or if a method gives records of a step any
// order the same records.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "engine/pipeline/handoff.hpp"
#include "engine/pipeline/method.hpp"
#include "faces/checkpoint/checkpoint.hpp"
#include "faces/checkpoint/slots.hpp"
#include "faces/restart/outputs.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"
#include "support/crash.hpp"

namespace tailrace::sim {
namespace restart_test {

using checkpoint::Checkpoint;

constexpr std::int64_t half_day = 43200;
constexpr std::int64_t all_steps = 12;

/// Ways in which a job ends.
enum class End {
  stopped,     // the job closes everything, wherever the files' steps are
  killed,      // at some call of storage, which keeps what it was given
  power_lost,  // the same, and data that was not durable may be gone
  failing,     // as if stopped, but a call of one rank's storage fails
  rank_lost    // the others wait, until somebody kills the job
};

struct Life {
  std::vector<NodeShape> nodes;
  End end = End::stopped;
  std::string method, handoff;
  std::string options;  // of the checkpoint
  std::int64_t steps = all_steps;
  std::int64_t save_every = 2;
  bool saves_at_stop = false;
  bool goes_on = false;  // behind a step that failed
  std::int64_t loses_rank_at = 0;

  [[nodiscard]] std::string text() const {
    static constexpr std::array ends{"stopped", "killed", "power lost", "failing", "rank lost"};
    std::string text = cat(method, ", ", handoff, ", ", ends[static_cast<std::size_t>(end)], " behind ",
                           steps, " steps, a save every ", save_every,
                           saves_at_stop ? " and when it stops" : "", goes_on ? ", goes on" : "", ", nodes");
    for (const NodeShape& node : nodes) text += cat(" ", node.ranks, "+", node.servers);
    return text;
  }
};

/// The answers that the ranks of a chain's jobs got.
struct Answers {
  std::int64_t committed = -1;               // the last step behind which a save was reported committed
  std::int64_t begun = -1;                   // the last one behind which a save was begun
  int resumed = 0;                           // streams that went on
  int promised = 0;                          // saves whose threads could see that the steps were settled
  std::map<int, std::map<int, Code>> heard;  // answers in one job: by call, by rank
  streams::Position position;                // of the stream, when the last job ended
  std::map<std::int64_t, int> puts;          // by step: the jobs that put it
  std::set<std::int64_t> may_lack;           // steps behind which a save was begun or still ran when the
                                             // program went on behind a failure
  std::set<std::int64_t> lacking;            // failed steps that loaded copies have recorded
  bool refused = false;                      // the only copy was never committed, and a loss of power has
                                             // torn it
  Texts wrong;
};

/// One rank of a job: a forecast whose only state is the number of its next step.
class Forecast {
 public:
  Forecast(SessionRank& rank, const Scenario& scenario, const Life& life, Answers& answers)
      : rank_(rank),
        scenario_(scenario),
        life_(life),
        answers_(answers),
        outputs_(rank.files(), [this] { return what_is_open(); }),
        one_(std::make_shared<const layout::Layout>(*layout::Layout::replicated({1}, rank.ranks()))) {}

  void run(Scheduler& dice) {
    Result<std::unique_ptr<Checkpoint>> made = Checkpoint::create(
        rank_.session(), outputs_, "cp", life_.options, checkpoint::parse_options(life_.options));
    if (!hear(made.status())) return;
    checkpoint_ = std::move(*made);
    if (load() && open_stream()) {
      const std::int64_t last = std::min(all_steps, step_ + life_.steps);
      while (step_ < last && take_step(dice)) {
        if (step_ % life_.save_every == 0) save();
      }
      if (life_.saves_at_stop) save();
      wait();
      hear(stream_->close());
      check_promise();
      if (rank_.rank() == 0) answers_.position = stream_->stream().position();
    }
    hear(checkpoint_->close());
  }

 private:
  /// Returns true if a collective call succeeded; it did on all ranks or on none.
  bool hear(const Status& status) {
    answers_.heard[calls_++][rank_.rank()] = status.code();
    knows_of_failure_ = knows_of_failure_ || !status.is_ok();
    if (!status.is_ok() && life_.end == End::stopped) wrong(status.text());
    return status.is_ok();
  }

  void wrong(const std::string& text) {
    answers_.wrong.push_back(cat("rank ", rank_.rank(), ": ", text, ", where ", answers_.committed,
                                 " was committed and ", answers_.begun, " begun"));
  }

  restart::Open what_is_open() {
    restart::Open open;
    if (stream_ != nullptr) open.streams.push_back(&stream_->stream());
    return open;
  }

  void name_items() {
    checkpoint::NamedItem step;
    step.name = "step";
    step.array.data = reinterpret_cast<std::byte*>(&step_);
    step.array.type = ElementType::i64;
    step.scalar = one_;
    checkpoint_->item(step);
  }

  /// Returns false if the job cannot go on.
  bool load() {
    bool found = false;
    const Status begun = checkpoint_->begin(Checkpoint::Direction::load, &found);
    answers_.refused = begun.code() == Code::corrupt && answers_.committed < 0;
    if (answers_.refused) {
      hear(checkpoint_->end());
      return false;  // the user moves the copy away, and starts again
    }
    if (!hear(begun)) return false;
    if (found) name_items();
    if (!hear(checkpoint_->end())) return false;
    // If storage does not give the newest copy, the job loads the one before it.
    if (life_.end == End::failing) answers_.committed = std::min(answers_.committed, found ? step_ : -1);
    if (found ? step_ < answers_.committed || step_ > answers_.begun : answers_.committed >= 0)
      wrong(found ? cat("step ", step_, " was loaded") : "nothing was found");
    return true;
  }

  bool open_stream() {
    auto plan = std::make_shared<StreamPlan>(*scenario_.plan);
    plan->resume = outputs_.stream(plan->pattern);
    if (plan->resume && rank_.rank() == 0) look_for_untold(*plan->resume);
    auto stream = std::make_unique<PlannedStream>(rank_, plan);
    if (!hear(stream->create())) return false;
    stream_ = std::move(stream);
    outputs_.take_stream(plan->pattern);
    if (plan->resume && rank_.rank() == 0) ++answers_.resumed;
    return true;
  }

  /// A program that stops when it hears of a failure must never load a copy that lacks the step.
  void look_for_untold(const streams::Position& position) {
    for (const streams::FailedStep& each : position.failed) {
      if (answers_.lacking.insert(each.step).second && !answers_.may_lack.contains(step_))
        wrong(cat("the copy behind step ", step_, " lacks step ", each.step,
                  ", and nobody was told: ", each.text));
    }
  }

  /// From here on a save that is not committed yet may record failures of which the program was told.
  void go_on() {
    outputs_.note_going_on();
    if (knows_of_failure_ && begun_save_ &&
        checkpoint_->saves().progress() != checkpoint::Progress::committed)
      answers_.may_lack.insert(*begun_save_);
  }

  /// Returns false if the job is to stop.
  bool take_step(Scheduler& dice) {
    if (life_.end == End::rank_lost && step_ >= life_.loses_rank_at && rank_.rank() == rank_.ranks() - 1)
      rank_.fibre().lose();
    if (rank_.rank() == 0) ++answers_.puts[step_];
    rank_.compute(dice.random(1, dice.once_in(10) ? FibreWorld::second : 1'000'000));
    look_at_promise();
    if (rank_.rank() == 0) go_on();
    stream_->begin(step_ * half_day);
    for (std::size_t i = 0; i < scenario_.plan->fields.size(); ++i) {
      std::vector<float>& array = arrays_[{step_, static_cast<int>(i)}];
      array = array_of(*scenario_.plan, rank_.rank(), static_cast<int>(i), step_);
      stream_->put(static_cast<int>(i), reinterpret_cast<const std::byte*>(array.data()));
    }
    const bool is_good = hear(stream_->end());
    check_promise();
    ++step_;
    return is_good || life_.goes_on;
  }

  void save() {
    answers_.begun = std::max(answers_.begun, step_);
    saved_.reset();
    if (rank_.rank() == 0) {
      begun_save_ = step_;
      answers_.may_lack.erase(step_);
      if (knows_of_failure_) answers_.may_lack.insert(step_);
    }
    if (!hear(checkpoint_->begin(Checkpoint::Direction::save, nullptr))) return;
    name_items();
    if (hear(checkpoint_->end())) saved_ = step_;
    asked_ = {outputs_.settled_for_threads(), stream_->position()};
    if (step_ % 3 == 0) wait();
  }

  /// Asks as the thread of a save does while the program computes.
  void look_at_promise() {
    if (!asked_.question || asked_.promised || !asked_.question().value_or(false)) return;
    asked_.promised = true;
    ++answers_.promised;
  }

  /// No step may turn out to have failed that a thread took for settled.
  void check_promise() {
    if (!asked_.promised) return;
    const streams::Position now = stream_->stream().with_failures(asked_.position);
    if (now.failed.size() != asked_.position.failed.size())
      wrong(cat("threads took step ", now.failed.back().step, " for durable: ", now.failed.back().text));
  }

  void wait() {
    // The library tells a failure once.
    if (!hear(checkpoint_->wait())) saved_.reset();
    if (saved_) answers_.committed = std::max(answers_.committed, *saved_);
  }

  SessionRank& rank_;
  const Scenario& scenario_;
  const Life& life_;
  Answers& answers_;
  restart::Outputs outputs_;
  const std::shared_ptr<const layout::Layout> one_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<PlannedStream> stream_;
  Arrays arrays_;
  std::int64_t step_ = 0;
  std::optional<std::int64_t> saved_;
  std::optional<std::int64_t> begun_save_;
  /// What threads may ask about the last save.
  struct Asked {
    std::function<std::optional<bool>()> question;
    streams::Position position;  // of the stream at the save
    bool promised = false;
  };
  Asked asked_;
  bool knows_of_failure_ = false;
  int calls_ = 0;
};

Texts disagreements(const Answers& answers) {
  Texts found;
  for (const auto& [call, codes] : answers.heard) {
    for (const auto& [rank, code] : codes) {
      if (code == codes.begin()->second) continue;
      found.push_back(cat("call ", call, ": rank ", rank, " was told ", static_cast<int>(code), " and rank ",
                          codes.begin()->first, " ", static_cast<int>(codes.begin()->second)));
      break;
    }
  }
  return found;
}

int ranks_of(const Life& life) {
  int ranks = 0;
  for (const NodeShape& node : life.nodes) ranks += node.ranks;
  return ranks;
}

/// With `keeps_order` the life has a method that gives records the order of puts.
Life random_life(Scheduler& dice, End end, bool keeps_order) {
  Life life;
  life.end = end;
  do {
    life.method = any_method(static_cast<std::uint64_t>(dice.random(0, 999)));
  } while (keeps_order && (*pipeline::find_method(life.method))->has_any_order);
  life.handoff =
      pipeline::handoffs()[static_cast<std::size_t>(dice.random(0, std::ssize(pipeline::handoffs()) - 1))]
          .name;
  const int ranks = static_cast<int>(dice.random(end == End::rank_lost ? 2 : 1, 5));
  const int servers = static_cast<int>(dice.random(0, 3));
  life.nodes = life.handoff == "shared" && servers > 0 ? nodes_with_servers(dice, ranks, servers)
                                                       : random_nodes(dice, ranks, servers);
  life.options = cat("keep=", dice.random(2, 3), dice.once_in(3) ? " async=off" : "");
  life.steps = dice.random(0, 7);
  life.save_every = dice.random(1, 4);
  life.saves_at_stop = dice.once_in(2);
  life.goes_on = !dice.once_in(4);
  life.loses_rank_at = dice.random(0, all_steps - 1);
  return life;
}

Scenario scenario_of(const Life& life, const std::string& pattern) {
  const int ranks = ranks_of(life);
  Scenario scenario;
  scenario.pattern = pattern;
  scenario.method = life.method;
  scenario.handoff = life.handoff;
  scenario.variables = {{"t", *layout::Layout::block({5, 7}, ranks), "levels=hybrid:1-2"},
                        {"ps", *layout::Layout::block({5, 7}, ranks), "levels=surface"}};
  scenario.format = pattern.substr(pattern.rfind('.') + 1);
  scenario.prepare();
  return scenario;
}

/// Runs one job. Returns the storage that the next one finds.
std::shared_ptr<storage::CrashTarget> live(const Life& life, const Scenario& scenario,
                                           const std::shared_ptr<storage::CrashTarget>& disk,
                                           std::uint64_t seed, Answers& answers) {
  using Policy = storage::CrashPolicy;
  Scheduler dice(seed);
  const bool stops = life.end == End::killed || life.end == End::power_lost;
  const auto power = storage::faulty_target(
      disk, {stops ? dice.random(1, 250) : 0, storage::Fault::stopped, storage::all_calls, true});
  Job job{life.nodes, "", {}, power, seed};
  int all = 0;
  for (const NodeShape& node : life.nodes) all += node.ranks + node.servers;
  if (life.end == End::failing)
    job.more_settings[static_cast<int>(dice.random(0, all - 1))] =
        cat("fault=\"nth=", dice.random(1, 60), dice.once_in(2) ? " calls=all" : "",
            dice.once_in(3) ? " for=good" : "", dice.once_in(3) ? " fault=enospc" : "", "\"");
  SessionWorld world(job);
  constexpr Nanoseconds limit = 300 * FibreWorld::second;
  // A program that is unwound after the limit must not reach storage any more.
  if (life.end == End::rank_lost) {
    world.world().scheduler().after(limit - 1, [&] {
      power->restart({1, storage::Fault::stopped, storage::all_calls, true});
    });
  }
  answers.heard.clear();
  const Texts stuck =
      world.run([&](SessionRank& rank) { Forecast(rank, scenario, life, answers).run(dice); }, limit);
  EXPECT_EQ(answers.wrong, Texts());
  EXPECT_EQ(disagreements(answers), Texts());
  if (life.end != End::rank_lost) {
    EXPECT_EQ(stuck, Texts());
  }
  for (const Status& each : world.failures()) ADD_FAILURE() << each.text();
  if (life.end != End::power_lost) return disk;
  constexpr std::array policies{Policy{Policy::Writes::dropped, Policy::Entries::lost},
                                Policy{Policy::Writes::torn, Policy::Entries::some},
                                Policy{Policy::Writes::garbage, Policy::Entries::some}};
  return disk->crash(policies[static_cast<std::size_t>(dice.random(0, 2))], seed);
}

/// Returns true for a step that the files may have although it is recorded as failed. Either an earlier job
/// had put it too and may have published the file, or storage was so broken that the step could not be taken
/// back.
bool may_be_there(const Answers& answers, std::int64_t step) {
  if (answers.puts.at(step) > 1) return true;
  return std::any_of(answers.position.failed.begin(), answers.position.failed.end(),
                     [](const streams::FailedStep& each) {
                       return each.text.find("could not be taken back") != std::string::npos;
                     });
}

bool has_failed(const Answers& answers, std::int64_t step) {
  return std::any_of(answers.position.failed.begin(), answers.position.failed.end(),
                     [step](const streams::FailedStep& each) { return each.step == step; });
}

std::string failure_texts(const Answers& answers) {
  std::string texts;
  for (const streams::FailedStep& each : answers.position.failed)
    texts += cat(each.step, ": ", each.text, "; ");
  return texts;
}

/// Expects that the files hold all steps, except those that a checkpoint has recorded as failed.
/// With `has_any_order` the records of a step may stand in any order.
void expect_whole(storage::Target& target, const Scenario& scenario, bool one_file, bool has_any_order,
                  const Answers& answers) {
  std::map<std::string, std::vector<std::int64_t>> files;
  for (std::int64_t step = 0; step < all_steps; ++step)
    files[cat(one_file ? "fc." : cat("fc_2026030", 1 + step / 2, "."), scenario.format)].push_back(step);
  std::set<std::string> untouched;  // no run had reason to open them behind their failed steps
  for (const auto& [name, steps] : files) {
    const Result<streams::IndexContents> index = streams::load_index(target, streams::index_path(name));
    // Nothing was committed there: the file may be one that an earlier run left, or one that could not be
    // closed.
    const bool all_failed =
        std::all_of(steps.begin(), steps.end(), [&](std::int64_t step) { return has_failed(answers, step); });
    if (all_failed) untouched.insert(name + ".again");
    if (all_failed && (!index.is_ok() || !index->closed)) continue;
    ASSERT_TRUE(index.is_ok()) << index.status().text();
    EXPECT_TRUE(index->closed) << name;
    auto next = index->steps.begin();
    std::vector<std::int64_t> there;
    for (const std::int64_t step : steps) {
      const bool is_there = next != index->steps.end() && next->lead == step * half_day;
      if (has_failed(answers, step)) {
        EXPECT_TRUE(!is_there || may_be_there(answers, step))
            << name << " has step " << step << ", which failed: " << failure_texts(answers);
      } else {
        EXPECT_TRUE(is_there) << name << " lacks step " << step;
      }
      if (!is_there) continue;
      ++next;
      there.push_back(step);
    }
    EXPECT_TRUE(next == index->steps.end()) << name << " has a step at lead " << next->lead;
    expect_steps(target, name, *scenario.plan, *index, there, half_day, has_any_order, "");
  }
  const auto names = target.list(".");
  ASSERT_TRUE(names.is_ok());
  for (const std::string& name : *names) {
    const std::size_t end = name.find(".again");
    const bool may_be_left = end != std::string::npos && untouched.count(name.substr(0, end + 6)) > 0;
    EXPECT_TRUE(end == std::string::npos || may_be_left) << name << " was left";
  }
}

/// Does what a user does after reading that no copy is whole.
void move_copies_away(storage::Target& target) {
  const Result<std::vector<std::string>> copies = checkpoint::find_copies(target, "cp");
  ASSERT_TRUE(copies.is_ok()) << copies.status().text();
  for (const std::string& path : *copies) ASSERT_TRUE(target.remove(path).is_ok()) << path;
}

TEST(sim_restart, a_chain_of_jobs_leaves_the_bytes_of_an_undisturbed_run_however_they_end) {
  int resumed = 0, promised = 0;
  std::size_t failed = 0;
  for (std::uint64_t seed = 1; seed <= seeds(90); ++seed) {
    Scheduler dice(seed * 4937);
    const bool one_file = dice.once_in(2);
    const std::string pattern = cat(one_file ? "fc." : "fc_{valid:%Y%m%d}.", any_format(seed));
    auto disk = storage::crash_target();
    Answers answers;
    std::string texts;
    const bool keeps_order = dice.once_in(2);
    bool any_order = false;
    for (std::uint64_t number = 0; number < 7; ++number) {
      Life life = random_life(dice, dice.once_in(3) ? End::failing : static_cast<End>(dice.random(0, 4)),
                              keeps_order);
      if (number == 6) {
        life.end = End::stopped;
        life.steps = all_steps;
      }
      texts += cat("job ", number, ": ", life.text(), "; ");
      SCOPED_TRACE(cat("seed ", seed, ", ", pattern, ": ", texts));
      const Scenario scenario = scenario_of(life, pattern);
      any_order = any_order || has_any_order(scenario);
      disk = live(life, scenario, disk, seed * 100 + number, answers);
      if (answers.refused) {
        move_copies_away(*disk);
        disk = live(life, scenario, disk, seed * 100 + number, answers);
      }
      if (number == 6) expect_whole(*disk, scenario, one_file, any_order, answers);
      if (testing::Test::HasFailure()) return;
    }
    resumed += answers.resumed;
    promised += answers.promised;
    failed += answers.position.failed.size();
  }
  EXPECT_GT(resumed, of_seeds(100));
  EXPECT_GT(promised, of_seeds(100));
  EXPECT_GT(failed, of_seeds(10));
}

}  // namespace restart_test
}  // namespace tailrace::sim
