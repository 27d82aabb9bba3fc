// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Tests what fails within an interval, in simulated time: a run that goes on from a checkpoint ends the
// interval with the same error as the run that was not stopped, and no error takes the next interval along.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "faces/checkpoint/checkpoint.hpp"
#include "faces/restart/outputs.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace operations_errors_test {

using checkpoint::Checkpoint;
using streams::Stream;

constexpr std::int64_t hour = 3600;
constexpr Index elements = 12;
const char* const hourly = "base=2026-03-01 manifest=off format=raw interval=1h";
const char* const usual = "levels=hybrid:1,2 operation=mean missing=-9";

float value_at(std::int64_t lead, Index level, Index element) {
  return static_cast<float>(lead) / 7 + static_cast<float>(100 * level + element * element);
}

/// One rank of a job with one stream and one checkpoint.
class Member {
 public:
  explicit Member(SessionRank& rank, const char* options = "")
      : rank_(rank), outputs_(rank.files(), [this] {
          restart::Open open;
          if (stream_ != nullptr) open.streams.push_back(stream_.get());
          return open;
        }) {
    auto made = Checkpoint::create(rank_.session(), outputs_, "cp", "", checkpoint::parse_options(options));
    EXPECT_TRUE(made.is_ok()) << made.status().text();
    checkpoint_ = std::move(*made);
  }
  ~Member() {
    (void)close();
    (void)checkpoint_->close();
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void load() { EXPECT_TRUE(saved_or_loaded(Checkpoint::Direction::load)); }
  void save() { EXPECT_TRUE(saved_or_loaded(Checkpoint::Direction::save)); }

  Status create(const std::string& options = hourly) {
    const std::optional<streams::Position> position = outputs_.stream("fc.raw");
    auto made = Stream::create(rank_.session(), "fc.raw", options, position, outputs_.kept());
    TR_TRY(made.status());
    stream_ = std::move(*made);
    outputs_.take_stream("fc.raw");
    return {};
  }
  Status define(const char* name = "t", const std::string& options = usual,
                const std::vector<Index>& shape = {3, 4}) {
    const auto layout = layout::Layout::block(shape, rank_.ranks());
    const streams::PlacedLayout placed{*layout, shape.front(), {}, {}, {}, false};
    TR_TRY(stream_->define(name, &placed, static_cast<int>(ElementType::f32), options));
    own_.clear();
    for (const layout::Rows& rows : layout->rows(rank_.rank())) {
      for (Index row = 0; row < rows.rows; ++row)
        for (Index k = 0; k < rows.count; ++k) own_.push_back(rows.global + row * rows.stride + k);
    }
    names_.emplace_back(name);
    return {};
  }
  void open() {
    const Status made = create();
    ASSERT_TRUE(made.is_ok()) << made.text();
    const Status defined = define();
    ASSERT_TRUE(defined.is_ok()) << defined.text();
  }

  enum class Put { all, nothing, null };
  Status step(std::int64_t lead, Put put = Put::all) {
    stream_->begin(lead);
    std::vector<float>& array = arrays_[lead];
    array.clear();
    for (Index level = 0; level < 2; ++level)
      for (const Index element : own_) array.push_back(value_at(lead, level, element));
    array.reserve(1);
    for (const std::string& name : names_) {
      if (put != Put::nothing) stream_->put(name, put == Put::null ? nullptr : array.data(), nullptr);
    }
    return stream_->end();
  }
  /// Returns the error of a step that completes an interval, whichever call tells it.
  Status last_step(std::int64_t lead) {
    const Status ended = step(lead);
    const Status waited = stream_->wait(true);
    return ended.is_ok() ? waited : ended;
  }
  [[nodiscard]] int rank() const { return rank_.rank(); }
  [[nodiscard]] session::Session& session() { return rank_.session(); }
  Stream& stream() { return *stream_; }
  [[nodiscard]] std::vector<checkpoint::NamedItem> own_items() const { return outputs_.own_items(); }
  Status close() {
    const Status closed = stream_ != nullptr ? stream_->close() : Status();
    stream_.reset();
    return closed;
  }

 private:
  bool saved_or_loaded(Checkpoint::Direction direction) {
    bool found = false;
    if (!checkpoint_->begin(direction, &found).is_ok()) return false;
    checkpoint::NamedItem item;
    item.name = "at";
    item.array.data = reinterpret_cast<std::byte*>(&at_);
    item.array.type = ElementType::i64;
    const auto one = std::make_shared<const layout::Layout>(*layout::Layout::replicated({1}, rank_.ranks()));
    item.scalar = one;
    checkpoint_->item(item);
    const Status ended = checkpoint_->end();
    EXPECT_TRUE(ended.is_ok()) << ended.text();
    return ended.is_ok() && checkpoint_->wait().is_ok();
  }

  SessionRank& rank_;
  restart::Outputs outputs_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Stream> stream_;
  std::vector<Index> own_;
  Texts names_;
  std::map<std::int64_t, std::vector<float>> arrays_;
  std::int64_t at_ = 0;
};

using Storage = std::shared_ptr<storage::Target>;

void run(const Storage& disk, int ranks, int servers, const std::function<void(Member&)>& body,
         const std::string& settings = "") {
  Job job;
  job.nodes = {{ranks, servers}};
  job.storage = disk;
  job.settings = settings;
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    Member member(rank);
    body(member);
  });
  EXPECT_EQ(stuck, Texts());
}

/// Returns the bytes of the means of the puts at `leads`.
ByteVector mean_of(const std::vector<std::int64_t>& leads) {
  std::vector<float> values;
  for (Index level = 0; level < 2; ++level) {
    for (Index element = 0; element < elements; ++element) {
      double sum = 0;
      for (const std::int64_t lead : leads) sum += value_at(lead, level, element);
      values.push_back(static_cast<float>(sum / static_cast<double>(leads.size())));
    }
  }
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

void expect_error(const Status& status, Code code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status.text();
  EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
}

/// Has a program fail in the first interval, in different ways.
struct Way {
  const char* name;
  Code code;
  const char* told;
  std::function<void(Member&)> fail;
};
std::vector<Way> ways() {
  return {
      {"a put", Code::argument, "the array is a null pointer",
       [](Member& member) {
         EXPECT_TRUE(member.step(900, member.rank() == 1 ? Member::Put::null : Member::Put::all).is_ok());
         EXPECT_TRUE(member.step(1800).is_ok());
       }},
      {"other steps", Code::order, "in other steps of the interval than rank 0",
       [](Member& member) {
         EXPECT_TRUE(member.step(900, member.rank() == 2 ? Member::Put::nothing : Member::Put::all).is_ok());
         EXPECT_TRUE(member.step(1800).is_ok());
       }},
      {"an order of leads", Code::order, "each step has a lead of its own", [](Member& member) {
         EXPECT_TRUE(member.step(1800).is_ok());
         EXPECT_TRUE(member.step(900).is_ok());
       }}};
}

/// A run that is stopped has nothing in memory of what failed before.
TEST(sim_operations_errors, a_run_that_goes_on_ends_the_interval_with_the_error_that_was_kept) {
  for (const Way& way : ways()) {
    for (const int servers : {0, 1}) {
      const std::string where = cat(way.name, ", ", servers, " servers");
      std::map<int, Status> undisturbed;
      run(storage::memory_target(), 3, servers, [&](Member& member) {
        member.open();
        way.fail(member);
        undisturbed[member.rank()] = member.last_step(hour);
      });
      expect_error(undisturbed[0], way.code, way.told);
      const Storage disk = storage::memory_target();
      run(disk, 3, servers, [&](Member& member) {
        member.open();
        way.fail(member);
        member.save();
      });
      // A run that only saves again, before and behind the definition, passes the error on.
      for (const bool opens : {false, true}) {
        run(disk, 2, servers, [&](Member& member) {
          member.load();
          if (opens) member.open();
          member.save();
        });
      }
      std::map<int, Status> ended;
      run(disk, 4, servers, [&](Member& member) {
        member.load();
        member.open();
        EXPECT_TRUE(member.step(2700).is_ok());
        ended[member.rank()] = member.last_step(hour);
        const Status next = member.last_step(2 * hour);
        EXPECT_TRUE(next.is_ok()) << where << ": " << next.text();
      });
      for (const auto& [rank, status] : ended) {
        EXPECT_EQ(status.code(), undisturbed[0].code()) << where << ": " << status.text();
        EXPECT_NE(status.text().find(way.told), std::string::npos) << where << ": " << status.text();
        EXPECT_EQ(status.text(), ended[0].text()) << where;
        EXPECT_EQ(status.rank(), undisturbed[0].rank()) << where;
      }
      EXPECT_TRUE(read_file(*disk, "fc.raw") == mean_of({2 * hour})) << where;
    }
  }
}

TEST(sim_operations_errors,
     a_step_that_is_refused_between_intervals_fails_the_next_one_also_behind_a_restart) {
  const Storage disk = storage::memory_target();
  run(disk, 2, 0, [&](Member& member) {
    member.open();
    EXPECT_TRUE(member.last_step(hour).is_ok());
    EXPECT_TRUE(member.step(1800).is_ok());
    member.save();
  });
  run(disk, 3, 0, [&](Member& member) {
    member.load();
    member.open();
    EXPECT_TRUE(member.step(hour + 900).is_ok());
    expect_error(member.last_step(2 * hour), Code::order, "lead 1800 s does not lie behind");
    EXPECT_TRUE(member.last_step(3 * hour).is_ok());
    EXPECT_FALSE(member.stream().position().interval);
  });
  ByteVector expected = mean_of({hour});
  const ByteVector last = mean_of({3 * hour});
  expected.insert(expected.end(), last.begin(), last.end());
  EXPECT_TRUE(read_file(*disk, "fc.raw") == expected);
}

TEST(sim_operations_errors, a_field_that_is_not_defined_again_is_told_at_the_first_step) {
  for (const int servers : {0, 1}) {
    const Storage disk = storage::memory_target();
    run(disk, 2, servers, [&](Member& member) {
      member.open();
      ASSERT_TRUE(member.define("u").is_ok());
      EXPECT_TRUE(member.step(900).is_ok());
      member.save();
    });
    run(disk, 3, servers, [&](Member& member) {
      member.load();
      member.open();
      for (const std::int64_t lead : {std::int64_t{1800}, hour, hour + 900})
        expect_error(member.step(lead), Code::state, "field 'u', of which it has values, is not defined");
      member.save();
      EXPECT_EQ(member.close().code(), Code::state);
    });
    // The program went on, and the steps that it took are in no accumulator.
    run(disk, 2, servers, [&](Member& member) {
      member.load();
      member.open();
      ASSERT_TRUE(member.define("u").is_ok());
      expect_error(member.last_step(hour), Code::state, "field 'u', of which it has values, is not defined");
    });
    EXPECT_TRUE(read_file(*disk, "fc.raw").empty());
  }
}

TEST(sim_operations_errors, a_field_that_differs_from_the_checkpoints_is_refused_and_may_be_defined_again) {
  const Storage disk = storage::memory_target();
  run(disk, 2, 1, [&](Member& member) {
    member.open();
    EXPECT_TRUE(member.step(900).is_ok());
    member.save();
  });
  run(disk, 3, 1, [&](Member& member) {
    member.load();
    expect_error(member.create("base=2026-03-01 manifest=off format=raw interval=30min"), Code::state,
                 "an interval of 3600 s, and not of 1800 s");
    ASSERT_TRUE(member.create().is_ok());
    const auto refused = [&](const char* options, const std::vector<Index>& shape, const char* text) {
      expect_error(member.define("t", options, shape), Code::state, text);
    };
    refused("levels=hybrid:1,2 operation=mean missing=-8", {3, 4}, "has missing=-9, and not missing=-8");
    refused("levels=hybrid:1,2 operation=mean", {3, 4}, "has missing=-9, and not no missing=");
    refused("levels=hybrid:2,1 operation=mean missing=-9", {3, 4},
            "has levels=hybrid:1,2, and not levels=hybrid:2,1");
    refused(usual, {4, 3}, "3 x 4");
    refused("levels=hybrid:1,2 operation=accum missing=-9", {3, 4},
            "has operation=mean, and not operation=accum");
    expect_error(member.define("u"), Code::state, "has no values of field 'u'");
    ASSERT_TRUE(member.define().is_ok());
    EXPECT_TRUE(member.last_step(hour).is_ok());
  });
  EXPECT_TRUE(read_file(*disk, "fc.raw") == mean_of({900, hour}));
}

/// An error of one rank between the two exchanges would leave the others waiting.
TEST(sim_operations_errors, a_rank_that_cannot_take_its_part_makes_all_ranks_return_its_error) {
  for (const int victim : {0, 2}) {
    run(storage::memory_target(), 3, 0, [&](Member& member) {
      node::Budget budget;
      const auto kept = operations::make_kept(ElementType::f64, elements, member.rank(), 3, budget);
      ASSERT_TRUE(kept.is_ok());
      std::vector<double> to(static_cast<std::size_t>(elements));
      const layout::Rows rows{0, 1, elements, 0};
      const Status mine = member.rank() == victim ? Status(Code::memory, "out of memory") : Status();
      const Status taken = operations::take_kept(member.session().computes(), *kept, std::span(&rows, 1),
                                                 reinterpret_cast<std::byte*>(to.data()), mine, "a call");
      expect_error(taken, Code::memory, "a call: out of memory");
    });
  }
}

TEST(sim_operations_errors, what_a_checkpoint_has_kept_is_drawn_on_the_budget_and_held_by_saves) {
  const Storage disk = storage::memory_target();
  const std::string wide = "levels=hybrid:1-2 operation=mean";
  const std::vector<Index> shape{16, 1024};  // 256 KiB of sums in all
  run(disk, 2, 0, [&](Member& member) {
    ASSERT_TRUE(member.create().is_ok());
    ASSERT_TRUE(member.define("t", wide, shape).is_ok());
    EXPECT_TRUE(member.step(900).is_ok());
    member.save();
  });
  run(disk, 2, 0, [&](Member& member) {
    member.load();
    const Bytes loaded = member.session().memory().budget().most();
    EXPECT_GE(loaded, Bytes{256} << 10);
    // A save may still copy them when the definition of their field has taken them.
    for (const checkpoint::NamedItem& item : member.own_items()) EXPECT_NE(item.keep, nullptr) << item.name;
  });
}

TEST(sim_operations_errors, a_fields_memory_stays_drawn_as_long_as_a_save_shares_it) {
  node::Budget::Account account;
  node::Budget budget(account, 1000);
  auto field = streams::TimedField::make({operations::Operation::mean, ElementType::f32, {}, 1, 100}, budget);
  ASSERT_TRUE(field.is_ok()) << field.status().text();
  std::shared_ptr<const void> saved = (*field)->accumulator().memory();
  field->reset();
  node::Draw other(budget, node::Use::captures);
  EXPECT_EQ(other.take(300).code(), Code::memory);
  saved.reset();
  EXPECT_TRUE(other.take(1000).is_ok());
}

/// The missing interval is told once. The step that comes late counts in its own interval.
TEST(sim_operations_errors, an_interval_without_a_step_at_its_end_takes_no_other_one_along) {
  for (const int servers : {0, 1}) {
    const Storage disk = storage::memory_target();
    run(disk, 3, servers, [&](Member& member) {
      member.open();
      EXPECT_TRUE(member.step(1800, member.rank() == 1 ? Member::Put::null : Member::Put::all).is_ok());
      const Status late = member.step(5400);
      expect_error(late, Code::order, "lead 5400 s passes over lead 3600 s");
      expect_error(late, Code::order, "behind lead 1800 s");
      const Status ended = member.last_step(2 * hour);
      EXPECT_TRUE(ended.is_ok()) << ended.text();
      // A step that completes its interval may be the one that comes late.
      const Status both = member.step(4 * hour);
      expect_error(both, Code::order, "lead 14400 s passes over lead 10800 s");
      EXPECT_TRUE(member.stream().wait(true).is_ok());
    });
    ByteVector expected = mean_of({5400, 2 * hour});
    const ByteVector last = mean_of({4 * hour});
    expected.insert(expected.end(), last.begin(), last.end());
    EXPECT_TRUE(read_file(*disk, "fc.raw") == expected) << servers;
  }
}

/// Writes means of months of 30 days, in steps of 10 days: of the third month, and of the fifth.
ByteVector third_and_fifth_month(int servers, bool accumulates_itself) {
  const Storage disk = storage::memory_target();
  const std::string options = "base=2026-01-01 manifest=off format=cdf5 calendar=360_day";
  run(disk, 2, servers, [&](Member& member) {
    ASSERT_TRUE(member.create(options + (accumulates_itself ? "" : " interval=1mo")).is_ok());
    ASSERT_TRUE(member
                    .define("t", cat("levels=hybrid:1,2 missing=-9 ",
                                     accumulates_itself ? "statistic=average since=30d" : "operation=mean"))
                    .is_ok());
    constexpr std::int64_t month = 30 * 24 * hour;
    EXPECT_TRUE(member.step(3 * month).is_ok());
    if (!accumulates_itself)
      expect_error(member.step(4 * month + 864000), Code::order, "where an interval of 1 month ends");
    const Status ended = member.step(5 * month, accumulates_itself ? Member::Put::all : Member::Put::nothing);
    EXPECT_TRUE(ended.is_ok()) << ended.text();
  });
  return read_file(*disk, "fc.raw");
}

TEST(sim_operations_errors, months_behind_one_without_an_end_have_their_own_bounds) {
  for (const int servers : {0, 1}) {
    const ByteVector file = third_and_fifth_month(servers, false);
    const auto plain = third_and_fifth_month(servers, true);
    ASSERT_EQ(file.size(), plain.size());
    std::size_t differ = 0;
    for (std::size_t i = 0; i < file.size(); ++i) differ += file[i] != plain[i] ? 1U : 0U;
    EXPECT_LE(differ, 2U * elements * sizeof(float));  // the values of the fifth month alone
  }
}

}  // namespace operations_errors_test
}  // namespace tailrace::sim
