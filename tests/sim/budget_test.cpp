// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Streams and checkpoints draw on one budget of each node. A call that does not fit fails with the same error
// on all ranks, and succeeds after other memory was given back.
#include <gtest/gtest.h>

#include "faces/checkpoint/checkpoint.hpp"
#include "ground/base/text.hpp"
#include "no_outputs.hpp"
#include "planned_stream.hpp"
#include "scenario.hpp"
#include "session_world.hpp"

namespace tailrace::sim {
namespace budget_test {

using checkpoint::Checkpoint;

/// One rank of a program that asks for memory in several ways. `told` gets its answers in their order.
class Program {
 public:
  Program(SessionRank& rank, std::shared_ptr<const StreamPlan> plan, std::vector<Status>& told)
      : rank_(rank),
        layout_(*layout::Layout::block({1000}, rank.ranks())),
        part_(static_cast<std::size_t>(layout_.count(rank.rank())), 1.0),
        stream_(rank, std::move(plan)),
        told_(told) {}

  void run() {
    std::unique_ptr<Checkpoint> first = checkpoint("first"), second = checkpoint("second");
    save(*first);
    save(*second);  // does not fit beside the first capture
    end(std::move(first));
    save(*second);
    told_.push_back(stream_.create());  // staging does not fit beside the capture
    end(std::move(second));
    told_.push_back(stream_.create());
    if (!told_.back().is_ok()) return;
    std::unique_ptr<Checkpoint> third = checkpoint("third");
    save(*third);  // does not fit beside staging
    end(std::move(third));
    told_.push_back(stream_.close());
  }

 private:
  std::unique_ptr<Checkpoint> checkpoint(const std::string& name) {
    Result<std::unique_ptr<Checkpoint>> made =
        Checkpoint::create(rank_.session(), outputs_, name, "", *checkpoint::parse_options(""));
    EXPECT_TRUE(made.is_ok()) << made.status().text();
    return std::move(*made);
  }

  void save(Checkpoint& to) {
    EXPECT_TRUE(to.begin(Checkpoint::Direction::save, nullptr).is_ok());
    checkpoint::NamedItem item;
    item.name = "part";
    item.array.data = reinterpret_cast<std::byte*>(part_.data());
    item.array.layout = &layout_;
    item.array.layout_number = 1;
    to.item(item);
    const Status ended = to.end();
    const Status waited = to.wait();
    told_.push_back(ended.is_ok() ? waited : ended);
  }

  static void end(std::unique_ptr<Checkpoint> checkpoint) { EXPECT_TRUE(checkpoint->close().is_ok()); }

  NoOutputs outputs_;
  SessionRank& rank_;
  const layout::Layout layout_;
  std::vector<double> part_;
  PlannedStream stream_;
  std::vector<Status>& told_;
};

/// A capture takes 2 MiB of a rank at least. The budget holds those of three ranks or the staging, and no two
/// of these. It would not hold the staging either if ranks kept what they draw for a stream that is refused.
TEST(sim_budget, what_does_not_fit_a_node_fails_alike_on_all_ranks_and_fits_once_there_is_room) {
  const Code fits = Code::ok, full = Code::memory;
  const std::vector<Code> expected{fits, full, fits, full, fits, full, fits};
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    Scheduler dice(seed * 4561);
    const int ranks = static_cast<int>(dice.random(3, 8));
    Job job{nodes_of(ranks, 3), "memory=11776KiB", {}, storage::memory_target(), seed};
    job.staging = Bytes{8} << 20;
    const int servers = dice.once_in(2) ? 0 : 1;
    job.nodes.front().servers = servers;
    const auto plan = *StreamPlan::make("fc.raw", "format=raw base=2026-03-01",
                                        {{"t", *layout::Layout::block({5, 7}, ranks), ""}});
    SessionWorld world(job);
    std::map<int, std::vector<Status>> told;
    const Texts stuck = world.run([&](SessionRank& rank) { Program(rank, plan, told[rank.rank()]).run(); });
    EXPECT_EQ(stuck, Texts()) << "seed " << seed;
    for (const auto& [rank, answers] : told) {
      std::vector<Code> codes;
      for (std::size_t i = 0; i < answers.size(); ++i) {
        codes.push_back(answers[i].code());
        EXPECT_EQ(answers[i].text(), told[0][i].text()) << "rank " << rank << ", seed " << seed;
      }
      EXPECT_EQ(codes, expected) << "rank " << rank << ", seed " << seed;
    }
    EXPECT_NE(told[0][1].text().find("TAILRACE_MEMORY"), std::string::npos) << told[0][1].text();
    if (testing::Test::HasFailure()) return;
  }
}

/// The three ranks of the first node have no byte of staging each, the rank of the second node has two.
TEST(sim_budget, ranks_without_a_byte_of_staging_make_the_same_agreements_as_others) {
  Job job{nodes_of(4, 3), "", {}, storage::memory_target(), 1};
  job.staging = 2;
  SessionWorld world(job);
  std::vector<std::string> wrong;
  const Texts stuck = world.run([&](SessionRank& rank) {
    for (const std::string name : {"first.raw", "second.raw"}) {
      Result<std::unique_ptr<streams::Stream>> stream =
          streams::Stream::create(rank.session(), name, "format=raw base=2026-03-01", {});
      const Status told = stream.is_ok() ? (*stream)->close() : stream.status();
      if (!told.is_ok()) wrong.push_back(cat("rank ", rank.rank(), ": ", told.text()));
    }
  });
  EXPECT_EQ(stuck, Texts());
  EXPECT_EQ(wrong, Texts());
}

}  // namespace budget_test
}  // namespace tailrace::sim
