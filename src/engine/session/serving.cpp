// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/serving.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "engine/session/session.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"

namespace tailrace::session {

namespace {

/// This many files of a server may hang (in a hook, on a full disk, on storage that does not answer) before
/// other files wait for them. A thread that waits costs its stack.
constexpr int most_files_at_once = 64;

/// Ignores SIGTERM as long as it lives. SIGTERM goes to every process of a job, and a server must outlive it
/// until the compute ranks have left, and drain what they put.
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

/// `seconds` is how long no compute rank has made a call.
std::string silence_text(std::int64_t seconds) {
  return cat("no compute rank has called the library for ", seconds,
             " s. That is right if the model computes so long between two calls (tr_progress says that it "
             "goes on). If the model hangs, it most often waits for the servers in a call of MPI with "
             "MPI_COMM_WORLD: give that call the communicator that tr_init has returned. "
             "TAILRACE_CHECK_WORLD=on prints the call");
}

}  // namespace

std::int64_t sign_period(const Settings& settings) {
  constexpr std::int64_t quarter_second = 250'000'000;
  const std::optional<std::int64_t>& warns = settings.watchdog_seconds;
  const std::optional<std::int64_t>& gives_up = settings.timeout_seconds;
  if (warns && gives_up) return std::min(*warns, *gives_up) * quarter_second;
  return warns.value_or(gives_up.value_or(0)) * quarter_second;
}

Serving::Serving(Session& session, std::shared_ptr<storage::Target> target, LedgerFactory make_ledger,
                 decltype(Facts::make_executor) make_executor,
                 decltype(Facts::Collective::make) make_collective,
                 decltype(Facts::make_counters) make_counters)
    : session_(session),
      target_(std::move(target)),
      make_ledger_(std::move(make_ledger)),
      make_threads_(std::move(make_executor)),
      make_collective_(std::move(make_collective)),
      make_counters_(std::move(make_counters)),
      bells_(session.memory().bells()),
      sign_period_(sign_period(session.settings())) {
  make_reporter();
  if (!session.is_server()) return;
  taker_ = std::make_unique<node::MemoryTaker>(session.line());
  session.line().on(static_cast<std::uint32_t>(pipeline::Message::alive),
                    [this](int, Unpacker&) { sign_came_ = true; });
}

Status Serving::start(bool takes_over) {
  const Topology& topology = session_.topology();
  files_ = std::make_unique<pipeline::OpenFiles>(target_);
  pipeline::Server::Setup setup;
  setup.me = topology.me();
  setup.takes_over = takes_over;
  setup.workspace = session_.memory().quotas().workspace[static_cast<std::size_t>(setup.me)];
  setup.make_ledger = [this](const pipeline::Opening& opening, const codec::Codec& codec) {
    return make_ledger_(opening, codec, target_);
  };
  setup.give_up = [](const Status& why) {
    comm::end_job(
        cat(why.text(),
            ". If memory is short on its node, set TAILRACE_STAGING lower or start fewer ranks there."));
  };
  const auto wake = [this]() -> std::function<void()> {
    if (!session_.is_server()) return {};
    return [&bell = bell()] { bell.ring(); };
  };
  setup.make_collective = [this, wake] { return make_collective_(wake()); };
  setup.make_counters = [this, wake] { return make_counters_(session_.board().transport(), wake()); };
  setup.make_lanes = [this](node::LaneKind kind) { return make_lanes(kind); };
  report(setup);
  setup.staging_for = [&memory = session_.memory()](Bytes needed, Bytes share) {
    return memory.staging_for(needed, share);
  };
  if (topology.roster().self_served) {
    setup.lanes.emplace(setup.me, std::make_unique<pipeline::LentLaneReader>(session_.computing().lent()));
  } else {
    setup.quotas = session_.memory().quotas().lane;
    TR_TRY(find_lanes(setup));
    if (bells_ == nullptr) bells_ = &own_bells_;
  }
  TR_TRY(make_executor());
  server_ = std::make_unique<pipeline::Server>(session_.line(), topology.roster(), *executor_, *files_,
                                               session_.statistics(), std::move(setup));
  return {};
}

/// Server 0 writes the report, or compute rank 0 if ranks serve themselves.
void Serving::make_reporter() {
  const Topology& topology = session_.topology();
  if (topology.me() != 0) return;
  ReportFacts facts;
  facts.roster = topology.roster();
  for (int rank = 0; rank < topology.world_size(); ++rank) facts.nodes.push_back(topology.node_of(rank));
  facts.session = session_.id();
  facts.staging = session_.memory().declared().staging;
  facts.begun =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  reporter_ =
      std::make_unique<Reporter>(session_.settings(), std::move(facts),
                                 [this](std::function<void()> job) { submit_report(std::move(job)); });
}

void Serving::report(pipeline::Server::Setup& setup) {
  setup.reporting = !session_.settings().report.empty();
  setup.process = [this] { return session_.spent(); };
  if (!reporter_) return;
  if (setup.reporting)
    setup.on_figures = [this](pipeline::Figures all) { reporter_->on_figures(std::move(all)); };
  setup.wants_figures = [this] { return reporter_->wants_figures(); };
  setup.on_statistics = [this](const std::map<int, pipeline::Statistics>& all) { reporter_->on_end(all); };
}

/// The report lies where the program says. If its storage is slow, that holds up no thread that moves data.
/// The thread that writes it does not count among those of the server.
void Serving::submit_report(std::function<void()> job) {
  if (!session_.is_server() || !make_threads_) {
    if (session_.is_server() && !own_threads_) own_threads_ = *executor::Threads::create({0, 1});
    executor::Threads& threads = session_.is_server() ? *own_threads_ : session_.threads();
    if (!report_key_) report_key_ = threads.new_own_key();
    return threads.submit(*report_key_, std::move(job));
  }
  executor_->wait_uncounted(executor::key_of(session_.settings().report),
                            [job = std::move(job)](int) -> Status {
                              job();
                              return {};
                            });
}

void Serving::count_threads(pipeline::Process& process) const {
  if (!server_) return;
  process.makes_calls = server_->has_calling_thread() ? 1 : 0;
  if (!session_.is_server()) return;
  process.encoders = executor_->count();
  process.threads = executor_->threads();
}

/// Returns what the server waits for if nothing moves.
comm::Routine Serving::why_parked() const {
  if (executor_->computing() > 0) return comm::Routine::wait_for_encoding;
  if (executor_->waiting() > 0 || server_->is_in_collective_call()) return comm::Routine::wait_for_storage;
  return server_->waits_for_servers() ? comm::Routine::wait_for_messages : comm::Routine::idle;
}

Status Serving::replace() {
  server_.reset();
  executor_.reset();
  while (session_.board().pump()) continue;  // what the server before has sent to itself
  TR_TRY(start(true));
  bell().ring();  // run() may be asleep
  return {};
}

/// Makes the executor. A server's threads encode, and work on the files of streams. A rank that serves itself
/// does both inside its own calls.
Status Serving::make_executor() {
  const Topology& topology = session_.topology();
  executor::Threads::Limits limits;
  std::function<void()> wake;
  if (topology.is_server()) {
    limits = {topology.encoder_threads(session_.settings(), topology.world_rank()), most_files_at_once};
    wake = [&bell = bell()] { bell.ring(); };
    if (make_threads_) {
      executor_ = std::make_unique<CountingExecutor>(make_threads_(limits.compute, std::move(wake)), nullptr);
      return {};
    }
  }
  Result<std::unique_ptr<executor::Threads>> made = executor::Threads::create(limits, std::move(wake));
  TR_TRY(made.status());
  comm::Account* const own = topology.is_server() ? nullptr : &session_.board().account();
  executor_ = std::make_unique<CountingExecutor>(std::move(*made), own);
  return {};
}

/// Finds the lanes that this server reads: those of its node in place, and receivers of the lanes of ranks
/// without a server on their node.
Status Serving::find_lanes(pipeline::Server::Setup& setup) {
  const Topology& topology = session_.topology();
  const exchange::Roster& roster = topology.roster();
  reader_ = topology.server_of_node();
  if (reader_ >= node::LaneHeader::most_readers) {
    return Status(Code::settings, cat("more than ", node::LaneHeader::most_readers, " servers on one node"));
  }
  int node_rank = -1;
  for (const int rank : topology.ranks_of_node()) {
    ++node_rank;
    const std::optional<int> c = topology.compute_rank(rank);
    if (!c) continue;
    std::byte* const place = session_.memory().lane_of(node_rank);
    TR_TRY(reinterpret_cast<const node::LaneHeader*>(place)->check(*c));
    setup.lanes.emplace(*c, std::make_unique<node::SharedLaneReader>(
                                reinterpret_cast<node::LaneHeader*>(place), place + sizeof(node::LaneHeader),
                                reader_, topology.is_crowded() ? bells_ : nullptr));
  }
  for (int c = 0; c < roster.computes(); ++c) {
    const auto i = static_cast<std::size_t>(c);
    if (roster.shares_node[i] != 0 || roster.home[i] != topology.me()) continue;
    auto lane = lane_of_rank(c, node::LaneKind::usual);
    setup.receivers[node::LaneKind::usual].emplace(c, std::move(lane.receiver));
    setup.lanes.emplace(c, std::move(lane.reader));
  }
  return {};
}

/// Makes the server's end of a lane that it does not map.
pipeline::Server::Setup::MoreLane Serving::lane_of_rank(int c, node::LaneKind kind) {
  const auto i = static_cast<std::size_t>(c);
  auto& lane = received_[{kind, c}] = std::make_unique<node::PrivateLane>(session_.memory().quotas().lane[i]);
  return {std::make_unique<node::SharedLaneReader>(lane->header(), lane->data(), 0, nullptr, true),
          std::make_unique<node::LaneReceiver>(*lane, session_.line(),
                                               session_.topology().roster().compute_transport[i], kind,
                                               kind == node::LaneKind::onesided ? exposed_.get() : nullptr)};
}

/// Compute ranks have voted on the memory of their nodes. That of a node without compute ranks is drawn here.
Result<std::map<int, pipeline::Server::Setup::MoreLane>> Serving::make_lanes(node::LaneKind kind) {
  return guarded([&]() -> Result<std::map<int, pipeline::Server::Setup::MoreLane>> {
    std::map<int, pipeline::Server::Setup::MoreLane> lanes;
    const std::vector<int> homed = session_.topology().roster().homed(session_.topology().me());
    if (kind == node::LaneKind::onesided) {
      std::vector<int> from;
      for (const int c : homed)
        from.push_back(session_.topology().roster().compute_transport[static_cast<std::size_t>(c)]);
      auto made = session_.make_exposed(0, std::move(from), [&bell = bell()] { bell.ring(); });
      if (!made.is_ok()) return lanes;  // the compute ranks know it, too
      exposed_ = *std::move(made);
    }
    if (!more_lanes_) more_lanes_.emplace(session_.memory().budget(), node::Use::staging);
    TR_TRY(more_lanes_->take(session_.memory().share_of_more_lanes()));
    for (const int c : homed) lanes.emplace(c, lane_of_rank(c, kind));
    return lanes;
  });
}

void Serving::run() {
  const KeepServing guard;
  comm::Switchboard& board = session_.board();
  const bool others = session_.topology().roster().servers() > 1 || !received_.empty();
  Parking parking({session_.topology().is_crowded(), others});
  const auto now = [this] { return session_.line().now(); };
  comm::Account& account = session_.board().account();
  std::int64_t last = account.turn_to(comm::Routine::message);
  heard_ = last;
  const auto is_done = [&] { return is_over() && board.all_sent(); };
  const auto look = [&] {
    board.transport().let_others_run();
    std::optional<node::Haste> haste;
    if (parking.is_to_hurry(now())) haste.emplace(*bells_);
    sign_came_ = false;
    if (!board.pump()) return false;
    note_sign(now());
    // Ranks that wait send signs, too. If there was nothing but signs, the server still waits with them.
    if (sign_came_) return true;
    last = now();
    parking.moved(last);
    warned_ = false;
    return true;
  };
  while (!is_done()) {
    if (look() || is_done()) continue;
    if (!received_.empty()) parking.hear_messages();
    board.transport().let_others_run();
    const std::uint32_t ticket = bell().ticket();
    if (look() || is_done()) {
      bell().cancel();
      continue;
    }
    board.transport().let_others_run();
    account.turn_to(why_parked());
    board.transport().park(bell(), ticket, std::min(parking.next(), most_park_()));
    const std::int64_t woken = account.turn_to(comm::Routine::message);
    warn_of_waiting(last);
    look_for_silence(woken);
  }
}

/// Notes that compute ranks call the library: whatever moves on a server goes back to their calls. Other
/// servers tell server 0, once in each period.
void Serving::note_sign(std::int64_t now) {
  heard_ = now;
  if (session_.topology().me() == 0 || sign_period_ == 0 || now < next_sign_) return;
  next_sign_ = now + sign_period_;
  session_.line().send(session_.topology().roster().server_transport[0],
                       Packer().put(pipeline::Message::alive).take());
}

/// On server 0: warns, or ends the job, if no compute rank has called the library for too long. A model that
/// hangs in a call of MPI is in no call of the library that could notice. Server 0 hears of a call on any
/// rank through up to two signs, each up to a period late.
void Serving::look_for_silence(std::int64_t now) {
  if (session_.topology().me() != 0 || sign_period_ == 0) return;
  const std::int64_t silent = (now - heard_ - 2 * sign_period_) / 1'000'000'000;
  const auto reached = [&](const std::optional<std::int64_t>& seconds) {
    return seconds && silent >= *seconds;
  };
  if (reached(session_.settings().timeout_seconds))
    comm::end_job(cat("server 0 gives up (TAILRACE_TIMEOUT): ", silence_text(silent)));
  if (told_silence_ || !reached(session_.settings().watchdog_seconds)) return;
  told_silence_ = true;
  log(LogLevel::warn, cat("server 0: ", silence_text(silent)));
}

void Serving::warn_of_waiting(std::int64_t since) {
  const auto& patience = session_.settings().watchdog_seconds;
  if (warned_ || !patience || session_.line().now() - since <= *patience * 1'000'000'000) return;
  warned_ = true;
  const std::string missing = waiting_for();
  if (!missing.empty()) log(LogLevel::warn, cat("server ", session_.topology().me(), " waits:", missing));
}

}  // namespace tailrace::session
