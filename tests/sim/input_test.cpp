// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Input streams on the library's own session, in simulated time: ranks of several nodes read made-up files,
// whose records take random times, and reads fail at will.
#include "faces/input/input_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/rows.hpp"
#include "ground/layout/shape.hpp"
#include "scenario.hpp"
#include "shared_program.hpp"

namespace tailrace::sim {
namespace {

using input::InputStream;

constexpr std::int64_t hour = 3600;
const std::vector<Index> shape = {9, 7};
constexpr Index levels = 3;

double value(const std::string& field, std::int64_t lead, Index level, Index element) {
  const double number = static_cast<double>(element) + 100.0 * static_cast<double>(level) +
                        1000.0 * static_cast<double>(lead / hour);
  return field == "t" ? number : -number;
}

/// The files of a world, and what happens to them.
struct Plan {
  std::vector<std::int64_t> leads;
  int ranks_per_node = 1;
  int failing_rank = -1;  // on which the read with the number `failing_read` fails (from 1 on)
  int failing_read = 0;
  bool has_fired = false;
  std::map<int, int> reads_of_rank;
  std::map<std::string, int> reads;  // by node, file and record
  Bytes scratch_bound = 0;           // what decoding a record takes
  std::int64_t longest_look = 0;     // nanoseconds from the claim of a record until its room is asked for
  std::int64_t longest_read = 3'000'000;
  std::map<int, int> reading;  // by node: ranks that decode now
  int most_reading = 0;        // on one node at one moment
  int gaps = 0;                // steps that were refused because a file is missing
  std::int64_t get_wait = 0;   // of all ranks, as their accounts have it
};

class MadeUp final : public sources::Source {
 public:
  MadeUp(Plan& plan, SessionRank& rank, Scheduler& dice, std::int64_t lead)
      : plan_(plan), rank_(rank), dice_(dice), lead_(lead) {
    inventory_.grids.push_back({shape, {}});
    for (const char* const field : {"t", "u"}) {
      for (Index level = 0; level < levels; ++level) {
        sources::Record record;
        record.field = field;
        record.level_type = "hybrid";
        record.level = static_cast<double>(level + 1);
        record.valid = record.reference = lead;
        record.place = {level, field[0]};
        inventory_.records.push_back(record);
      }
    }
  }
  Result<Index> read(const sources::RecordPlace& place, const sources::Grid& grid, const layout::Box& cut,
                     ElementType type, std::byte* values, sources::Scratch& scratch) const override {
    ++plan_.reads[cat("node ", rank_.rank() / plan_.ranks_per_node, " lead ", lead_, " record ", place[0],
                      " ", place[1])];
    int& reading = plan_.reading[rank_.rank() / plan_.ranks_per_node];
    plan_.most_reading = std::max(plan_.most_reading, ++reading);
    rank_.compute(dice_.random(1, plan_.longest_read));
    --reading;
    if (rank_.rank() == plan_.failing_rank && ++plan_.reads_of_rank[rank_.rank()] == plan_.failing_read) {
      plan_.has_fired = true;
      return io_error("read", cat("in_", lead_), EIO);
    }
    scratch.bytes.resize(100);
    std::vector<Index> extents(2), at(2);
    for (std::size_t d = 0; d < 2; ++d) extents[d] = cut.upper[d] - cut.lower[d];
    do {
      const Index element = (cut.lower[0] + at[0]) * grid.shape[1] + cut.lower[1] + at[1];
      const double number = value(std::string(1, static_cast<char>(place[1])), lead_, place[0], element);
      if (type == ElementType::f32) {
        const auto narrow = static_cast<float>(number);
        std::memcpy(values, &narrow, sizeof narrow);
      } else {
        std::memcpy(values, &number, sizeof number);
      }
      values += size_of(type);
    } while (layout::advance(at, extents));
    return Index{0};
  }
  [[nodiscard]] Bytes scratch_bound(const sources::RecordPlace&, const sources::Grid&) const override {
    if (plan_.longest_look > 0) rank_.compute(dice_.random(1, plan_.longest_look));
    return plan_.scratch_bound;
  }

 private:
  Plan& plan_;
  SessionRank& rank_;
  Scheduler& dice_;
  std::int64_t lead_;
};

std::string path_of(std::int64_t lead) {
  const std::string digits = cat(lead / hour);
  return cat("in_", std::string(3 - digits.size(), '0'), digits);
}

/// One rank's way through the steps: every rank makes the same calls.
struct Program {
  Plan& plan;
  Hearing& hearing;
  std::uint64_t seed;
  bool is_linear = false;
  bool goes_forward = false;           // through all steps
  storage::Target* written = nullptr;  // rank 0 writes the files step by step, and the others follow
  const bool bridges = seed % 4 == 0;

  void run(SessionRank& rank) {
    Scheduler dice(seed * 1'000'003 + static_cast<std::uint64_t>(rank.rank()));
    Scheduler common(seed * 7919);
    const int me = rank.rank();
    const auto group = rank.group(all_ranks(rank.ranks()));
    if (!hearing.collective(me, "group", group.status())) return;
    const auto opener = [&](const std::string& path) -> Result<std::shared_ptr<const sources::Source>> {
      return std::shared_ptr<const sources::Source>(
          std::make_shared<MadeUp>(plan, rank, dice, std::stoll(path.substr(3)) * hour));
    };
    auto stream = InputStream::open(*group, "in_{lead:03h}",
                                    cat("base=1970-01-01 prefetch=", common.random(0, 3),
                                        !is_linear ? ""
                                        : bridges  ? " between=bridge"
                                                   : " between=linear",
                                        written != nullptr ? " follow=on" : ""),
                                    opener);
    if (!hearing.collective(me, "open", stream.status())) return;
    const streams::PlacedLayout placed{*layout::Layout::block(shape, rank.ranks()), 1, {2, 1}, {}, {}, false};
    if (!hearing.collective(me, "define", (*stream)->define("t", &placed, 5, "levels=hybrid:3,1,2"))) return;
    if (!hearing.collective(me, "define", (*stream)->define("v", &placed, 6, "levels=hybrid:2 name=u")))
      return;
    for (const std::int64_t lead : goes_forward ? plan.leads : std::vector<std::int64_t>()) {
      if (me == 0 && written != nullptr) {
        if (dice.once_in(2)) rank.compute(dice.random(1, 3'000'000'000));
        for (const char* const ending : {"", ".ready"})
          EXPECT_TRUE(written->open(path_of(lead) + ending, storage::OpenMode::create).is_ok());
      }
      const bool is_between = is_linear && lead > plan.leads.front() && common.once_in(2);
      do_step(rank, **stream, placed, is_between ? lead - common.random(1, hour - 1) : lead, dice);
    }
    for (int step = 0; step < (goes_forward ? 0 : 6); ++step) {
      std::int64_t lead = plan.leads[static_cast<std::size_t>(common.random(0, std::ssize(plan.leads) - 1))];
      if (is_linear && common.once_in(2)) lead = common.random(plan.leads.front(), plan.leads.back());
      if (common.once_in(4)) told(rank, "seek", lead, (*stream)->seek(lead));
      do_step(rank, **stream, placed, lead, dice);
    }
    plan.get_wait += rank.session().spent().spent[comm::Routine::get_wait];
    hearing.collective(me, "close", (*stream)->close());
  }

  /// Returns true if the step is at one of the files', or no file is missing where it is interpolated. A
  /// followed run has none behind.
  [[nodiscard]] bool is_due(std::int64_t lead) const {
    const auto behind = std::ranges::lower_bound(plan.leads, lead);
    if (bridges || written != nullptr || *behind == lead) return true;
    const auto before = std::prev(behind);
    std::int64_t usual = 0;
    if (before != plan.leads.begin()) usual = *before - *std::prev(before);
    if (std::next(behind) != plan.leads.end()) usual = std::max(usual, *std::next(behind) - *behind);
    return usual == 0 || 4 * (*behind - *before) < 7 * usual;
  }

  /// Returns true if the step has passed, as it must unless a file is missing.
  bool told(SessionRank& rank, const std::string& call, std::int64_t lead, const Status& status) {
    if (is_due(lead)) return hearing.collective(rank.rank(), call, status);
    ++plan.gaps;
    if (status.code() != Code::argument || status.text().find("give between=bridge") == std::string::npos)
      hearing.wrong(cat(call, " at ", lead, " s on rank ", rank.rank(), ": ", status.text(),
                        ", not the error of a missing file"));
    return false;
  }

  void do_step(SessionRank& rank, InputStream& stream, const streams::PlacedLayout& placed, std::int64_t lead,
               Scheduler& dice) {
    const layout::Box box = placed.layout.box(rank.rank());
    const Index rows = box.upper[0] - box.lower[0] + 4, columns = box.upper[1] - box.lower[1] + 2;
    std::vector<float> t(static_cast<std::size_t>(3 * rows * columns), -1);
    std::vector<double> v(static_cast<std::size_t>(rows * columns), -1);
    stream.begin(lead);
    if (dice.once_in(3)) rank.compute(dice.random(1, 20'000'000));
    const bool is_first = rank.rank() % 2 == 0;  // where order does not matter, ranks differ
    if (is_first) stream.get("v", v.data(), nullptr);
    stream.get("t", t.data(), nullptr);
    if (!is_first) stream.get("v", v.data(), nullptr);
    if (!told(rank, cat("end at ", lead), lead, stream.end())) return;
    const std::int64_t order[] = {2, 0, 1};
    const bool is_empty = box.upper[0] <= box.lower[0] || box.upper[1] <= box.lower[1];
    for (Index y = 0; y < rows && !is_empty; ++y) {
      for (Index x = 0; x < columns; ++x) {
        const Index gy = box.lower[0] + y - 2, gx = box.lower[1] + x - 1;
        const bool inside = gy >= 0 && gy < shape[0] && gx >= 0 && gx < shape[1];
        const auto place = static_cast<std::size_t>(y * columns + x);
        check(v[place], inside, "u", lead, 1, gy * shape[1] + gx);
        for (std::size_t l = 0; l < 3; ++l)
          check(static_cast<double>(t[l * static_cast<std::size_t>(rows * columns) + place]), inside, "t",
                lead, order[l], gy * shape[1] + gx);
      }
    }
  }

  void check(double got, bool inside, const std::string& field, std::int64_t lead, Index level,
             Index element) {
    double wanted = -1;
    if (inside) {
      const auto behind = std::ranges::lower_bound(plan.leads, lead);
      wanted = value(field, *behind, level, element);
      if (*behind != lead) {
        const std::int64_t before = *std::prev(behind);
        const double weight = static_cast<double>(lead - before) / static_cast<double>(*behind - before);
        wanted = (1 - weight) * value(field, before, level, element) + weight * wanted;
      }
    }
    if (std::abs(got - wanted) > 0.01)
      hearing.wrong(
          cat(field, " at ", lead, ", level ", level, ", element ", element, ": ", got, ", not ", wanted));
  }
};

Job job_of(Plan& plan, Scheduler& dice, std::uint64_t seed, bool follows = false) {
  Job job;
  const int ranks = static_cast<int>(dice.random(1, 12));
  plan.ranks_per_node = static_cast<int>(dice.random(1, 5));
  job.nodes = nodes_of(ranks, plan.ranks_per_node);
  job.seed = seed;
  job.limits_parks = follows;  // no bell rings when another program has written
  std::int64_t lead = 0;
  for (Index count = dice.random(2, 8); count > 0; --count, lead += dice.random(1, 6) * hour) {
    plan.leads.push_back(lead);
    const bool is_there = follows || job.storage->open(path_of(lead), storage::OpenMode::create).is_ok();
    EXPECT_TRUE(is_there);
  }
  return job;
}

Texts run_world(const Job& job, Plan& plan, Hearing& hearing, bool is_linear, bool goes_forward = false,
                bool follows = false) {
  SessionWorld world(job);
  Program program{plan, hearing, job.seed, is_linear, goes_forward, follows ? job.storage.get() : nullptr};
  Texts stuck = world.run([&](SessionRank& rank) { program.run(rank); });
  for (const Status& each : world.failures()) stuck.push_back(each.text());
  return stuck;
}

/// A server stays where the job was started, and braces have a meaning in patterns.
TEST(sim_input, a_definition_names_the_same_files_from_another_directory) {
  input::FilesDefinition given;
  given.directory = "/scratch/{run}/";
  given.pattern = "in/bd_{lead:03h}.grib2";
  given.cache = "kept";
  Packer packed;
  given.pack(packed);
  Unpacker in(packed.bytes());
  input::FilesDefinition files = input::FilesDefinition::unpack(in).from_root();
  EXPECT_EQ(files.cache, "/scratch/{run}/kept");
  const Result<streams::Pattern> pattern = streams::Pattern::parse(files.pattern);
  ASSERT_TRUE(pattern.is_ok()) << pattern.status().text();
  EXPECT_EQ(*pattern->expand(6 * hour, files.context()), "/scratch/{run}/in/bd_006.grib2");
  files.pattern = "/data/bd_{lead:03h}";
  files.cache = "";
  EXPECT_EQ(files.from_root().pattern, "/data/bd_{lead:03h}");
  EXPECT_EQ(files.from_root().cache, "");
}

TEST(sim_input, each_record_is_read_once_on_a_node) {
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    Scheduler dice(seed * 104'729);
    Plan plan;
    const Job job = job_of(plan, dice, seed);
    Hearing hearing(static_cast<int>(job.nodes.size()) * plan.ranks_per_node);
    EXPECT_EQ(run_world(job, plan, hearing, false, true), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.wrong(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.failures(), 0) << "seed " << seed << hearing.said(0).back().text;
    for (const auto& [record, reads] : plan.reads) EXPECT_EQ(reads, 1) << record << ", seed " << seed;
    EXPECT_FALSE(plan.reads.empty());
    if (HasFailure()) return;
  }
}

/// Nothing but the time of a read differs between the worlds.
TEST(sim_input, a_get_that_has_to_wait_for_its_records_counts_that_time) {
  std::map<std::int64_t, std::int64_t> waited;
  for (const std::int64_t longest : {std::int64_t{10'000}, std::int64_t{10'000'000'000}}) {
    Scheduler dice(7);
    Plan plan;
    const Job job = job_of(plan, dice, 3);
    plan.longest_read = longest;
    Hearing hearing(static_cast<int>(job.nodes.size()) * plan.ranks_per_node);
    EXPECT_EQ(run_world(job, plan, hearing, false, true), Texts());
    EXPECT_EQ(hearing.failures(), 0) << hearing.said(0).back().text;
    waited[longest] = plan.get_wait;
  }
  EXPECT_GT(waited[10'000'000'000], 10'000'000'000);
  EXPECT_LT(waited[10'000], waited[10'000'000'000] / 20);
}

TEST(sim_input, each_rank_gets_its_part_with_halo_whatever_the_order_of_leads) {
  int gaps = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 104'729);
    Plan plan;
    const Job job = job_of(plan, dice, seed);
    Hearing hearing(static_cast<int>(job.nodes.size()) * plan.ranks_per_node);
    EXPECT_EQ(run_world(job, plan, hearing, seed % 2 == 0), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.wrong(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.failures(), 0) << "seed " << seed << hearing.said(0).back().text;
    gaps += plan.gaps;
    if (HasFailure()) return;
  }
  EXPECT_GT(gaps, 0);
}

/// The ranks of a node have room for one that decodes, or for none.
TEST(sim_input, ranks_decode_one_after_the_other_if_the_budget_has_no_more_room) {
  int most_reading = 0;
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    Scheduler dice(seed * 104'729);
    Plan plan;
    Job job = job_of(plan, dice, seed);
    job.limits_parks = true;  // no bell rings when another rank gives memory back
    job.settings = "memory=64MiB";
    const bool has_room = seed % 4 != 0;
    plan.scratch_bound = Bytes{has_room ? 33 : 65} << 20;
    plan.longest_look = seed % 3 == 0 ? 0 : 1'500'000;  // as long as a rank rests between two looks
    if (seed % 2 != 0) plan.longest_read = 2'500'000'000;
    Hearing hearing(static_cast<int>(job.nodes.size()) * plan.ranks_per_node);
    EXPECT_EQ(run_world(job, plan, hearing, false), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.wrong(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.failures(), has_room ? 0 : 6) << "seed " << seed << hearing.said(0).back().text;
    most_reading = std::max(most_reading, plan.most_reading);
    if (HasFailure()) return;
  }
  EXPECT_EQ(most_reading, 1);
}

TEST(sim_input, ranks_that_follow_get_each_step_once_it_is_there) {
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    Scheduler dice(seed * 104'729);
    Plan plan;
    const Job job = job_of(plan, dice, seed, true);
    Hearing hearing(static_cast<int>(job.nodes.size()) * plan.ranks_per_node);
    EXPECT_EQ(run_world(job, plan, hearing, seed % 2 == 0, true, true), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.wrong(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.failures(), 0) << "seed " << seed << hearing.said(0).back().text;
    if (HasFailure()) return;
  }
}

/// Two ranks, each on its own node, follow made-up files that come while they read.
struct Following {
  Plan plan;
  Job job;

  Following() {
    job.nodes = nodes_of(2, 1);
    job.limits_parks = true;
    for (const Index hours : {0, 3, 6}) add_file(hours);
  }
  void add_file(Index hours) {
    for (const char* const ending : {"", ".ready"})
      EXPECT_TRUE(job.storage->open(path_of(hours * hour) + ending, storage::OpenMode::create).is_ok());
  }
  /// Runs `read` on both ranks with an open stream, and returns who is stuck.
  Texts run(const std::string& options, const std::function<void(SessionRank&, InputStream&)>& read) {
    SessionWorld world(job);
    return world.run([&](SessionRank& rank) {
      Scheduler dice(1);
      const auto opener = [&](const std::string& path) -> Result<std::shared_ptr<const sources::Source>> {
        return std::shared_ptr<const sources::Source>(
            std::make_shared<MadeUp>(plan, rank, dice, std::stoll(path.substr(3)) * hour));
      };
      const auto group = rank.group(all_ranks(2));
      auto stream = InputStream::open(*group, "in_{lead:03h}",
                                      "base=1970-01-01 between=linear follow=on " + options, opener);
      const streams::PlacedLayout placed{*layout::Layout::block(shape, 2), 1, {0, 0}, {}, {}, false};
      EXPECT_TRUE((*stream)->define("t", &placed, 6, "levels=hybrid:1").is_ok());
      read(rank, **stream);
      EXPECT_TRUE((*stream)->close().is_ok());
    });
  }
};

/// The step behind the lead comes while a rank waits for it, and the one at the lead never does.
TEST(sim_input, a_followed_run_says_that_it_interpolates_over_a_gap_that_shows_while_a_rank_waits) {
  Following following;
  testing::internal::CaptureStderr();
  const Texts stuck = following.run("", [&](SessionRank& rank, InputStream& stream) {
    set_log_level(LogLevel::warn);  // a world says nothing by itself
    if (rank.rank() == 1) {
      rank.compute(10'000'000'000);
      following.add_file(12);
    }
    std::vector<double> t(63);
    stream.begin(9 * hour);
    stream.get("t", t.data(), nullptr);
    EXPECT_TRUE(stream.end().is_ok());
  });
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(stuck, Texts());
  EXPECT_NE(
      printed.find("lead 32400 s is interpolated between 21600 s and 43200 s; a step at lead 32400 s may"),
      std::string::npos)
      << printed;
}

/// The step at 12 h comes before that at 9 h. One node has interpolated to the former when the latter comes.
TEST(sim_input, nodes_never_interpolate_between_different_steps) {
  Following following;
  std::vector<Status> ends(2);
  const Texts stuck = following.run("prefetch=0", [&](SessionRank& rank, InputStream& stream) {
    if (rank.rank() == 0) following.add_file(12);
    if (rank.rank() == 1) {
      rank.compute(10'000'000'000);
      following.add_file(9);
    }
    std::vector<double> t(63);
    for (int tries = 0; tries < 2; ++tries) {
      stream.begin(7 * hour);
      stream.get("t", t.data(), nullptr);
      const Status ended = stream.end();
      if (tries == 0) ends[static_cast<std::size_t>(rank.rank())] = ended;
      EXPECT_TRUE(tries == 0 || ended.is_ok()) << ended.text();
    }
  });
  EXPECT_EQ(stuck, Texts());
  for (const Status& ended : ends) {
    EXPECT_EQ(ended.code(), Code::state) << ended.text();
    EXPECT_NE(ended.text().find("try the step again"), std::string::npos) << ended.text();
  }
}

TEST(sim_input, a_read_that_fails_is_the_same_error_on_every_rank_and_nobody_waits_for_ever) {
  int fired = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 104'729);
    Plan plan;
    const Job job = job_of(plan, dice, seed);
    plan.failing_rank = 0;
    plan.failing_read = static_cast<int>(dice.random(1, 20));
    Hearing hearing(static_cast<int>(job.nodes.size()) * plan.ranks_per_node);
    EXPECT_EQ(run_world(job, plan, hearing, seed % 2 == 0), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.wrong(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.failures(), plan.has_fired ? 1 : 0) << "seed " << seed;
    fired += plan.has_fired;
    if (HasFailure()) return;
  }
  EXPECT_GT(fired, 0);
}

}  // namespace
}  // namespace tailrace::sim
