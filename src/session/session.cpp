// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "session/session.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <numeric>

#include "base/options.hpp"
#include "base/text.hpp"
#include "comm/end_job.hpp"
#include "compat/environment.hpp"
#include "node/available_memory.hpp"
#include "session/parking.hpp"
#include "session/report.hpp"

namespace tailrace::session {

namespace {

constexpr Bytes mebibyte = Bytes{1} << 20;

/// The head of the memory that a node's ranks share. The first rank's lane follows it. New memory is zero,
/// and so an account and bells begin.
struct NodeHead {
  node::Budget::Account budget;
  node::NodeBells bells;
};

/// This many files of a server may hang (in a hook, on a full disk, on storage that does not answer) before
/// other files wait for them. A thread that waits costs its stack.
constexpr int most_files_at_once = 64;

/// SIGTERM goes to every process of a job. A server must outlive it until the compute ranks have left, and
/// drain what they put.
class KeepServing {
 public:
  KeepServing() {
    struct sigaction action = {};
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGTERM, &action, &before_);
  }
  ~KeepServing() { ::sigaction(SIGTERM, &before_, nullptr); }
  KeepServing(const KeepServing&) = delete;
  KeepServing& operator=(const KeepServing&) = delete;

 private:
  struct sigaction before_ = {};
};

/// Takes the rank of the world for which the plan is off a text like "rank=2 nth=3", and returns it (-1:
/// all). The rest is the storage's plan.
Result<int> take_fault_rank(std::string& plan) {
  std::string rest;
  int rank = -1;
  for (const std::string& word : split(plan, ' ')) {
    if (!word.starts_with("rank=")) {
      rest += cat(rest.empty() ? "" : " ", word);
      continue;
    }
    const auto [end, error] = std::from_chars(word.data() + 5, word.data() + word.size(), rank);
    if (error != std::errc{} || end != word.data() + word.size() || rank < 0) {
      return Status(Code::settings,
                    cat("fault=\"", plan, "\": ", word, " names no rank; ranks are counted from 0"));
    }
  }
  plan = rest;
  return rank;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(comm::Transport& transport, Facts facts,
                                                 LedgerFactory make_ledger) {
  std::unique_ptr<Session> session(new Session());
  TR_TRY(session->start(transport, std::move(facts), std::move(make_ledger)));
  return session;
}

Session::~Session() {
  server_.reset();
  executor_.reset();
  threads_.reset();
  if (budget_ && node_line_->rank() == 0 && budget_->most() > 0) {
    log(LogLevel::info, cat("memory: host ", facts_[static_cast<std::size_t>(world_rank_)].host, ": of ",
                            size_text(budget_->limit()), ", at most ", budget_->most_text(), " were taken"));
  }
  if (faulty_) {
    log(LogLevel::warn, cat("TAILRACE_FAULT: rank ", world_rank_, " made ", faulty_->calls(),
                            " such storage calls; ", faulty_->fired() ? "it struck" : "it struck none"));
  }
}

Status Session::start(comm::Transport& transport, Facts facts, LedgerFactory make_ledger) {
  settings_ = std::move(facts.settings);
  stops_ = std::move(facts.stops);
  target_ = std::move(facts.storage);
  make_threads_ = std::move(facts.make_executor);
  world_rank_ = facts.rank;
  facts_ = std::move(facts.ranks);
  roster_ = make_roster(facts_, facts.serves);
  is_server_ = facts.serves[static_cast<std::size_t>(world_rank_)] != 0;
  const auto& list = is_server_ ? roster_.server_transport : roster_.compute_transport;
  me_ = static_cast<int>(std::find(list.begin(), list.end(), world_rank_) - list.begin());
  if (is_server())
    stops_->ignore_signals();
  else if (me_ == 0)
    stops_->tell_left_alone();
  open_lines(transport);
  TR_TRY(same_everywhere(make_storage()));
  make_ledger_ = std::move(make_ledger);
  TR_TRY(make_staging(facts.keeps_steps));
  TR_TRY(same_everywhere(make_server()));
  print_node_plan(*node_line_, facts_[static_cast<std::size_t>(world_rank_)].host, cpus());
  return {};
}

Status Session::same_everywhere(const Status& mine) { return line_->agree({mine, "tr_init", {}}).status; }

void Session::open_lines(comm::Transport& transport) {
  namespace number = comm::line_number;
  board_.connect(transport);
  board_.watch().who = cat(is_server() ? "server " : "compute rank ", me_);
  board_.watch().warn_seconds = settings_.watchdog_seconds;
  board_.watch().give_up_seconds = settings_.timeout_seconds;
  board_.watch().has_own_core = !is_crowded();
  board_.watch().before_each_look = [this] {
    if (outlet_) outlet_->announce();
  };
  board_.watch().missing = [this] { return server_ ? server_->waiting_for() : std::string(); };
  std::vector<int> all(facts_.size());
  std::iota(all.begin(), all.end(), 0);
  line_ = std::make_unique<comm::Line>(board_, number::session, std::make_shared<comm::Members>(all));
  std::erase_if(all, [this](int rank) { return node_of(rank) != my_node(); });
  node_line_ = std::make_unique<comm::Line>(board_, number::session | number::node_bit,
                                            std::make_shared<comm::Members>(all));
  node_line_->name_ranks([all](int rank) { return cat("rank ", all[static_cast<std::size_t>(rank)]); });
  board_.add_work([this] {
    const bool moved = outlet_ && outlet_->advance();
    return (server_ && server_->advance()) || moved;
  });
  if (is_server()) return;
  computes_ = std::make_unique<comm::Line>(board_, number::computes,
                                           std::make_shared<comm::Members>(roster_.compute_transport));
  computes_->name_ranks([](int rank) { return cat("compute rank ", rank); });
  client_ = std::make_unique<pipeline::Client>(*line_, *computes_, roster_);
  board_.order().on_step(
      [this](const comm::Entry& step) { return client_->has_ended(step.stream, step.number); });
  board_.order().connect(*computes_);
}

Status Session::make_storage() {
  if (target_ == nullptr) {
    Result<std::shared_ptr<storage::Target>> target =
        storage::make_target(settings_.target == TargetKind::uring ? "uring" : "posix");
    TR_TRY(target.status());
    target_ = *target;
  }
  if (!settings_.throttle.empty()) {
    Result<storage::Throttle> throttle = storage::parse_throttle(settings_.throttle);
    TR_TRY(throttle.status());
    target_ = storage::throttled_target(target_, *throttle);
  }
  if (!settings_.fault.empty()) {
    std::string text = settings_.fault;
    const Result<int> rank = take_fault_rank(text);
    TR_TRY(rank.status());
    const Result<storage::FaultPlan> plan = storage::parse_fault(text);
    TR_TRY(plan.status());
    if (*rank < 0 || *rank == world_rank_) target_ = faulty_ = storage::faulty_target(target_, *plan);
  }
  files_ = std::make_unique<pipeline::OpenFiles>(target_);
  return {};
}

/// Every rank computes every quota, so the smallest node's numbers are valid everywhere.
Status Session::declare_memory(Bytes available) {
  const Declared mine = declare(settings_, available, ranks_on(my_node()));
  Packer told;
  told.put(mine);
  const comm::Verdict verdict = line_->agree({{}, "tr_init", told.take()});
  TR_TRY(verdict.status);
  declared_ = mine;
  for (const ByteVector& each : verdict.contributions) {
    const auto theirs = Unpacker(each).get<Declared>();
    declared_.memory = std::min(declared_.memory, theirs.memory);
    declared_.staging = std::min(declared_.staging, theirs.staging);
  }
  settings_.io_buffer = io_buffer_of(settings_, declared_.memory);
  return {};
}

Status Session::check_staging(Bytes available) const {
  if (declared_.staging > declared_.memory) {
    return {Code::settings,
            cat("TAILRACE_STAGING asks for ", size_text(declared_.staging), " of the ",
                size_text(declared_.memory),
                " that TAILRACE_MEMORY lets the library take on a node: set TAILRACE_STAGING lower")};
  }
  if (declared_.staging > available) {
    return {Code::memory, cat("TAILRACE_STAGING asks for ", declared_.staging, " bytes on host ",
                              facts_[static_cast<std::size_t>(world_rank_)].host, ", where ", available,
                              " are to be had: set it lower")};
  }
  return {};
}

Status Session::make_staging(bool keeps_steps) {
  const Bytes available = node::available_memory();
  TR_TRY(declare_memory(available));
  quotas_ = cut_staging(roster_, declared_.staging);
  if (keeps_steps) quotas_.keep_definitions();
  TR_TRY(same_everywhere(check_staging(available)));
  if (world_rank_ == 0) print_plan();
  TR_TRY(share_node_memory());
  if (roster_.self_served) {
    lent_ = std::make_shared<pipeline::LentLane>();
    outlet_ = std::make_unique<pipeline::LendingOutlet>(lent_);
    return {};
  }
  if (!is_server()) make_outlet();
  // No server may look at a lane before the rank that writes into it has made its header.
  return node_line_->agree({{}, "tr_init", {}}).status;
}

/// Makes the memory that the ranks of a node share. The first rank's part has the account of the budget and
/// the bells. If the node has a server, each compute rank's part has its lane; open_staging() allocates the
/// lanes' rings of data.
Status Session::share_node_memory() {
  const bool has_lanes = servers_on(my_node()) > 0;
  std::vector<Bytes> parts;
  const auto& computes = roster_.compute_transport;
  for (std::size_t rank = 0; rank < facts_.size(); ++rank) {
    if (facts_[rank].node != my_node()) continue;
    const auto c = std::find(computes.begin(), computes.end(), static_cast<int>(rank)) - computes.begin();
    const bool has_lane = has_lanes && c < roster_.computes();
    parts.push_back(has_lane ? node::lane_bytes(quotas_.lane[static_cast<std::size_t>(c)]) +
                                   quotas_.kept_of(static_cast<int>(c))
                             : 0);
  }
  parts[0] += static_cast<Bytes>(sizeof(NodeHead));
  // Agreements publish descriptors without data, even in programs that create no stream.
  constexpr Bytes at_once = static_cast<Bytes>(sizeof(NodeHead) + sizeof(node::LaneHeader)) +
                            node::descriptor_bytes(node::LaneCut::most_descriptors);
  Result<std::unique_ptr<node::NodeMemory>> memory =
      node::NodeMemory::create(*node_line_, parts, has_lanes && settings_.huge_pages, at_once);
  TR_TRY(same_everywhere(memory.status().at({-1, -1, world_rank_})));
  memory_ = std::move(*memory);
  auto* const head = reinterpret_cast<NodeHead*>(memory_->part(0));
  budget_ = std::make_unique<node::Budget>(head->budget, declared_.memory);
  if (has_lanes) bells_ = &head->bells;
  staging_.emplace(*budget_, node::Use::staging);
  return {};
}

/// Returns the bytes of staging that this rank draws. The compute ranks of a node draw all of its staging in
/// equal parts. If a node has no compute ranks, its servers do.
Bytes Session::my_staging() const {
  const auto& nodes = is_server() ? roster_.server_node : roster_.compute_node;
  return declared_.staging / std::count(nodes.begin(), nodes.end(), my_node());
}

std::byte* Session::lane_of(int node_rank) const {
  return memory_->part(node_rank) + (node_rank == 0 ? sizeof(NodeHead) : 0);
}

int Session::servers_on(int node) const {
  if (roster_.self_served) return 0;
  return static_cast<int>(std::count(roster_.server_node.begin(), roster_.server_node.end(), node));
}

void Session::make_outlet() {
  const Bytes capacity = quotas_.lane[static_cast<std::size_t>(me_)];
  if (bells_ != nullptr) {
    std::byte* const place = lane_of(node_line_->rank());
    auto* header = new (place) node::LaneHeader();
    header->capacity = capacity;
    header->readers = servers_on(my_node());
    header->owner = me_;
    header->kept = quotas_.kept_of(me_);
    outlet_ = std::make_unique<pipeline::RingOutlet>(
        node::LaneProducer(header, place + sizeof(node::LaneHeader), bells_,
                           is_crowded() ? node::Announcing::patient : node::Announcing::at_once));
    return;
  }
  const int home = roster_.home[static_cast<std::size_t>(me_)];
  auto lane = std::make_unique<node::PrivateLane>(capacity);
  auto sender = std::make_unique<node::LaneSender>(
      *lane, *line_, roster_.server_transport[static_cast<std::size_t>(home)],
      static_cast<std::uint32_t>(pipeline::DataMessage::descriptor));
  const node::LaneProducer producer(lane->header(), lane->data(), nullptr);
  outlet_ = std::make_unique<pipeline::RingOutlet>(producer, std::move(lane), std::move(sender));
  client_->grant_to(*outlet_);
}

Status Session::make_server() {
  statistics_.tracing = !settings_.trace.empty();
  if (!is_server()) {
    Result<std::unique_ptr<executor::Threads>> threads = executor::Threads::create({0, settings_.io_threads});
    TR_TRY(threads.status());
    threads_ = std::move(*threads);
  }
  if (!is_server() && !roster_.self_served) return {};
  const auto& nodes = roster_.compute_node;
  if (std::find(nodes.begin(), nodes.end(), my_node()) == nodes.end()) TR_TRY(staging_->take(my_staging()));
  // The first server writes them when everything is done. That is too late to hear that it cannot.
  if (me_ == 0) TR_TRY(check_report(settings_));
  return start_server(false);
}

Status Session::start_server(bool takes_over) {
  pipeline::Server::Setup setup;
  setup.me = me_;
  setup.takes_over = takes_over;
  setup.workspace = quotas_.workspace[static_cast<std::size_t>(me_)];
  setup.make_ledger = [this](const pipeline::Opening& opening) { return make_ledger_(opening, target_); };
  setup.give_up = [](const Status& why) {
    comm::end_job(
        cat(why.text(),
            ". If memory is short on its node, set TAILRACE_STAGING lower or start fewer ranks there."));
  };
  setup.reporting = !settings_.report.empty();
  setup.on_statistics = [this](const std::map<int, pipeline::Statistics>& all) {
    const Status written = write_report(settings_, roster_, all);
    if (!written.is_ok()) log(LogLevel::error, written.text());
  };
  setup.staging_for = [this](Bytes needed, Bytes share) { return staging_for(needed, share); };
  if (roster_.self_served) {
    setup.lanes.emplace(me_, std::make_unique<pipeline::LentLaneReader>(lent_));
  } else {
    setup.quotas = quotas_.lane;
    TR_TRY(find_lanes(setup));
    if (bells_ == nullptr) bells_ = &own_bells_;
  }
  TR_TRY(make_executor());
  server_ =
      std::make_unique<pipeline::Server>(*line_, roster_, *executor_, *files_, statistics_, std::move(setup));
  return {};
}

Status Session::replace_server() {
  server_.reset();
  executor_.reset();
  files_ = std::make_unique<pipeline::OpenFiles>(target_);
  while (board_.pump()) continue;  // what the server before has sent to itself
  TR_TRY(start_server(true));
  bells_->reader[reader_].ring();  // serve() may be asleep
  return {};
}

/// A server's threads encode, and serve the files of streams. A rank that serves itself does so inside its
/// own calls.
Status Session::make_executor() {
  executor::Threads::Limits limits;
  std::function<void()> wake;
  if (is_server()) {
    limits = {encoder_threads(world_rank_), most_files_at_once};
    wake = [&bell = bells_->reader[reader_]] { bell.ring(); };
    if (make_threads_) {
      executor_ = make_threads_(limits.compute, std::move(wake));
      return {};
    }
  }
  Result<std::unique_ptr<executor::Threads>> made = executor::Threads::create(limits, std::move(wake));
  TR_TRY(made.status());
  executor_ = std::move(*made);
  return {};
}

/// Finds the lanes that this server reads: those of its node in place, and receivers of the lanes of ranks
/// without a server on their node.
Status Session::find_lanes(pipeline::Server::Setup& setup) {
  reader_ = 0;
  for (int s = 0; s < me_; ++s) reader_ += roster_.server_node[static_cast<std::size_t>(s)] == my_node();
  if (reader_ >= node::LaneHeader::most_readers) {
    return Status(Code::settings, cat("more than ", node::LaneHeader::most_readers, " servers on one node"));
  }
  const auto& computes = roster_.compute_transport;
  int node_rank = -1;
  for (std::size_t rank = 0; rank < facts_.size(); ++rank) {
    if (facts_[rank].node != my_node()) continue;
    ++node_rank;
    const auto found = std::find(computes.begin(), computes.end(), static_cast<int>(rank));
    if (found == computes.end()) continue;
    const auto c = static_cast<int>(found - computes.begin());
    std::byte* const place = lane_of(node_rank);
    TR_TRY(reinterpret_cast<const node::LaneHeader*>(place)->check(c));
    setup.lanes.emplace(c, std::make_unique<node::SharedLaneReader>(
                               reinterpret_cast<node::LaneHeader*>(place), place + sizeof(node::LaneHeader),
                               reader_, is_crowded() ? bells_ : nullptr));
  }
  for (int c = 0; c < roster_.computes(); ++c) {
    const auto i = static_cast<std::size_t>(c);
    if (roster_.shares_node[i] != 0 || roster_.home[i] != me_) continue;
    auto& lane = received_[c] = std::make_unique<node::PrivateLane>(quotas_.lane[i]);
    setup.receivers.emplace(c, std::make_unique<node::LaneReceiver>(*lane, *line_, computes[i]));
    setup.lanes.emplace(c, std::make_unique<node::SharedLaneReader>(lane->header(), lane->data(), 0));
  }
  return {};
}

int Session::ranks_on(int node) const {
  return static_cast<int>(
      std::count_if(facts_.begin(), facts_.end(), [&](const RankFacts& rank) { return rank.node == node; }));
}

int Session::ranks_of_a_core() const {
  const int cores = facts_[static_cast<std::size_t>(world_rank_)].node_cpus;
  return (ranks_on(my_node()) + cores - 1) / cores;
}

/// Returns the encoding threads of the server that has this rank in the world.
int Session::encoder_threads(int world_rank) const {
  if (settings_.threads > 0) return settings_.threads;
  const RankFacts& server = facts_[static_cast<std::size_t>(world_rank)];
  return spare_threads(server.node_cpus, ranks_on(server.node), servers_on(server.node), server.cpus);
}

void Session::print_plan() const {
  if (!logs(LogLevel::info)) return;
  const int threads = roster_.self_served ? 0 : encoder_threads(roster_.server_transport[0]);
  log(LogLevel::info, plan_text(roster_, threads));
  log(LogLevel::info, memory_text(roster_, quotas_, declared_, settings_));
  for (const SettingValue& value : settings_.values) {
    if (value.origin != "default")
      log(LogLevel::info, cat("plan: ", value.name, "=", value.value, " (", value.origin, ")"));
  }
}

RankCpus Session::cpus() const {
  RankCpus mine{world_rank_, is_server(), 1, own_cpus()};
  if (is_server()) mine.encoding = executor_->count();
  if (is_server()) mine.threads = 2 + mine.encoding;  // threads that wait for storage need little of a CPU
  return mine;
}

std::string Session::staging_for(Bytes needed, Bytes share) const {
  // Shares grow with the whole. A little more is needed, because each is rounded down.
  const double grown = static_cast<double>(declared_.staging) /
                       static_cast<double>(std::max<Bytes>(share, 1)) * static_cast<double>(needed) * 1.001;
  const Bytes whole = static_cast<Bytes>(grown / static_cast<double>(mebibyte)) + 1;
  return cat("TAILRACE_STAGING=", whole, "MiB or more (each node has ", size_text(declared_.staging),
             " now)");
}

Bytes Session::smallest_workspace() const {
  return *std::min_element(quotas_.workspace.begin(), quotas_.workspace.end());
}

void Session::progress() {
  if (outlet_) outlet_->announce();
  pump();
}

std::int64_t Session::publish(const std::function<bool()>& attempt) {
  board_.transport().let_others_run();
  if (attempt()) return 0;
  const std::int64_t begin = line_->now();
  comm::Doorbell* const bell = outlet_->space();
  wait(
      [&] {
        if (bell == nullptr) return attempt();
        const std::uint32_t ticket = bell->ticket();
        if (attempt()) {
          bell->cancel();
          return true;
        }
        board_.transport().park(*bell, ticket, std::chrono::milliseconds(1));
        return false;
      },
      "free staging memory (TAILRACE_STAGING): servers or storage are slower than the model's output");
  return line_->now() - begin;
}

void Session::serve() {
  const KeepServing guard;
  comm::GoingToSleep sleep;
  const bool others = roster_.servers() > 1 || !received_.empty();
  Parking parking({is_crowded(), others, settings_.progress_sleep_us});
  comm::Doorbell& bell = bells_->reader[reader_];
  std::int64_t last = line_->now();
  bool warned = false;
  while (!server_->is_over() || !board_.all_sent()) {
    board_.transport().let_others_run();
    using Next = comm::GoingToSleep::Next;
    switch (sleep.next()) {
      case Next::look:
      case Next::look_again: {
        std::optional<node::Haste> haste;
        if (parking.is_to_hurry(line_->now())) haste.emplace(*bells_);
        const bool moved = pump();
        if (moved) {
          last = line_->now();
          parking.moved(last);
          warned = false;
        }
        sleep.looked(moved, bell);
        break;
      }
      case Next::take_ticket:
        sleep.take_ticket(bell);
        break;
      case Next::park:
        board_.transport().park(bell, sleep.ticket(), parking.next());
        sleep.woke();
        break;
    }
    if (!warned && settings_.watchdog_seconds &&
        line_->now() - last > *settings_.watchdog_seconds * 1'000'000'000) {
      warned = true;
      const std::string missing = server_->waiting_for();
      if (!missing.empty()) log(LogLevel::warn, cat("server ", me_, " waits:", missing));
    }
  }
}

comm::Verdict Session::agree(comm::Vote vote) {
  // No fence may follow: fences to which no other rank comes would fill the lane.
  if (computes_->ended()) return computes_->ended_verdict();
  const std::string call = vote.call;
  const node::Descriptor fence = client_->fence();
  publish([&] { return outlet_->tell(fence, {}); });
  comm::Verdict verdict = verdict_of(client_->vote(std::move(vote)), call);
  if (verdict.status.is_ok() || verdict.ended) return verdict;
  const comm::Verdict steps = verdict_of(client_->vote_steps(), call);
  if (steps.ended) return steps;
  tell(client_->compare_steps(steps));
  return verdict;
}

void Session::tell(const std::vector<pipeline::Told>& all) {
  for (const pipeline::Told& told : all) {
    publish([&] { return outlet_->tell(told.descriptor, told.bytes); });
  }
}

bool Session::wait_for_step(const pipeline::StreamClient& stream, std::int64_t step, std::string_view call,
                            const std::function<bool()>& done, const std::string& what) {
  const comm::OrderedWait wait{{computes_->number(), comm::Entry::Kind::step, stream.id(),
                                static_cast<std::uint64_t>(std::max<std::int64_t>(step, 0))},
                               call,
                               computes_->agreements().neighbours()};
  bool is_done = false;
  board_.wait([&] { return (is_done = done()) || broken().has_value(); }, what, wait);
  return is_done;
}

void Session::settle(const Status& why) {
  comm::Line line(board_, comm::line_number::settlement, computes_->shared_members());
  line.name_ranks([](int rank) { return cat("compute rank ", rank); });
  const comm::Verdict verdict = line.agree(client_->settling_vote());
  tell({{client_->last_fence(verdict), {}}});
  tell(client_->settle(verdict, why));
}

Result<bool> Session::should_stop() {
  comm::Vote vote;
  vote.call = "tr_should_stop";
  vote.contribution = stops_->vote(me_);
  const comm::Verdict verdict = agree(std::move(vote));
  TR_TRY(verdict.status);
  return stops_->conclude(verdict.contributions, me_);
}

comm::Verdict Session::verdict_of(std::uint64_t agreement, const std::string& call) {
  return computes_->verdict_of(agreement, call, [&] { return client_->take(agreement); });
}

Status Session::meet_in_finalize() {
  Status first;
  for (;;) {
    const comm::Verdict verdict = agree({{}, "tr_finalize", {}});
    if (first.is_ok()) first = verdict.status;
    if (verdict.ended) settle(verdict.status);
    if (verdict.ended || verdict.status.is_ok()) return first;
  }
}

void Session::leave() {
  wait([&] { return outlet_->is_drained(); }, "the servers to take what was put");
  client_->tell_statistics(statistics_);
  const node::Descriptor farewell = pipeline::Client::farewell();
  publish([&] { return outlet_->tell(farewell, {}); });
  wait([&] { return board_.all_sent() && !outlet_->advance() && (!server_ || server_->is_over()); },
       "the end of the session");
}

}  // namespace tailrace::session
