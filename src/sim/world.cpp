// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sim/world.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/text.hpp"
#include "executor/threads.hpp"
#include "session/select.hpp"
#include "sim/stream.hpp"
#include "streams/ledger.hpp"

namespace tailrace::sim {

namespace {

constexpr Bytes cache_line = 64;
constexpr Bytes round_up(Bytes value) { return (value + cache_line - 1) / cache_line * cache_line; }

/// Beyond this many events a simulation of a few steps runs in circles.
constexpr std::int64_t most_events = 40'000'000;

}  // namespace

// ---- memory that a node's ranks share
// ------------------------------------------------------------------------------------------

Segment::Segment(int lanes, Bytes capacity) : stride_(round_up(comm::lane_bytes(capacity))) {
  size_ = round_up(static_cast<Bytes>(sizeof(comm::NodeBells))) + lanes * stride_;
  void* const memory = ::mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(memory);
}

Segment::~Segment() { ::munmap(base_, static_cast<std::size_t>(size_)); }

comm::LaneHeader* Segment::header(int lane) const {
  return reinterpret_cast<comm::LaneHeader*>(base_ + round_up(static_cast<Bytes>(sizeof(comm::NodeBells))) +
                                             lane * stride_);
}

std::byte* Segment::data(int lane) const {
  return reinterpret_cast<std::byte*>(header(lane)) + sizeof(comm::LaneHeader);
}

// ---- building
// --------------------------------------------------------------------------------------------------------------------

World::World(const Shape& shape) : shape_(shape), scheduler_(shape.seed), nodes_(shape.nodes.size()) {
  deal_out_ranks();
  std::vector<Nanoseconds> node_clock;
  for (std::size_t node = 0; node < nodes_.size(); ++node)
    node_clock.push_back(scheduler_.random(0, 1'000'000'000));
  std::vector<Nanoseconds> offsets(roster_.compute_transport.size() +
                                   (roster_.self_served ? 0 : roster_.server_transport.size()));
  const auto set_clock = [&](int rank, int node) {
    offsets[static_cast<std::size_t>(rank)] = node_clock[static_cast<std::size_t>(node)];
  };
  for (int c = 0; c < ranks(); ++c) {
    set_clock(roster_.compute_transport[static_cast<std::size_t>(c)],
              roster_.compute_node[static_cast<std::size_t>(c)]);
  }
  for (int s = 0; s < servers(); ++s) {
    set_clock(roster_.server_transport[static_cast<std::size_t>(s)],
              roster_.server_node[static_cast<std::size_t>(s)]);
  }
  network_ = std::make_unique<Network>(scheduler_, offsets);
  std::vector<int> all(offsets.size());
  std::iota(all.begin(), all.end(), 0);
  all_ = std::make_shared<const comm::Members>(std::move(all));
  computes_ = std::make_shared<const comm::Members>(roster_.compute_transport);
  storage_ = shape.storage ? shape.storage : storage::memory_target();
  disk_ = std::make_shared<Disk>(scheduler_, shape_.disk_bytes_per_second, shape_.disk_latency);
  make_segments();
  for (int c = 0; c < ranks(); ++c) make_rank(c);
  servers_.resize(static_cast<std::size_t>(servers()));
  for (int s = 0; s < servers(); ++s) make_server(s);
}

// Programs hold references into everything else: they go first.
World::~World() {
  for (const auto& rank : ranks_) rank->actor().abandon();
  for (const ServerSeat& seat : servers_) {
    if (seat.actor) seat.actor->abandon();
  }
}

/// World ranks in the order of the nodes, servers last on each, as TAILRACE_SERVERS=node:k would choose them;
/// or mixed.
void World::deal_out_ranks() {
  std::vector<session::RankFacts> facts;
  std::vector<char> is_server;
  for (std::size_t node = 0; node < shape_.nodes.size(); ++node) {
    for (int i = 0; i < shape_.nodes[node].ranks + shape_.nodes[node].servers; ++i) {
      facts.push_back({static_cast<int>(node), cat("node", node), "model"});
      is_server.push_back(i >= shape_.nodes[node].ranks ? 1 : 0);
    }
  }
  if (shape_.mixed) {
    for (std::size_t i = facts.size(); i > 1; --i) {
      const auto other = static_cast<std::size_t>(scheduler_.random(0, static_cast<std::int64_t>(i) - 1));
      std::swap(facts[i - 1], facts[other]);
      std::swap(is_server[i - 1], is_server[other]);
    }
  }
  roster_ = session::make_roster(facts, is_server);
}

int World::lane_number(int c) const {
  const auto& nodes = roster_.compute_node;
  return static_cast<int>(std::count(nodes.begin(), nodes.begin() + c, nodes[static_cast<std::size_t>(c)]));
}

void World::make_segments() {
  if (roster_.self_served) return;
  for (const int node : roster_.server_node) {
    Node& place = nodes_[static_cast<std::size_t>(node)];
    if (place.segment) continue;
    const auto lanes = std::count(roster_.compute_node.begin(), roster_.compute_node.end(), node);
    place.segment = std::make_unique<Segment>(static_cast<int>(lanes), comm::lane_for(shape_.lane));
  }
}

void World::poke_node(int node) {
  for (Actor* actor : nodes_[static_cast<std::size_t>(node)].actors) actor->poke();
}

void World::seat(Actor& actor, int node, int transport_rank) {
  nodes_[static_cast<std::size_t>(node)].actors.push_back(&actor);
  // What it did in shared memory concerns its node; what the network brought concerns it alone.
  actor.on_step([this, node] { poke_node(node); });
  network_->port(transport_rank).on_news([&actor] { actor.poke(); });
}

void World::make_rank(int c) {
  const auto i = static_cast<std::size_t>(c);
  const int transport_rank = roster_.compute_transport[i];
  const int node = roster_.compute_node[i];
  auto rank = std::make_unique<Rank>(c, roster_, scheduler_, network_->port(transport_rank), all_, computes_);
  if (roster_.self_served) {
    lent_.push_back(std::make_shared<pipeline::LentLane>());
    rank->set_outlet(std::make_unique<pipeline::LendingOutlet>(lent_.back()));
  } else if (roster_.shares_node[i] != 0) {
    const Segment& segment = *nodes_[static_cast<std::size_t>(node)].segment;
    comm::LaneHeader* const header = segment.header(lane_number(c));
    header->capacity = comm::lane_for(shape_.lane);
    header->readers =
        static_cast<int>(std::count(roster_.server_node.begin(), roster_.server_node.end(), node));
    rank->set_outlet(std::make_unique<pipeline::RingOutlet>(
        comm::LaneProducer(header, segment.data(lane_number(c)), segment.bells(),
                           shape_.patient ? comm::Announcing::patient : comm::Announcing::at_once)));
  } else {
    auto lane = std::make_unique<comm::PrivateLane>(comm::lane_for(shape_.lane));
    const int home = roster_.server_transport[static_cast<std::size_t>(roster_.home[i])];
    auto sender = std::make_unique<comm::LaneSender>(
        *lane, rank->line(), home, static_cast<std::uint32_t>(pipeline::DataMessage::descriptor));
    const comm::LaneProducer producer(lane->header(), lane->data(), nullptr);
    rank->set_outlet(std::make_unique<pipeline::RingOutlet>(producer, std::move(lane), std::move(sender)));
  }
  rank->set_timer(shape_.timer);
  seat(rank->actor(), node, transport_rank);
  ranks_.push_back(std::move(rank));
}

void World::make_server(int s) {
  const auto i = static_cast<std::size_t>(s);
  ServerSeat& seat = servers_[i];
  const int node = roster_.server_node[i];
  if (!roster_.self_served) {
    seat.board = std::make_unique<comm::Switchboard>();
    seat.board->connect(network_->port(roster_.server_transport[i]));
    seat.line = std::make_unique<comm::Line>(*seat.board, comm::line_number::session, all_);
  }
  comm::Line& line = roster_.self_served ? ranks_[i]->line() : *seat.line;
  seat.target = storage::faulty_target(on_disk(storage_, disk_), {});
  seat.files = std::make_unique<pipeline::OpenFiles>(seat.target);
  seat.statistics = std::make_unique<pipeline::Statistics>();
  pipeline::Server::Setup setup;
  setup.me = s;
  setup.workspace = shape_.workspace;
  setup.make_ledger = [target = seat.target](const pipeline::Opening& opening) {
    return streams::make_ledger(opening, target);
  };
  setup.on_statistics = [this](const std::map<int, pipeline::Statistics>& all) { gathered_ = all; };
  setup.give_up = [this](const Status& why) { given_up_ += why.text(); };
  setup.reporting = shape_.reporting;
  if (roster_.self_served) {
    setup.lanes.emplace(s, std::make_unique<pipeline::LentLaneReader>(lent_[i]));
    seat.executor = std::move(*executor::Threads::create({}));
  } else {
    const Segment& segment = *nodes_[static_cast<std::size_t>(node)].segment;
    const int reader =
        static_cast<int>(std::count(roster_.server_node.begin(), roster_.server_node.begin() + s, node));
    seat.bell = &segment.bells()->reader[reader];
    for (int c = 0; c < ranks(); ++c) {
      const auto k = static_cast<std::size_t>(c);
      if (roster_.shares_node[k] != 0 && roster_.compute_node[k] == node) {
        setup.lanes.emplace(c, std::make_unique<comm::SharedLaneReader>(
                                   segment.header(lane_number(c)), segment.data(lane_number(c)), reader,
                                   shape_.patient ? segment.bells() : nullptr));
      } else if (roster_.shares_node[k] == 0 && roster_.home[k] == s) {
        auto& lane = seat.mirrored[c] = std::make_unique<comm::PrivateLane>(comm::lane_for(shape_.lane));
        setup.mirrors.emplace(c,
                              std::make_unique<comm::LaneMirror>(*lane, line, roster_.compute_transport[k]));
        setup.lanes.emplace(c, std::make_unique<comm::SharedLaneReader>(lane->header(), lane->data(), 0));
      }
    }
    seat.executor =
        std::make_unique<SimThreads>(scheduler_, shape_.threads, disk_, [this, bell = seat.bell, node] {
          bell->ring();
          poke_node(node);
        });
    seat.actor = std::make_unique<Actor>(scheduler_, cat("server ", s));
    this->seat(*seat.actor, node, roster_.server_transport[i]);
  }
  seat.server = std::make_unique<pipeline::Server>(line, roster_, *seat.executor, *seat.files,
                                                   *seat.statistics, std::move(setup));
  if (roster_.self_served) ranks_[i]->set_server(seat.server.get(), seat.statistics.get(), disk_);
}

// ---- running
// ---------------------------------------------------------------------------------------------------------------------

/// The loop of session::Session::serve(), each of whose steps is a step of the scheduler.
Task<> World::serve(int s) {
  ServerSeat& seat = servers_[static_cast<std::size_t>(s)];
  Port& port = network_->port(roster_.server_transport[static_cast<std::size_t>(s)]);
  pipeline::Server& server = *seat.server;
  comm::Doorbell& bell = *seat.bell;
  const std::function<bool()> pump = [&board = *seat.board, &server] {
    const bool moved = board.pump();
    if (board.strays() > 0) throw std::logic_error("a message came to a server of a kind that none takes");
    return server.advance() || moved;
  };
  comm::GoingToSleep sleep;
  std::uint32_t ticket = 0;
  while (!server.is_over() || !seat.board->all_sent()) {
    using Next = comm::GoingToSleep::Next;
    switch (sleep.next()) {
      case Next::look:
        sleep.looked(pump(), bell);
        break;
      case Next::take_ticket:
        sleep.take_ticket(bell);
        ticket = sleep.ticket();
        break;
      case Next::look_again: {
        const bool moved = shape_.sleep_order != SleepOrder::no_second_look && pump();
        sleep.looked(moved, bell);
        if (moved || shape_.sleep_order != SleepOrder::ticket_after_second_look) break;
        co_await seat.actor->step();
        bell.cancel();
        ticket = bell.ticket();
        break;
      }
      case Next::park: {
        const std::function<bool()> awake = [&bell, &port, ticket] {
          return bell.rung_since(ticket) || port.has_news();
        };
        co_await seat.actor->sleep(awake, "its doorbell or a message", shape_.timer);
        bell.cancel();
        sleep.woke();
        break;
      }
    }
    co_await seat.actor->step();
  }
}

Outcome World::run(std::function<Task<>(Rank&)> program) {
  program_ = std::move(program);
  for (auto& rank : ranks_) rank->actor().start(program_(*rank));
  for (int s = 0; s < servers(); ++s) {
    Actor* const actor = servers_[static_cast<std::size_t>(s)].actor.get();
    if (actor != nullptr) actor->start(serve(s));
  }
  Outcome outcome;
  std::int64_t events = 0;
  while (scheduler_.run_one()) {
    if (++events > most_events) {
      outcome.stuck = cat("it runs in circles: ", most_events, " events;");
      break;
    }
  }
  bool all = true;
  const auto look_at = [&](const Actor& actor) {
    if (actor.is_done()) return;
    all = false;
    if (actor.is_lost())
      outcome.stuck += cat(" ", actor.name(), " is lost;");
    else
      outcome.stuck += cat(" ", actor.name(), " waits for ", actor.waits_for(), ";");
  };
  for (const auto& rank : ranks_) look_at(rank->actor());
  for (const ServerSeat& seat : servers_) {
    if (seat.actor) look_at(*seat.actor);
  }
  outcome.finished = all;
  return outcome;
}

void World::lose(int c) { rank(c).actor().lose(); }

std::string World::waiting_for() const {
  std::string text;
  for (const ServerSeat& seat : servers_) text += seat.server->waiting_for();
  return text;
}

}  // namespace tailrace::sim
