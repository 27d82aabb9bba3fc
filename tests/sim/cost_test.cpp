// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Measures the cost of a collective call for each rank, by the number of ranks: messages, bytes, calls of
// storage and time of the processor. Each rank owns the same number of elements, however many ranks there
// are.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>

#include "engine/session/indexed_layout.hpp"
#include "faces/checkpoint/checkpoint.hpp"
#include "faces/files/file.hpp"
#include "faces/files/mode.hpp"
#include "ground/base/text.hpp"
#include "no_outputs.hpp"
#include "session_world.hpp"

namespace tailrace::sim {
namespace cost_test {

using checkpoint::Checkpoint;
using Texts = std::vector<std::string>;

constexpr Index own_elements = 100;

/// The resources that one rank has used so far.
struct Usage {
  double messages = 0;
  double bytes = 0;
  double storage_calls = 0;
  double microseconds = 0;
};

struct Cost {
  Usage most;  // the maximum over the ranks, for each kind alone
  Usage mean;
};

/// Adds up what the ranks of one world use from one call to the next.
class Meter {
 public:
  explicit Meter(SessionWorld& world) : world_(world) {
    for (int rank = 0; rank < world.ranks(); ++rank)
      world.storage_at(rank).restart({0, storage::Fault::io_error, storage::all_calls});
  }
  /// Notes the cost of a step. A rank's program calls it behind each step. The cost before the first call
  /// counts for no step.
  void note(SessionRank& rank, const std::string& step = {}) {
    rank.fibre().measure_work();
    rank.fibre().stall(1);  // brings the time of the processor up to date
    const Usage now{static_cast<double>(rank.fibre().port().messages()),
                    static_cast<double>(rank.fibre().port().bytes()),
                    static_cast<double>(world_.storage_at(rank.rank()).calls()), rank.fibre().worked() * 1e6};
    Usage& before = before_[rank.rank()];
    if (!step.empty()) add(costs_[step], before, now);
    before = now;
  }
  [[nodiscard]] const std::map<std::string, Cost>& costs() const { return costs_; }

 private:
  void add(Cost& cost, const Usage& before, const Usage& now) const {
    for (double Usage::*kind :
         {&Usage::messages, &Usage::bytes, &Usage::storage_calls, &Usage::microseconds}) {
      const double used = now.*kind - before.*kind;
      cost.most.*kind = std::max(cost.most.*kind, used);
      cost.mean.*kind += used / world_.ranks();
    }
  }

  SessionWorld& world_;
  std::map<int, Usage> before_;
  std::map<std::string, Cost> costs_;
};

/// Returns the elements that a rank owns if all elements are dealt out one by one.
std::vector<Index> dealt_out(Index elements, int rank, int ranks) {
  std::vector<Index> own;
  for (Index e = rank; e < elements; e += ranks) own.push_back(e);
  return own;
}

/// One rank's part of a program that saves, or loads, arrays of `elements`.
class Program {
 public:
  Program(SessionRank& rank, Index elements, Meter& meter)
      : rank_(rank), elements_(elements), meter_(meter) {}

  void run(bool loads) {
    meter_.note(rank_);
    const Result<layout::Layout> indexed = session::make_indexed(
        rank_.session(), "define", {elements_}, dealt_out(elements_, rank_.rank(), rank_.ranks()));
    ASSERT_TRUE(indexed.is_ok()) << indexed.status().text();
    meter_.note(rank_, "indexed layout");
    open_file();
    meter_.note(rank_, "open and close");
    const layout::Layout block = *layout::Layout::block({elements_}, rank_.ranks());
    work_on(loads, "block", block, 1);
    work_on(loads, "indexed", *indexed, 2);
  }

 private:
  void open_file() {
    std::vector<int> all(static_cast<std::size_t>(rank_.ranks()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    const auto group = rank_.group(all);
    ASSERT_TRUE(group.is_ok()) << group.status().text();
    auto file =
        files::File::open({&rank_.files(), *group, (*group)->rank()}, "file", *files::parse_mode("w"));
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    EXPECT_TRUE((*file)->close().is_ok());
  }

  void work_on(bool loads, const std::string& name, const layout::Layout& layout, std::int64_t number) {
    const std::string options = "async=off";
    std::vector<double> part;
    for (const layout::Rows& each : layout.rows(rank_.rank())) {
      for (Index row = 0; row < each.rows; ++row) {
        for (Index i = 0; i < each.count; ++i)
          part.push_back(static_cast<double>(each.global + row * each.stride + i));
      }
    }
    std::vector<double> array = loads ? std::vector<double>(part.size(), -1) : part;
    auto made =
        Checkpoint::create(rank_.session(), outputs_, name, options, checkpoint::parse_options(options));
    ASSERT_TRUE(made.is_ok()) << made.status().text();
    meter_.note(rank_, cat("create for ", name));
    bool found = false;
    const auto direction = loads ? Checkpoint::Direction::load : Checkpoint::Direction::save;
    const Status begun = (*made)->begin(direction, &found);
    EXPECT_TRUE(begun.is_ok() && found == loads) << begun.text();
    checkpoint::NamedItem item;
    item.name = "array";
    item.array.data = reinterpret_cast<std::byte*>(array.data());
    item.array.layout = &layout;
    item.array.layout_number = number;
    item.array.in_parts = name == "indexed";
    (*made)->item(item);
    const Status ended = (*made)->end();
    EXPECT_TRUE(ended.is_ok()) << ended.text();
    EXPECT_TRUE(array == part);
    meter_.note(rank_, cat(loads ? "load of " : "save of ", name));
    EXPECT_TRUE((*made)->close().is_ok());
    meter_.note(rank_);
  }

  SessionRank& rank_;
  const Index elements_;
  Meter& meter_;
  NoOutputs outputs_;
};

std::map<std::string, Cost> costs_of(int ranks, Index elements, bool loads,
                                     const std::shared_ptr<storage::Target>& storage) {
  Job job;
  job.nodes = nodes_of(ranks, 64);
  job.storage = storage;
  SessionWorld world(job);
  Meter meter(world);
  const Texts unfinished = world.run([&](SessionRank& rank) { Program(rank, elements, meter).run(loads); });
  EXPECT_EQ(unfinished, Texts());
  for (const Status& each : world.failures()) ADD_FAILURE() << each.text();
  return meter.costs();
}

/// Returns the costs of a job of this many ranks that saves, and of a job of three quarters of them that
/// loads what the first has saved.
std::map<std::string, Cost> costs_among(int ranks) {
  const auto storage = storage::memory_target();
  const Index elements = ranks * own_elements;
  std::map<std::string, Cost> costs = costs_of(ranks, elements, false, storage);
  for (const auto& [step, cost] : costs_of(ranks * 3 / 4, elements, true, storage)) {
    if (step.starts_with("load")) costs[step] = cost;
    if (step.starts_with("create")) costs[step + ", saved"] = cost;
  }
  return costs;
}

void print(int ranks, const std::map<std::string, Cost>& costs) {
  std::cout << ranks << " ranks, most and mean of a rank:" << std::string(9, ' ')
            << "messages          KiB      storage calls       microseconds\n";
  for (const auto& [step, cost] : costs) {
    std::cout << "  " << std::left << std::setw(36) << step << std::right << std::fixed
              << std::setprecision(1);
    for (double Usage::*kind :
         {&Usage::messages, &Usage::bytes, &Usage::storage_calls, &Usage::microseconds}) {
      const double unit = kind == &Usage::bytes ? 1024 : 1;
      std::cout << std::setw(9) << cost.most.*kind / unit << std::setw(9) << cost.mean.*kind / unit;
    }
    std::cout << "\n";
  }
}

struct Each {
  int element = 0;  // for each element that a rank owns
  int round = 0;    // for each round in which a tree of all ranks is passed
};

/// The most that a step may cost any rank.
struct Limit {
  std::string step;
  Each messages;
  Each bytes;
  double storage_calls = 30;  // no rank looks at all parts
};

// No limit holds for the bytes of a save: the sizes of all parts, which a copy's directory has, go to the
// first rank through the ranks near it. Where there are more ranks than a rank has elements, the messages
// about its elements go one by one: 200 of some 90 bytes, with their acknowledgements.
const std::vector<Limit> limits{{"indexed layout", {2, 4}, {48, 200}},
                                {"open and close", {0, 3}, {0, 150}},
                                {"save of block", {0, 5}, {}},
                                {"save of indexed", {0, 5}, {}},
                                {"load of block", {0, 11}, {0, 800}},
                                {"load of indexed", {9, 11}, {400, 800}},
                                {"create for block, saved", {0, 4}, {0, 500}, 18},
                                {"create for indexed, saved", {2, 4}, {170, 500}, 18}};

void expect_within(const Limit& limit, const Usage& most, int ranks) {
  const int rounds = std::bit_width(static_cast<unsigned>(ranks)) - 1;
  const auto allowed = [rounds](const Each& each) {
    return each.element * own_elements + each.round * rounds;
  };
  EXPECT_LE(most.storage_calls, limit.storage_calls) << limit.step << " among " << ranks << " ranks";
  EXPECT_LE(most.messages, allowed(limit.messages)) << limit.step << " among " << ranks << " ranks";
  if (allowed(limit.bytes) > 0) {
    EXPECT_LE(most.bytes, allowed(limit.bytes)) << limit.step << " among " << ranks << " ranks";
  }
}

/// Returns the numbers of ranks to test. TAILRACE_SIM_RANKS sets one: 4,096 ranks take some GB and half an
/// hour.
std::vector<int> numbers_of_ranks() {
  if (const char* number = std::getenv("TAILRACE_SIM_RANKS"); number != nullptr) return {std::atoi(number)};
  if (std::getenv("TEST_ALL") != nullptr) return {64, 512};
  return {16, 64};
}

TEST(sim_cost, what_a_call_costs_a_rank_does_not_grow_with_all_ranks_and_elements) {
  for (const int ranks : numbers_of_ranks()) {
    const std::map<std::string, Cost> costs = costs_among(ranks);
    print(ranks, costs);
    for (const Limit& limit : limits) expect_within(limit, costs.at(limit.step).most, ranks);
  }
}

}  // namespace cost_test
}  // namespace tailrace::sim
