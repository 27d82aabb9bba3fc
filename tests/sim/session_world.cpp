// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "session_world.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

#include "faces/streams/files/file_ledger.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "pausing_target.hpp"

namespace tailrace::sim {

std::vector<NodeShape> nodes_of(int ranks, int ranks_per_node) {
  std::vector<NodeShape> nodes;
  for (int rank = 0; rank < ranks; rank += ranks_per_node)
    nodes.push_back({std::min(ranks_per_node, ranks - rank), 0});
  return nodes;
}

Result<std::shared_ptr<files::Group>> SessionRank::group(const std::vector<int>& ranks) {
  std::shared_ptr<files::Group>& group = groups_[ranks];
  if (group != nullptr) return group;
  Result<std::unique_ptr<comm::Line>> line = comm::Line::open_among(
      session_.board(), std::make_shared<const comm::Members>(ranks), "opening a group of ranks");
  TR_TRY(line.status());
  return group = std::make_shared<files::Group>(service_, std::move(*line));
}

namespace {

/// For a search (docs/design/003-simulated-world.md).
void take_handoff_by_hand(Settings& settings) {
  const char* const handoff = std::getenv("TAILRACE_SIM_HANDOFF");
  if (handoff == nullptr || !settings.is_default("handoff")) return;
  const Status taken = settings.take({"handoff", handoff, "environment"});
  if (!taken.is_ok()) throw std::runtime_error(taken.text());
}

int size_of(const Job& job) {
  return std::accumulate(job.nodes.begin(), job.nodes.end(), 0,
                         [](int sum, const NodeShape& node) { return sum + node.ranks + node.servers; });
}

}  // namespace

SessionWorld::SessionWorld(Job job) : job_(std::move(job)), world_(size_of(job_), job_.seed) {
  set_log_level(LogLevel::error);
  deal_out_ranks();
  roster_ = session::make_roster(ranks_, serves_);
  if (job_.disk_bytes_per_second > 0) job_.costs = slow_disk(job_.disk_bytes_per_second);
  if (job_.costs) {
    world_.scheduler().keep_to(*job_.costs);
    disk_ = std::make_shared<Disk>(world_.scheduler(), *job_.costs, world_.size());
  }
  meetings_ =
      std::make_unique<Meetings>(world_.scheduler(), static_cast<std::size_t>(roster_.servers()), disk_);
  counters_ =
      std::make_unique<SharedCounters>(world_.scheduler(), static_cast<std::size_t>(roster_.servers()));
  sessions_.resize(ranks_.size());
  for (int rank = 0; rank < world_.size(); ++rank) seat(rank);
}

/// Numbers the world's ranks in the order of the nodes, with the servers last on each node, as
/// TAILRACE_SERVERS=node:k would choose them. With Job::mixed the order is random.
void SessionWorld::deal_out_ranks() {
  for (std::size_t node = 0; node < job_.nodes.size(); ++node) {
    const int all = job_.nodes[node].ranks + job_.nodes[node].servers;
    for (int i = 0; i < all; ++i) {
      const int cores = job_.crowded ? (all + 1) / 2 : all;
      ranks_.push_back({static_cast<int>(node), cat("node", node), "model", 1, cores});
      serves_.push_back(i >= job_.nodes[node].ranks ? 1 : 0);
    }
  }
  Scheduler& dice = world_.scheduler();
  for (std::size_t i = ranks_.size(); job_.mixed && i > 1; --i) {
    const auto other = static_cast<std::size_t>(dice.random(0, static_cast<std::int64_t>(i) - 1));
    std::swap(ranks_[i - 1], ranks_[other]);
    std::swap(serves_[i - 1], serves_[other]);
  }
}

void SessionWorld::seat(int rank) {
  const int node = ranks_[static_cast<std::size_t>(rank)].node;
  Scheduler& dice = world_.scheduler();
  const Nanoseconds clock = clocks_.try_emplace(node, dice.random(0, 1'000'000'000)).first->second;
  node_ranks_[node].push_back(rank);
  FibreRank& fibre = world_.rank(rank);
  std::shared_ptr<storage::Target> target =
      disk_ != nullptr ? on_disk(job_.storage, disk_, rank) : job_.storage;
  if (job_.pauses_in_storage) target = pausing_target(std::move(target), fibre, dice);
  targets_.push_back(storage::faulty_target(std::move(target), {}));
  fibre.port().set_clock(clock);
  fibre.on_step([this, node] { look_at_memory_of(node); });
  if (disk_ != nullptr) fibre.on_cost([this] { return disk_->take_spent(); });
  if (!job_.limits_parks) fibre.park_without_limit();
  if (job_.parks_late) fibre.park_on_a_late_ticket();
}

void SessionWorld::look_at_memory_of(int node) {
  for (const int rank : node_ranks_[node]) world_.rank(rank).look();
}

storage::FaultyTarget& SessionWorld::storage_of(int s) const {
  return *targets_[static_cast<std::size_t>(roster_.server_transport[static_cast<std::size_t>(s)])];
}

session::Facts SessionWorld::facts_of(int rank) {
  session::Facts facts;
  facts.rank = rank;
  const auto more = job_.more_settings.find(rank);
  // With io_threads=0 compute ranks have no threads: a call does the work of a thread itself.
  const std::string settings =
      cat("io_threads=0 huge_pages=off stop_signals=none staging=", job_.staging, " threads=", job_.threads,
          " ", job_.settings, " ", more == job_.more_settings.end() ? "" : more->second);
  Result<Settings> read = Settings::read(settings, {});
  if (!read.is_ok()) throw std::runtime_error(read.status().text());
  facts.settings = *read;
  take_handoff_by_hand(facts.settings);
  facts.ranks = ranks_;
  facts.serves = serves_;
  facts.keeps_steps = job_.keeps_steps;
  facts.storage = targets_[static_cast<std::size_t>(rank)];
  facts.stops = std::make_unique<session::Stops>(facts.settings);
  const int node = ranks_[static_cast<std::size_t>(rank)].node;
  facts.collective.needs_files_of_system = false;
  const auto server = static_cast<std::size_t>(std::ranges::find(roster_.server_transport, rank) -
                                               roster_.server_transport.begin());
  const auto waking = [this, rank, node](std::function<void()> wake) {
    return [this, rank, node, wake = std::move(wake)] {
      if (wake) wake();
      world_.rank(rank).poke();
      look_at_memory_of(node);
    };
  };
  facts.collective.make = [this, rank, server, waking](std::function<void()> wake) {
    return meetings_->join(server, targets_[static_cast<std::size_t>(rank)], waking(std::move(wake)));
  };
  facts.make_counters = [this, rank, server, waking](
                            comm::Transport&,
                            std::function<void()> wake) -> Result<std::unique_ptr<comm::Counters>> {
    if (!roster_.self_served) meet("counters", rank, roster_.servers());
    if (job_.seed % 2 == 1) return Status(Code::unsupported, "half of the worlds have no one-sided adds");
    std::unique_ptr<comm::Counters> own = counters_->join(server, waking(std::move(wake)));
    return job_.around_counters ? job_.around_counters(std::move(own)) : std::move(own);
  };
  facts.make_exposed = [this, rank, waking](
                           comm::Transport&, Bytes bytes, const std::vector<int>&,
                           std::function<void()> wake) -> Result<std::unique_ptr<comm::ExposedMemory>> {
    meet("exposed memory", rank, world_.size());
    if (job_.lacks_gets) return Status(Code::unsupported, "this world has no one-sided gets");
    return exposed_.join(static_cast<std::size_t>(rank), bytes, waking(std::move(wake)));
  };
  facts.make_executor = [this, rank, node](int computing, std::function<void()> wake) {
    return std::make_unique<SimThreads>(
        world_.scheduler(), computing, disk_,
        [this, node, wake = std::move(wake)] {
          wake();
          look_at_memory_of(node);
        },
        rank);
  };
  return facts;
}

/// Waits as a call of MPI does: the rank takes no message meanwhile.
void SessionWorld::meet(const char* what, int rank, int members) {
  int& come = come_[what];
  ++come;
  for (Nanoseconds nap = 1'000; come < members; nap = std::min(2 * nap, FibreWorld::second))
    world_.rank(rank).stall(nap);
}

void SessionWorld::run_rank(FibreRank& fibre, const std::function<void(SessionRank&)>& program) {
  Result<std::unique_ptr<session::Session>> made =
      session::Session::create(fibre.port(), facts_of(fibre.rank()), streams::make_ledger);
  if (!made.is_ok()) {
    failures_.push_back(made.status());
    return;
  }
  session::Session& session = **made;
  session::Session*& here = sessions_[static_cast<std::size_t>(fibre.rank())];
  here = &session;
  if (session.is_server()) {
    const std::shared_ptr<void> more = job_.on_server != nullptr ? job_.on_server(session) : nullptr;
    session.serving().run();
    here = nullptr;
    return;
  }
  {
    SessionRank rank(fibre, session);
    program(rank);
    if (const Status met = session.computing().meet_in_finalize(); !met.is_ok()) failures_.push_back(met);
  }
  ++leaving_;
  session.computing().leave();
  here = nullptr;
}

bool SessionWorld::replace_server() {
  const int rank = roster_.server_transport.front();
  session::Session* const session = sessions_[static_cast<std::size_t>(rank)];
  if (session == nullptr || leaving_ > 0) return false;
  const Status replaced = session->serving().replace();
  if (!replaced.is_ok()) failures_.push_back(replaced);
  look_at_memory_of(ranks_[static_cast<std::size_t>(rank)].node);
  ++replaced_;
  return true;
}

void SessionWorld::replace_at_random(Scheduler& dice, std::int64_t times) {
  if (times == 0) return;
  const Nanoseconds delay = dice.random(1, std::int64_t{1000} << dice.random(1, 13));
  world_.scheduler().after(delay, [this, &dice, times] {
    replace_server();
    replace_at_random(dice, times - 1);
  });
}

std::vector<std::string> SessionWorld::waiting_servers() const {
  std::vector<std::string> texts;
  for (const int rank : roster_.server_transport) {
    session::Session* const session = sessions_[static_cast<std::size_t>(rank)];
    if (session == nullptr || !session->is_server()) continue;
    const std::string missing = session->board().watch().missing();
    if (!missing.empty()) texts.push_back(cat("a server waits:", missing));
  }
  return texts;
}

std::vector<std::string> SessionWorld::run(const std::function<void(SessionRank&)>& program,
                                           Nanoseconds limit) {
  std::vector<std::string> servers;
  world_.before_unwinding([&] { servers = waiting_servers(); });
  std::vector<std::string> unfinished =
      world_.run([&](FibreRank& fibre) { run_rank(fibre, program); }, limit);
  unfinished.insert(unfinished.end(), servers.begin(), servers.end());
  return unfinished;
}

}  // namespace tailrace::sim
