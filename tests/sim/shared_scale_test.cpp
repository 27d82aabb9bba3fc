// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Shared files and global arrays among 2,048 ranks: the bytes are right, and what a collective call costs a
// rank grows with the logarithm of the ranks alone.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>

#include "ground/base/text.hpp"
#include "scenario.hpp"
#include "shared_program.hpp"

namespace tailrace::sim {
namespace {

using shared::GlobalArray;
using shared::SharedFile;

/// The messages of a collective call: the most that any rank has sent.
struct Sent {
  double messages = 0;
  double bytes = 0;
};

/// What the calls of one program have cost.
class Meter {
 public:
  explicit Meter(int ranks) : before_(static_cast<std::size_t>(ranks)) {}
  /// Notes the cost of the calls since the last time.
  void note(SessionRank& rank, const std::string& call = {}) {
    const Port& port = rank.fibre().port();
    const Sent now{static_cast<double>(port.messages()), static_cast<double>(port.bytes())};
    Sent& before = before_[static_cast<std::size_t>(rank.rank())];
    if (!call.empty()) {
      Sent& most = most_[call];
      most.messages = std::max(most.messages, now.messages - before.messages);
      most.bytes = std::max(most.bytes, now.bytes - before.bytes);
    }
    before = now;
  }
  /// Notes the memory that all ranks take, when all of them have left the last call: the first rank counts.
  void note_memory(SessionRank& rank, const std::string& moment) {
    rank.compute(FibreWorld::second);
    memory_.try_emplace(moment, ::mallinfo2().uordblks);
  }
  [[nodiscard]] double memory_between(const std::string& begin, const std::string& end) const {
    return static_cast<double>(memory_.at(end)) - static_cast<double>(memory_.at(begin));
  }
  [[nodiscard]] const std::map<std::string, Sent>& most() const { return most_; }

 private:
  std::vector<Sent> before_;
  std::map<std::string, Sent> most_;
  std::map<std::string, std::size_t> memory_;
};

/// A rank's part of a program whose calls cost nothing but messages.
void measure(SessionRank& rank, const Shape& shape, Meter& meter) {
  const auto group = rank.group(all_ranks(shape.ranks));
  ASSERT_TRUE((*group)->agree({{}, "begin", {}}).status.is_ok());
  meter.note_memory(rank, "begin");
  meter.note(rank);
  const auto file = SharedFile::open(
      *group, "open",
      shared::Definition{"cost", *shared::read_mode("w+"), 4096, 16384 * shape.ranks_per_node, {}});
  ASSERT_TRUE(file.is_ok()) << file.status().text();
  meter.note(rank, "open");
  EXPECT_TRUE((*file)->sync().is_ok());
  meter.note_memory(rank, "file");
  meter.note(rank, "sync");
  EXPECT_TRUE((*file)->resize(100'000).is_ok());
  meter.note(rank, "resize");
  EXPECT_TRUE((*file)->flush().is_ok());
  meter.note(rank, "flush");
  EXPECT_TRUE((*file)->close().is_ok());
  meter.note(rank, "close");
  EXPECT_TRUE((*group)->agree({{}, "array", {}}).status.is_ok());
  meter.note_memory(rank, "array");
  meter.note(rank);
  const auto array =
      GlobalArray::create(*group, "create", shared::GlobalDefinition{ElementType::i64, 100'000, 4096});
  ASSERT_TRUE(array.is_ok()) << array.status().text();
  meter.note(rank, "create");
  EXPECT_TRUE((*array)->sync().is_ok());
  meter.note_memory(rank, "end");
  meter.note(rank, "sync of an array");
  EXPECT_TRUE((*array)->free().is_ok());
  meter.note(rank, "free");
}

/// The most memory, in bytes, that a file or an array may take of a rank, without its pages.
constexpr double most_memory = 20'000;

/// The most that a call may cost any rank, for each round of a tree of all ranks.
struct Limit {
  const char* call;
  double messages;
  double bytes;
};
const std::vector<Limit> limits{
    {"open", 9, 700},  {"sync", 2, 250},   {"resize", 7, 700},           {"flush", 5, 500},
    {"close", 4, 500}, {"create", 5, 500}, {"sync of an array", 1, 150}, {"free", 1, 150}};

void expect_small_costs(const Meter& meter, const Shape& shape) {
  const int rounds = std::bit_width(static_cast<unsigned>(shape.ranks)) - 1;
  std::cout << shape.ranks << " ranks, " << shape.ranks_per_node << " on a node; most of a rank:\n"
            << std::fixed << std::setprecision(0);
  for (const Limit& limit : limits) {
    const Sent most = meter.most().at(limit.call);
    std::cout << std::setw(20) << limit.call << std::setw(6) << most.messages << " messages" << std::setw(8)
              << most.bytes << " bytes\n";
    EXPECT_LE(most.messages, limit.messages * rounds) << limit.call;
    EXPECT_LE(most.bytes, limit.bytes * rounds) << limit.call;
  }
  const double of_file = meter.memory_between("begin", "file") / shape.ranks;
  const double of_array = meter.memory_between("array", "end") / shape.ranks;
  std::cout << "  memory of a rank: " << of_file << " bytes for a file, " << of_array << " for an array\n";
  EXPECT_LE(of_file, most_memory + 20 * shape.ranks);  // the first one of a group finds out who is where
  EXPECT_LE(of_array, most_memory + 5 * shape.ranks);
}

bool is_thorough() { return std::getenv("TEST_ALL") != nullptr; }

/// Measures, and then writes and reads pieces of all ranks, interleaved, and elements.
void run_at_scale(const Shape& shape) {
  const auto began = std::chrono::steady_clock::now();
  Job job;
  job.nodes = nodes_of(shape.ranks, shape.ranks_per_node);
  job.seed = 7;
  SessionWorld world(job);
  Meter meter(shape.ranks);
  SharedProgram file(3, {shape.ranks, 1, 4, 100, 16384 * shape.ranks_per_node});
  GlobalProgram array(3, {shape.ranks, 1, Index{50} * shape.ranks, 20});
  Hearing hearing(shape.ranks);
  const Texts stuck = world.run([&](SessionRank& rank) {
    measure(rank, shape, meter);
    file.run(rank, hearing);
    if (shape.ranks <= 256 || is_thorough()) array.run(rank, hearing);
  });
  ASSERT_TRUE(stuck.empty()) << text_of(stuck).substr(0, 2000);
  EXPECT_EQ(hearing.wrong(), Texts());
  EXPECT_EQ(hearing.disagreements(), Texts());
  EXPECT_EQ(hearing.failures(), 0) << hearing.said(0).back().text;
  EXPECT_EQ(file.difference(*job.storage), "");
  expect_small_costs(meter, shape);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::cout << "  " << std::setprecision(1) << took.count() << " s\n";
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int many() { return is_thorough() ? 2048 : 256; }
#else
int many() { return 2048; }
#endif

/// Returns a number of ranks for tests that need not always have thousands of them.
int many_if_all() { return is_thorough() ? 2048 : 256; }

TEST(sim_shared_scale, many_ranks_on_many_nodes_write_one_right_file_at_small_cost) {
  run_at_scale({many(), 16});
}

TEST(sim_shared_scale, so_do_ranks_that_are_alone_on_their_nodes) { run_at_scale({many_if_all(), 1}); }

TEST(sim_shared_scale, so_do_ranks_of_which_64_share_a_node) { run_at_scale({many_if_all(), 64}); }

}  // namespace
}  // namespace tailrace::sim
