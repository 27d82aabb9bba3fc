// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Chains of jobs that write one output with existing=continue. Each job has another method, handoff and
// number of ranks and servers, and another end. Whatever was told to be durable stays, what the indexes tell
// is there, and in the end the files are those of one job that was never disturbed. (restart_test.cpp has the
// chains of jobs with checkpoints.)
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <set>

#include "engine/pipeline/handoff.hpp"
#include "engine/pipeline/method.hpp"
#include "faces/streams/files/manifest.hpp"
#include "faces/streams/files/pairs.hpp"
#include "formats/index/ending.hpp"
#include "formats/listings/listings.hpp"
#include "formats/registry/registry.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"
#include "support/crash.hpp"

namespace tailrace::sim {
namespace chains_test {

constexpr std::int64_t half_day = 43200;
constexpr std::int64_t all_steps = 12;

/// Ways in which a job ends.
enum class End {
  closed,       // behind some step, in good order
  limited,      // likewise, when the ranks agree that the job's time is over
  killed,       // at some call of storage, which keeps what it was given
  power_lost,   // the same, and data that was not durable may be gone
  rank_lost,    // the others wait, until somebody kills the job
  server_lost,  // likewise; with 0 servers a rank, which is one
  failing,      // a call of one rank's storage fails, and the program stops
  full          // storage has no room from some write on, and the program stops
};
constexpr std::array end_names{"closed",    "limited",     "killed",  "power lost",
                               "rank lost", "server lost", "failing", "full"};

struct Life {
  End end = End::closed;
  std::string method, handoff;
  std::vector<NodeShape> nodes;
  std::int64_t first = 0, until = all_steps;  // steps
  bool is_patient = false;                    // waits for each step to be durable
  bool waits_for_room = false;
  std::int64_t loses_at = 0;  // the step in which a process is lost, or from which on the program asks
                              // whether it is to stop

  [[nodiscard]] std::string text() const {
    std::string text =
        cat(method, ", ", handoff, ", ", end_names[static_cast<std::size_t>(end)], ", steps ", first, " to ",
            until, is_patient ? ", patient" : "", waits_for_room ? ", waits for room" : "", ", nodes");
    for (const NodeShape& node : nodes) text += cat(" ", node.ranks, "+", node.servers);
    return text;
  }
};

/// One output: what all jobs of a chain agree about.
struct Output {
  std::string pattern;
  std::string format;
};

std::vector<std::string> formats_of_build() {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i == 0 || any_format(i) != names.front(); ++i) names.push_back(any_format(i));
  const Result<const formats::Format*> grib = formats::find("grib2");
  if (grib.is_ok() && (*grib)->make != nullptr) names.emplace_back("grib2");
  return names;
}

Output output_of(const std::string& format, bool one_file) {
  return {one_file ? "fc.data" : "fc_{valid:%Y%m%d}.data", format};
}

Scenario scenario_of(const Output& output, const Life& life) {
  int ranks = 0;
  for (const NodeShape& node : life.nodes) ranks += node.ranks;
  Scenario scenario;
  scenario.pattern = output.pattern;
  scenario.format = output.format;
  scenario.method = life.method;
  scenario.handoff = life.handoff;
  const bool is_grib = output.format == "grib2";
  const std::string more = is_grib ? " accuracy=0.01" : "";
  scenario.variables = {{"t", *layout::Layout::block({5, 7}, ranks), cat("levels=hybrid:1-2", more)},
                        {"u", *layout::Layout::block({5, 7}, ranks), cat("levels=hybrid:3", more)}};
  scenario.options =
      cat("existing=continue ready=.ready manifest=", streams::manifest_available().is_ok() ? "on" : "off",
          life.waits_for_room ? " on_full=wait:1h" : "");
  if (is_grib)
    scenario.options +=
        " index=wgrib2,ecmwf keys=\"gridType=regular_ll, latitudeOfFirstGridPointInDegrees=50, "
        "longitudeOfFirstGridPointInDegrees=5, latitudeOfLastGridPointInDegrees=46, "
        "longitudeOfLastGridPointInDegrees=11\"";
  scenario.prepare();
  return scenario;
}

/// What the programs of a chain were told.
struct Answers {
  std::int64_t durable = 0;                  // so many steps, from the first on
  std::map<int, std::map<int, Code>> heard;  // in one job: by call, by rank
  bool is_whole = false;                     // the job has closed its stream without an error
  Texts wrong;
};

/// One rank of a job.
class Forecast {
 public:
  Forecast(SessionRank& rank, const Scenario& scenario, const Life& life, Answers& answers)
      : rank_(rank), life_(life), answers_(answers), stream_(rank, scenario.plan), plan_(*scenario.plan) {}

  /// `lose` is called by the rank that is lost, or before a server is.
  void run(Scheduler& dice, const std::function<void()>& lose) {
    if (!hear(stream_.create())) return;
    bool goes_on = true;
    std::int64_t step = life_.first;
    for (; goes_on && step < life_.until; ++step) {
      rank_.compute(dice.random(1, dice.once_in(10) ? FibreWorld::second : 1'000'000));
      stream_.begin(step * half_day);
      put(step, 0);
      if (step == life_.loses_at && lose) lose();
      put(step, 1);
      goes_on = hear(stream_.end()) && (!life_.is_patient || hear(stream_.wait(true)));
      if (goes_on && life_.is_patient) answers_.durable = std::max(answers_.durable, step + 1);
      if (goes_on && life_.end == End::limited && step >= life_.loses_at) goes_on = !should_stop();
    }
    const bool is_closed = hear(stream_.close());
    answers_.is_whole = is_closed && stream_.failures().empty();
    if (answers_.is_whole) answers_.durable = std::max(answers_.durable, step);
  }

 private:
  void put(std::int64_t step, int field) {
    std::vector<float>& array = arrays_[{step, field}];
    array = array_of(plan_, rank_.rank(), field, step);
    stream_.put(field, reinterpret_cast<const std::byte*>(array.data()));
  }

  bool should_stop() {
    const Result<bool> stops = rank_.session().computing().should_stop();
    return !hear(stops.status()) || *stops;
  }

  /// Returns true if a collective call succeeded; it did on all ranks or on none.
  bool hear(const Status& status) {
    answers_.heard[calls_++][rank_.rank()] = status.code();
    const bool may_fail = life_.end == End::killed || life_.end == End::power_lost ||
                          life_.end == End::failing || life_.end == End::full;
    const bool is_of_storage = status.code() == Code::io || status.code() == Code::space;
    if (!status.is_ok() && (!may_fail || !is_of_storage))
      answers_.wrong.push_back(cat("rank ", rank_.rank(), ": ", status.text()));
    return status.is_ok();
  }

  SessionRank& rank_;
  const Life& life_;
  Answers& answers_;
  PlannedStream stream_;
  const StreamPlan& plan_;
  Arrays arrays_;
  int calls_ = 0;
};

Texts disagreements(const Answers& answers) {
  Texts found;
  for (const auto& [call, codes] : answers.heard) {
    for (const auto& [rank, code] : codes) {
      if (code != codes.begin()->second) found.push_back(cat("call ", call, ": rank ", rank));
    }
  }
  return found;
}

/// Runs one job. Returns the storage that the next one finds.
std::shared_ptr<storage::CrashTarget> live(const Life& life, const Scenario& scenario,
                                           const std::shared_ptr<storage::CrashTarget>& disk,
                                           std::uint64_t seed, Answers& answers) {
  using storage::Fault;
  using Policy = storage::CrashPolicy;
  Scheduler dice(seed);
  const auto nth = [&dice] { return dice.random(1, std::int64_t{1} << dice.random(2, 8)); };
  storage::FaultPlan plan;
  if (life.end == End::killed || life.end == End::power_lost)
    plan = {nth(), Fault::stopped, storage::all_calls, true};
  // Real time passes while a stream waits for room: somebody makes room at once.
  if (life.end == End::full)
    plan = {nth(), Fault::no_space, storage::set_of(storage::Call::write, storage::Call::make_directories),
            !life.waits_for_room};
  const auto power = storage::faulty_target(disk, plan);
  Job job{life.nodes, "", {}, power, seed};
  job.threads = static_cast<int>(dice.random(1, 2));
  job.mixed = dice.once_in(2);
  job.crowded = dice.once_in(3);
  job.lacks_gets = dice.once_in(4);
  if (dice.once_in(3)) job.disk_bytes_per_second = 1e5;
  if (dice.once_in(3)) squeeze(job, *scenario.plan);
  if (life.end == End::limited) job.settings = "time_limit=1s stop_margin=1h";
  SessionWorld world(job);
  const auto any = [&](int count) { return static_cast<int>(dice.random(0, count - 1)); };
  if (life.end == End::failing)
    world.storage_of(any(world.servers()))
        .restart({nth() / 2 + 1, dice.once_in(2) ? Fault::io_error : Fault::no_space,
                  dice.once_in(2) ? storage::all_calls : storage::changing_calls, dice.once_in(2)});
  Scheduler& clock = world.world().scheduler();
  constexpr Nanoseconds limit = 600 * FibreWorld::second;
  const bool hangs = life.end == End::rank_lost || life.end == End::server_lost;
  // A program that is unwound after the limit must not reach storage any more.
  if (hangs) clock.after(limit - 1, [&] { power->restart({1, Fault::stopped, storage::all_calls, true}); });
  const bool loses_server = life.end == End::server_lost && !world.roster().self_served;
  const int lost = loses_server
                       ? world.roster().server_transport[static_cast<std::size_t>(any(world.servers()))]
                       : any(world.ranks());
  const Nanoseconds delay = dice.random(0, std::int64_t{1} << dice.random(1, 24));
  answers.heard.clear();
  answers.is_whole = false;
  const Texts stuck = world.run(
      [&](SessionRank& rank) {
        std::function<void()> lose;
        if (loses_server && rank.rank() == 0)
          lose = [&] { clock.after(delay, [&] { world.world().rank(lost).lose(); }); };
        if (hangs && !loses_server && rank.rank() == lost) lose = [&rank] { rank.fibre().lose(); };
        Forecast(rank, scenario, life, answers).run(dice, lose);
      },
      limit);
  EXPECT_EQ(answers.wrong, Texts());
  EXPECT_EQ(disagreements(answers), Texts());
  if (!hangs) {
    EXPECT_EQ(stuck, Texts());
  }
  for (const Status& each : world.failures()) ADD_FAILURE() << each.text();
  if (life.end != End::power_lost) return disk;
  constexpr std::array policies{Policy{Policy::Writes::dropped, Policy::Entries::lost},
                                Policy{Policy::Writes::dropped, Policy::Entries::kept},
                                Policy{Policy::Writes::kept, Policy::Entries::lost},
                                Policy{Policy::Writes::torn, Policy::Entries::some},
                                Policy{Policy::Writes::garbage, Policy::Entries::some}};
  return disk->crash(policies[static_cast<std::size_t>(any(std::ssize(policies)))], seed);
}

/// The bytes of a data file, and what its index tells.
struct WrittenFile {
  ByteVector bytes;
  streams::IndexContents index;
};
using RecordKey = std::pair<std::int32_t, std::int32_t>;

struct Written {
  std::map<std::string, WrittenFile> files;  // by the names of data files
  std::map<std::string, ByteVector> listings;
  std::set<std::string> names;  // of all files
};

Written look_at(storage::Target& target) {
  Written found;
  const auto names = target.list(".");
  EXPECT_TRUE(names.is_ok()) << names.status().text();
  for (const std::string& name : *names) {
    found.names.insert(name);
    if (name.ends_with(".idx") || name.ends_with(".index")) found.listings[name] = read_file(target, name);
    if (!name.ends_with(".trx")) continue;
    Result<streams::IndexContents> index = streams::load_index(target, name);
    EXPECT_TRUE(index.is_ok()) << index.status().text();
    const std::string data = name.substr(0, name.size() - 4);
    if (index.is_ok()) found.files[data] = {read_file(target, data), *std::move(index)};
  }
  return found;
}

std::map<RecordKey, ByteVector> records_of(const WrittenFile& file, const streams::IndexStep& step) {
  std::map<RecordKey, ByteVector> records;
  for (const streams::IndexRecord& each : step.records) {
    EXPECT_LE(each.offset + each.length, std::ssize(file.bytes));
    if (each.offset + each.length > std::ssize(file.bytes)) continue;
    const auto begin = file.bytes.begin() + each.offset;
    records[{each.field, each.level}] = ByteVector(begin, begin + each.length);
  }
  return records;
}

/// Expects that all steps that the indexes tell are there with the right records, and that they follow one
/// another from the first on. Returns their number. `has_order` has a value for each of these steps: true if
/// their records stand in the order of puts.
std::int64_t expect_sound(const Written& found, const Written& truth, const std::vector<char>& has_order) {
  std::int64_t steps = 0;
  for (const auto& [name, file] : found.files) {
    const auto whole = truth.files.find(name);
    EXPECT_TRUE(whole != truth.files.end()) << name;
    if (whole == truth.files.end()) continue;
    EXPECT_LE(file.index.steps.size(), whole->second.index.steps.size()) << name;
    for (std::size_t i = 0; i < file.index.steps.size(); ++i, ++steps) {
      const streams::IndexStep& step = file.index.steps[i];
      const streams::IndexStep& right = whole->second.index.steps[i];
      EXPECT_EQ(step.lead, steps * half_day) << name;
      EXPECT_EQ(step.begin, right.begin) << name << ", step " << steps;
      EXPECT_EQ(step.end, right.end) << name << ", step " << steps;
      EXPECT_TRUE(records_of(file, step) == records_of(whole->second, right)) << name << ", step " << steps;
      const bool may_differ = static_cast<std::size_t>(steps) >= has_order.size() ||
                              has_order[static_cast<std::size_t>(steps)] == 0;
      EXPECT_TRUE(may_differ || step.records == right.records)
          << name << ": the records of step " << steps << " are not in the order of puts";
    }
  }
  return steps;
}

/// Expects that files with a ready marker are finished, and that the manifest says what they are. Returns how
/// many there are.
std::size_t expect_announced(storage::Target& target, const Written& found) {
  std::size_t announced = 0;
  for (const auto& [name, file] : found.files) {
    if (!found.names.contains(name + ".ready")) continue;
    ++announced;
    EXPECT_TRUE(file.index.closed) << name << " is announced, and its index is open";
    if (!streams::manifest_available().is_ok()) continue;
    const Result<std::vector<streams::ManifestEntry>> manifest =
        streams::read_manifest(target, "manifest.jsonl");
    EXPECT_TRUE(manifest.is_ok()) << manifest.status().text();
    if (!manifest.is_ok()) continue;
    streams::ManifestEntry wanted = streams::manifest_entry(name, file.index), last;
    for (const streams::ManifestEntry& each : *manifest) {
      if (each.path == wanted.path) last = each;
    }
    wanted.size = std::ssize(file.bytes);
    wanted.digest = *streams::digest_file(target, name);
    EXPECT_TRUE(last == wanted) << name << " is announced, and the manifest tells something else";
  }
  return announced;
}

/// Does what `tailrace repair` does, and expects that it finds nothing.
void expect_nothing_to_repair(storage::Target& target, const Written& before) {
  for (const auto& [name, file] : before.files) {
    const Status replaced = streams::end_replacing(target, name);
    EXPECT_TRUE(replaced.is_ok()) << replaced.text();
    const Result<streams::Recovered> recovered = streams::recover(target, name);
    ASSERT_TRUE(recovered.is_ok()) << recovered.status().text();
    EXPECT_EQ(recovered->steps_cut, 0U) << name;
    EXPECT_EQ(recovered->data_bytes_cut, 0) << name;
    EXPECT_EQ(recovered->index_bytes_cut, 0) << name;
    const auto ranges = streams::ranges_of(file.index.steps);
    const Status held = storage::check_holds(target, name, file.index.data_end(), ranges);
    EXPECT_TRUE(held.is_ok()) << held.text();
    const Result<bool> ended = streams::has_ending(target, name, file.index);
    EXPECT_TRUE(ended.is_ok() && *ended) << name;
    const Status listed = listings::complete_all(target, name, ranges);
    EXPECT_TRUE(listed.is_ok()) << listed.text();
  }
  const Written after = look_at(target);
  EXPECT_EQ(after.names, before.names);
  EXPECT_TRUE(after.listings == before.listings);
  for (const auto& [name, file] : before.files) EXPECT_TRUE(after.files.at(name).bytes == file.bytes) << name;
}

/// Expects the files of the undisturbed job. Where the records of a step may have any order, and what tells
/// of their places differs, expect_sound() has compared the records.
void expect_whole(storage::Target& target, const Written& truth, const std::vector<char>& has_order) {
  const Written found = look_at(target);
  EXPECT_EQ(found.names, truth.names);
  ASSERT_EQ(expect_sound(found, truth, has_order), all_steps);
  EXPECT_EQ(expect_announced(target, found), truth.files.size());
  std::size_t step = 0;
  for (const auto& [name, file] : found.files) {
    EXPECT_TRUE(file.index.closed) << name;
    const WrittenFile& right = truth.files.at(name);
    const auto first = has_order.begin() + static_cast<std::ptrdiff_t>(step);
    step += file.index.steps.size();
    const bool keeps_order = std::all_of(first, has_order.begin() + static_cast<std::ptrdiff_t>(step),
                                         [](char each) { return each != 0; });
    EXPECT_EQ(file.bytes.size(), right.bytes.size()) << name;
    if (!keeps_order) continue;
    EXPECT_TRUE(file.bytes == right.bytes) << name;
    EXPECT_TRUE(file.index.steps == right.index.steps) << name;
    for (const char* const ending : {".idx", ".index"}) {
      const auto listing = truth.listings.find(name + ending);
      if (listing == truth.listings.end()) continue;
      EXPECT_TRUE(found.listings.contains(name + ending) &&
                  found.listings.at(name + ending) == listing->second)
          << name << ending;
    }
  }
  expect_nothing_to_repair(target, found);
}

std::shared_ptr<storage::Target> with_stores(const std::shared_ptr<storage::CrashTarget>& disk) {
  return stores::with_stores(disk);
}

/// Returns what one job leaves that nobody disturbs.
const Written& undisturbed(const Output& output) {
  static std::map<std::string, Written> all;
  const auto found = all.find(output.pattern + output.format);
  if (found != all.end()) return found->second;
  Life life;
  life.method = "scan";
  life.handoff = "auto";
  life.nodes = {{1, 0}};
  Answers answers;
  const auto disk = live(life, scenario_of(output, life), storage::crash_target(), 1, answers);
  EXPECT_TRUE(answers.is_whole);
  return all[output.pattern + output.format] = look_at(*with_stores(disk));
}

/// What the lives of all chains were.
struct Tried {
  std::set<std::string> cells;  // method, handoff, end
  std::map<End, int> cut_short;
  int lives = 0;
};

constexpr std::size_t ends = end_names.size();

/// Returns a life of the chain. The lives of all chains go through all methods, handoffs and ends.
Life life_of(Scheduler& dice, std::uint64_t number, std::int64_t first) {
  const std::size_t methods = pipeline::methods().size(), handoffs = pipeline::handoffs().size();
  const std::uint64_t cell = number * 97 % (methods * handoffs * ends);
  Life life;
  life.end = static_cast<End>(cell % ends);
  life.method = pipeline::methods()[cell / ends % methods].name;
  life.handoff = pipeline::handoffs()[cell / ends / methods].name;
  const int ranks = static_cast<int>(dice.random(1, 4));
  const int servers = static_cast<int>(dice.random(0, 3));
  life.nodes = life.handoff == "shared" && servers > 0 ? nodes_with_servers(dice, ranks, servers)
                                                       : random_nodes(dice, ranks, servers);
  life.first = first;
  life.until = std::min(all_steps, first + dice.random(1, 5));
  // A step that fails while a later one is committed would be missing for good.
  life.is_patient = dice.once_in(2) || life.end == End::failing || life.end == End::full;
  life.waits_for_room = life.end == End::full && dice.once_in(8);
  life.loses_at = dice.random(life.first, std::max(life.first, life.until - 1));
  return life;
}

class Chain {
 public:
  Chain(std::uint64_t seed, Output output) : dice_(seed * 6899), seed_(seed), output_(std::move(output)) {}

  void play(int lives, Tried& tried) {
    const Written& truth = undisturbed(output_);
    for (int i = 0; i < lives; ++i) {
      const bool is_last = i == lives - 1;
      Life life = life_of(
          dice_, (seed_ - 1) * static_cast<std::uint64_t>(lives - 1) + static_cast<std::uint64_t>(i), first_);
      if (is_last) {
        life.end = End::closed;
        life.until = all_steps;
        life.waits_for_room = false;
      } else {
        ++tried.lives;
        tried.cells.insert(cat(life.method, life.handoff, static_cast<int>(life.end)));
      }
      ASSERT_NO_FATAL_FAILURE(go_on(life, truth, static_cast<std::uint64_t>(i)));
      tried.cut_short[life.end] += answers_.is_whole ? 0 : 1;
      if (testing::Test::HasFailure()) return;
    }
    SCOPED_TRACE(where());
    expect_whole(*with_stores(disk_), truth, has_order_);
  }

 private:
  [[nodiscard]] std::string where() const {
    return cat("seed ", seed_, ", ", output_.format, ", ", output_.pattern, ": ", story_);
  }

  void go_on(const Life& life, const Written& truth, std::uint64_t number) {
    story_ += cat("job ", number, ": ", life.text(), "; ");
    SCOPED_TRACE(where());
    const Scenario scenario = scenario_of(output_, life);
    disk_ = live(life, scenario, disk_, seed_ * 100 + number, answers_);
    const auto target = with_stores(disk_);
    const Written found = look_at(*target);
    std::vector<char> expected = has_order_;
    expected.resize(static_cast<std::size_t>(all_steps), has_any_order(scenario) ? 0 : 1);
    first_ = expect_sound(found, truth, expected);
    EXPECT_GE(first_, answers_.durable) << "so many steps were told to be durable";
    has_order_ = expected;
    has_order_.resize(static_cast<std::size_t>(first_));
    expect_announced(*target, found);
  }

  Scheduler dice_;
  std::uint64_t seed_;
  Output output_;
  std::shared_ptr<storage::CrashTarget> disk_ = storage::crash_target();
  std::int64_t first_ = 0;       // the step at which the next job goes on
  std::vector<char> has_order_;  // by step, as in expect_sound()
  Answers answers_;
  std::string story_;
};

TEST(sim_chains, of_any_methods_handoffs_and_ends_leave_the_files_of_an_undisturbed_job) {
  constexpr int lives = 6;
  const std::vector<std::string> formats = formats_of_build();
  Tried tried;
  for (std::uint64_t seed = 1; seed <= seeds(104); ++seed) {
    const Output output = output_of(formats[seed % formats.size()], seed / formats.size() % 2 == 0);
    Chain(seed, output).play(lives, tried);
    if (HasFailure()) return;
  }
  // Each method has come to each end with each handoff, and most ends have come in the middle of a job.
  EXPECT_EQ(tried.cells.size(),
            std::min<std::size_t>(static_cast<std::size_t>(tried.lives),
                                  pipeline::methods().size() * pipeline::handoffs().size() * ends));
  for (const End end :
       {End::killed, End::power_lost, End::rank_lost, End::server_lost, End::failing, End::full})
    EXPECT_GT(tried.cut_short[end], tried.lives / static_cast<int>(ends) / 4)
        << end_names[static_cast<std::size_t>(end)];
}

}  // namespace chains_test
}  // namespace tailrace::sim
