// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "method_costs.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "planned_stream.hpp"
#include "tailrace/encoders.h"

namespace tailrace::sim {

namespace {

constexpr const char* trial_file = "trial.data";

/// Where processes pay for encoding. Encoders stay registered as long as the process lives.
Disk* paying = nullptr;

/// Keeps the upper 16 bits of each float32, and charges what packing the values would take.
int encode_halves(const tr_record* record, tr_encoded* out, void*, void*) {
  auto* const to = static_cast<std::byte*>(tr_encoded_room(out, 2 * record->count));
  if (to == nullptr) return 1;
  const auto* const from = static_cast<const std::byte*>(record->values);
  for (std::int64_t i = 0; i < record->count; ++i) std::memcpy(to + 2 * i, from + 4 * i + 2, 2);
  paying->charge_encoding(4 * record->count);
  return 0;
}

std::int64_t bytes_of_halves(const tr_record* field, tr_encoded*, void*) { return 2 * field->count; }

void register_halves() {
  tr_encoder functions = TR_ENCODER;
  functions.encode = encode_halves;
  functions.bound = bytes_of_halves;
  [[maybe_unused]] static const Status registered = formats::register_encoder("halves", &functions, nullptr);
}

/// Counts the messages of a run by what they say.
class Counting {
 public:
  explicit Counting(MethodResult& result) : result_(result) {}
  void count(int source, int destination, comm::Traffic traffic, const ByteVector& bytes) {
    MessageCount* const counter = counter_of(traffic, bytes);
    if (counter != nullptr) ++(source == destination ? counter->kept : counter->sent);
  }

 private:
  MessageCount* counter_of(comm::Traffic traffic, const ByteVector& bytes) {
    Unpacker in(bytes);
    if (traffic == comm::Traffic::control) return &result_.messages[in.get<pipeline::Message>()];
    if (traffic != comm::Traffic::data) return nullptr;
    in.get<std::uint32_t>();  // the stream
    in.get<int>();            // the sender
    return in.get<pipeline::Data>() == pipeline::Data::chunk ? &result_.sent_chunks : &result_.pieces;
  }

  MethodResult& result_;
};

Job job_of(const MethodTrial& trial) {
  Job job;
  for (int left = trial.servers; left > 0; left -= trial.servers_of_node)
    job.nodes.push_back({1, std::min(left, trial.servers_of_node)});
  job.seed = 2;  // worlds with an even seed have one-sided counters
  job.costs = trial.costs;
  job.costs->stands_for =
      static_cast<double>(trial.record_bytes) / static_cast<double>(trial.miniature_bytes);
  job.costs->of_file = trial_file;
  // A quarter is workspace of the node's servers: for 8 records each. The rest holds the puts of two steps.
  const Bytes node_step =
      2 * trial.servers * trial.records * trial.miniature_bytes / static_cast<Bytes>(job.nodes.size());
  const Bytes workspace = 8 * trial.miniature_bytes * job.nodes.front().servers;
  job.staging = 4 * std::max({workspace, node_step / 2, Bytes{1} << 19});
  return job;
}

/// The time from the first put to the last close.
struct Elapsed {
  Nanoseconds begin = -1, end = -1;
};

void put_all(SessionRank& rank, const MethodTrial& trial, const std::shared_ptr<const StreamPlan>& plan,
             Scheduler& scheduler, Elapsed& elapsed, Status& status) {
  PlannedStream stream(rank, plan);
  status = first_cause(status, stream.create());
  const auto values = static_cast<std::size_t>(plan->levels(0) * plan->fields[0].layout.count(rank.rank()));
  const std::vector<float> array(std::max<std::size_t>(values, 1), 1.5F);
  if (elapsed.begin < 0) elapsed.begin = scheduler.now();
  for (std::int64_t step = 0; step < trial.steps; ++step) {
    stream.begin(step * 3600);
    stream.put(0, reinterpret_cast<const std::byte*>(array.data()));
    status = first_cause(status, stream.end());
  }
  status = first_cause(status, stream.close());
  elapsed.end = std::max(elapsed.end, scheduler.now());
}

MethodShares shares_of(SessionWorld& world, int server, const Elapsed& elapsed) {
  const int rank = world.roster().server_transport[static_cast<std::size_t>(server)];
  const Disk::Account& account = world.disk().account(rank);
  const Port& port = world.world().rank(rank).port();
  const auto part = [&](std::initializer_list<const BusyTime*> of) {
    return static_cast<double>(BusyTime::of(of, elapsed.begin, elapsed.end)) /
           static_cast<double>(elapsed.end - elapsed.begin);
  };
  const Port::Carrying &data = port.data(), &others = port.others();
  return {part({&account.encoding}),
          part({&account.writing}),
          part({&account.syncing}),
          part({&data.sending, &data.receiving}),
          part({&others.sending, &others.receiving, &port.handling()}),
          1 - part({&account.encoding, &account.writing, &account.syncing, &data.sending, &data.receiving,
                    &others.sending, &others.receiving, &port.handling()})};
}

MethodShares mean_of_others(SessionWorld& world, int root, const Elapsed& elapsed) {
  if (world.servers() == 1) return shares_of(world, root, elapsed);
  MethodShares mean;
  for (int server = 0; server < world.servers(); ++server) {
    if (server == root) continue;
    const MethodShares its = shares_of(world, server, elapsed);
    for (double MethodShares::*const each :
         {&MethodShares::encoding, &MethodShares::writing, &MethodShares::syncing, &MethodShares::data,
          &MethodShares::messages, &MethodShares::idle})
      mean.*each += its.*each / (world.servers() - 1);
  }
  return mean;
}

}  // namespace

MethodResult run_trial(const MethodTrial& trial) {
  register_halves();
  MethodResult result;
  SessionWorld world(job_of(trial));
  paying = &world.disk();
  const Result<std::shared_ptr<const StreamPlan>> plan =
      StreamPlan::make(trial_file, cat("base=2026-03-01 format=halves method=", trial.method),
                       {{"t", *layout::Layout::block({trial.miniature_bytes / 4}, world.ranks()),
                         cat("levels=hybrid:1-", trial.servers * trial.records)}});
  if (!plan.is_ok()) {
    result.status = plan.status();
    return result;
  }
  Counting counting(result);
  world.world().on_send([&](int source, int destination, comm::Traffic traffic, const ByteVector& bytes) {
    counting.count(source, destination, traffic, bytes);
  });
  Elapsed elapsed;
  const std::vector<std::string> stuck = world.run([&](SessionRank& rank) {
    put_all(rank, trial, *plan, world.world().scheduler(), elapsed, result.status);
  });
  if (!stuck.empty()) result.status = Status(Code::timeout, stuck.front());
  for (const Status& each : world.failures()) result.status = first_cause(result.status, each);
  if (!result.status.is_ok()) return result;
  result.seconds = static_cast<double>(elapsed.end - elapsed.begin) * 1e-9;
  const auto file = world.storage().open(trial_file, storage::OpenMode::read);
  result.bytes = static_cast<double>(world.disk().costs().in_full(*(*file)->size()));
  result.chunks =
      result.messages[pipeline::Message::encoded].all() + result.messages[pipeline::Message::taken].all();
  const int root = world.roster().home.front();
  result.root = shares_of(world, root, elapsed);
  result.servers = mean_of_others(world, root, elapsed);
  result.collective_calls = world.collective_calls();
  return result;
}

}  // namespace tailrace::sim
