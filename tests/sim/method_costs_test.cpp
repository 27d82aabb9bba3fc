// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The clock of stated costs, and what the methods of writing cost by it on more servers than this machine has
// cores (docs/methods.md, "Beyond this machine").
#include "method_costs.hpp"

#include <gtest/gtest.h>

#include "engine/pipeline/method.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sim {
namespace method_costs_test {

using comm::Traffic;
using pipeline::Message;

/// Returns costs whose adapters are no faster than their links.
Costs narrow() {
  Costs costs;
  costs.adapter_bytes_per_second = costs.link_bytes_per_second = 25e9;
  return costs;
}

/// A rank of a network alone, which notes when messages come.
struct Noting final : Waiter {
  Noting(Scheduler& of, Port& at) : scheduler(of) { at.connect(*this); }
  void look() override { looked = scheduler.now(); }
  void idle(Nanoseconds, const std::string&) override {}
  void park(comm::Doorbell&, std::uint32_t, Nanoseconds) override {}
  void let_others_run() override {}

  Scheduler& scheduler;
  Nanoseconds looked = -1;
};

/// Ranks that send when a test says so.
struct Ranks {
  Ranks(int size, const Costs& costs) : scheduler(1), network(scheduler, size) {
    scheduler.keep_to(costs);
    for (int rank = 0; rank < size; ++rank)
      noting.push_back(std::make_unique<Noting>(scheduler, network.port(rank)));
  }
  void settle() {
    while (scheduler.run_one()) {
    }
  }

  Scheduler scheduler;
  Network network;
  std::vector<std::unique_ptr<Noting>> noting;
};

TEST(sim_method_costs, messages_to_one_rank_pass_its_adapter_one_after_another) {
  const Costs costs;
  constexpr int senders = 4096;
  Ranks ranks(senders + 1, costs);
  for (int rank = 1; rank <= senders; ++rank) ranks.network.port(rank).send(0, 0, Traffic::control, {});
  ranks.settle();
  EXPECT_EQ(ranks.noting[0]->looked, costs.message_latency + senders * costs.message_gap);
  const Port& root = ranks.network.port(0);
  EXPECT_EQ(BusyTime::of({&root.others().receiving}, 0, ranks.scheduler.now()), senders * costs.message_gap);
  EXPECT_EQ(BusyTime::of({&root.others().sending}, 0, ranks.scheduler.now()), 0);
}

TEST(sim_method_costs, messages_of_one_rank_leave_one_after_another) {
  const Costs costs = narrow();
  Ranks ranks(4, costs);
  constexpr Bytes size = 1'000'000;
  for (int rank = 1; rank < 4; ++rank)
    ranks.network.port(0).send(rank, 0, Traffic::control, ByteVector(size));
  ranks.settle();
  const Nanoseconds each = time_for(size, costs.adapter_bytes_per_second);
  EXPECT_EQ(each, 40'000);
  for (int rank = 1; rank < 4; ++rank) {
    // Its bytes pass both adapters, while the receiver's takes what the sender's still gives.
    EXPECT_EQ(ranks.noting[static_cast<std::size_t>(rank)]->looked,
              (rank - 1) * each + costs.message_latency + each);
  }
}

TEST(sim_method_costs, a_slow_link_holds_up_one_message_and_not_the_adapters) {
  Costs costs = narrow();
  costs.link_bytes_per_second = 1e9;
  Ranks ranks(3, costs);
  ranks.network.port(0).send(1, 0, Traffic::control, ByteVector(1'000'000));
  ranks.network.port(0).send(2, 0, Traffic::control, {});
  ranks.settle();
  EXPECT_EQ(ranks.noting[1]->looked, costs.message_latency + 1'000'000);
  EXPECT_EQ(ranks.noting[2]->looked, 40'000 + costs.message_latency + costs.message_gap);
}

TEST(sim_method_costs, a_large_message_leaves_once_it_is_asked_for_and_counts_in_full) {
  Costs costs = narrow();
  costs.stands_for = 1000;
  Ranks ranks(2, costs);
  constexpr Bytes size = 1000;
  Port& receiver = ranks.network.port(1);
  ranks.network.port(0).send(1, 0, Traffic::data, ByteVector(size));
  ranks.settle();
  EXPECT_EQ(ranks.network.port(0).unsent(0, Traffic::data), size);
  const Nanoseconds asked = ranks.scheduler.now();
  EXPECT_FALSE(receiver.receive_from(0, 0, Traffic::data).has_value());
  ranks.settle();
  EXPECT_EQ(ranks.network.port(0).unsent(0, Traffic::data), 0);
  EXPECT_EQ(ranks.noting[1]->looked - asked, 2 * costs.message_latency + costs.message_gap + 40'000);
  EXPECT_TRUE(receiver.receive_from(0, 0, Traffic::data).has_value());
}

TEST(sim_method_costs, processes_write_at_their_own_rates_until_they_reach_that_of_storage) {
  Scheduler scheduler(1);
  Costs costs;
  costs.storage_bytes_per_second = 4e9;
  costs.of_file = "data";
  costs.stands_for = 10;
  Disk disk(scheduler, costs, 8);
  const Nanoseconds second = 1'000'000'000;
  for (int process = 0; process < 8; ++process) {
    disk.charge_write(process, "data", 100'000'000);
    // Four processes fill the storage; the others wait for them.
    EXPECT_EQ(disk.take_spent(), std::max<Nanoseconds>(second, (process + 1) * second / 4) + 100'000);
  }
  disk.charge_write(0, "index", 1'000'000'000);
  EXPECT_EQ(disk.take_spent(), 9 * second / 4 + 100'000) << "an index is no miniature";
  disk.charge_sync(1);
  disk.charge_call(1);
  EXPECT_EQ(disk.take_spent(), costs.sync_latency + costs.call_latency);
  EXPECT_EQ(BusyTime::of({&disk.account(1).syncing}, 0, second), costs.sync_latency);
}

/// Where adds to one counter take long, those of all servers queue at it: small records then come no faster
/// than their adds.
TEST(sim_method_costs, shared_offsets_queue) {
  MethodTrial trial;
  trial.method = "offset_sharing";
  trial.servers = 64;
  trial.records = 4;
  trial.steps = 2;
  trial.record_bytes = trial.miniature_bytes = 1 << 10;
  trial.costs.call_latency = trial.costs.sync_latency = 10'000;
  const MethodResult fast = run_trial(trial);
  trial.costs.add_gap = 100'000;
  const MethodResult slow = run_trial(trial);
  ASSERT_TRUE(fast.status.is_ok() && slow.status.is_ok()) << fast.status.text() << slow.status.text();
  const double adds = 64 * 4 * 2;
  EXPECT_GT(slow.seconds, adds * 100e-6);
  EXPECT_LT(slow.seconds, 1.5 * adds * 100e-6);
  EXPECT_LT(fast.seconds, 0.25 * slow.seconds);
}

/// A job that writes several times is charged for the later writes before others have begun.
TEST(sim_method_costs, processes_that_write_twice_share_the_rate_of_storage_too) {
  Scheduler scheduler(1);
  Costs costs;
  costs.storage_bytes_per_second = 4e9;
  Disk disk(scheduler, costs, 8);
  Nanoseconds last = 0;
  for (int process = 0; process < 8; ++process) {
    for (int i = 0; i < 2; ++i) disk.charge_write(process, "data", 500'000'000);
    last = std::max(last, disk.take_spent());
  }
  EXPECT_GE(last, 2'000'000'000) << "8 GB at 4 GB/s";
  EXPECT_LE(last, 2'500'000'000) << "the last one has 1 GB, of which half begins late";
}

MethodTrial trial_of(const std::string& method, int servers) {
  MethodTrial trial;
  trial.method = method;
  trial.servers = servers;
  trial.records = 4;
  trial.steps = 3;
  trial.record_bytes = 16 << 20;
  trial.miniature_bytes = 1 << 13;
  trial.costs.storage_bytes_per_second = 30e9;
  return trial;
}

double encoding_rate(const MethodTrial& trial) { return trial.costs.encoded_bytes_per_second / 2; }

TEST(sim_method_costs, the_conclusions_of_the_study_hold_on_64_servers) {
  constexpr int servers = 64;
  const MethodTrial trial = trial_of("scan", servers);
  const MethodResult alone = run_trial(trial_of("serial", 1));
  const MethodResult serial = run_trial(trial_of("serial", servers));
  const MethodResult scan = run_trial(trial);
  const MethodResult few = run_trial(trial_of("scan", 16));
  const MethodResult guard = run_trial(trial_of("offset_guard", servers));
  const MethodResult sharing = run_trial(trial_of("offset_sharing", servers));
  const MethodResult writer = run_trial(trial_of("writer", servers));
  for (const MethodResult* const each : {&alone, &serial, &scan, &few, &guard, &sharing, &writer})
    ASSERT_TRUE(each->status.is_ok()) << each->status.text();
  // One server encodes everything.
  EXPECT_LT(serial.bytes_per_second(), 1.05 * encoding_rate(trial));
  EXPECT_GT(alone.bytes_per_second(), 0.8 * encoding_rate(trial));
  EXPECT_GT(serial.servers.idle, 0.9);
  // The single writer saturates: it writes at the rate of one process, and the others wait for it.
  EXPECT_LT(writer.bytes_per_second(), trial.costs.process_bytes_per_second);
  EXPECT_GT(writer.bytes_per_second(), 0.9 * trial.costs.process_bytes_per_second);
  EXPECT_GT(writer.root.writing, 0.9);
  EXPECT_GT(writer.servers.idle, 0.9);
  // All write: first as fast as they encode, then as fast as storage goes.
  EXPECT_GT(few.bytes_per_second(), 0.6 * 16 * encoding_rate(trial));
  EXPECT_GT(scan.bytes_per_second(), 0.8 * trial.costs.storage_bytes_per_second);
  EXPECT_GT(guard.bytes_per_second(), 0.8 * trial.costs.storage_bytes_per_second);
  EXPECT_GT(sharing.bytes_per_second(), 0.8 * trial.costs.storage_bytes_per_second);
  // The guard idles.
  EXPECT_GT(guard.root.idle, 0.5);
  EXPECT_EQ(guard.root.encoding, 0);
  EXPECT_LT(guard.root.messages, 0.1) << "beside the pieces of its node's rank, which every home passes on";
  EXPECT_LT(guard.servers.idle, 0.5);
}

TEST(sim_method_costs, a_chunk_costs_the_messages_that_the_page_names) {
  constexpr int servers = 64;
  for (const pipeline::Method& method : pipeline::methods()) {
    const MethodTrial trial = trial_of(std::string(method.name), servers);
    MethodResult result = run_trial(trial);
    ASSERT_TRUE(result.status.is_ok()) << method.name << ": " << result.status.text();
    const double full = 0.5 * 3 * 4 * servers * static_cast<double>(trial.record_bytes);
    EXPECT_EQ(result.bytes, full) << method.name;
    const std::int64_t chunks = result.chunks;
    if (method.deal != pipeline::Deal::root) {
      EXPECT_EQ(chunks, 3 * 4 * servers) << method.name << ": each record is a chunk of its own";
    }
    // What the root owns costs no message.
    const std::int64_t from_others = method.deal == pipeline::Deal::all    ? chunks - chunks / servers
                                     : method.deal == pipeline::Deal::root ? 0
                                                                           : chunks;
    const bool asks = !method.takes_offsets;             // the root for offsets
    const bool is_told = asks && !method.is_collective;  // which chunks are written where
    EXPECT_EQ(result.messages[Message::encoded].sent, asks ? from_others : 0) << method.name;
    EXPECT_EQ(result.messages[Message::place].sent, is_told ? from_others : 0) << method.name;
    EXPECT_EQ(result.sent_chunks.sent, method.is_sent ? from_others : 0) << method.name;
    const bool is_answered = is_told || method.appends;  // that it is written
    EXPECT_EQ(result.messages[Message::written].sent, is_answered && !method.is_sent ? from_others : 0)
        << method.name;
    EXPECT_EQ(result.messages[Message::written].all(), is_answered ? chunks : 0) << method.name;
    EXPECT_EQ(result.messages[Message::taken].sent, asks ? 0 : from_others) << method.name;
    EXPECT_EQ(result.messages[Message::begun].all(), asks ? 0 : 3 * servers) << method.name;
    // With appends, a turn besides for one server: for a chunk, or for several that are ready.
    const std::int64_t calls = servers * result.collective_calls;
    const std::int64_t turns = result.messages[Message::turn].all() - calls;
    EXPECT_EQ(turns > 0, method.appends) << method.name;
    EXPECT_LE(turns, chunks) << method.name;
    for (const Message each : {Message::call, Message::turn, Message::called})
      EXPECT_EQ(result.messages[each].all(), calls + turns) << method.name;
    EXPECT_EQ(result.collective_calls > 0, method.is_collective) << method.name;
  }
}

}  // namespace method_costs_test
}  // namespace tailrace::sim
