// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/session.hpp"

#include <ctime>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/session/affinity.hpp"
#include "engine/session/reports/reporter.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/log.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"
#include "ground/comm/end_job.hpp"

namespace tailrace::session {

namespace {

/// Removes "rank=N" from a fault plan like "rank=2 nth=3". Returns N, the rank of the world on which calls
/// fail, or -1 for all ranks. The rest of the text is the storage's plan.
Result<int> take_fault_rank(std::string& plan) {
  std::string rest;
  int rank = -1;
  for (const std::string& word : split(plan, ' ')) {
    if (!word.starts_with("rank=")) {
      rest += cat(rest.empty() ? "" : " ", word);
      continue;
    }
    const Result<std::int64_t> number = parse_integer(word.substr(5), 0, std::numeric_limits<int>::max());
    if (!number.is_ok()) {
      return Status(Code::settings,
                    cat("fault=\"", plan, "\": ", word, " names no rank; ranks are counted from 0"));
    }
    rank = static_cast<int>(*number);
  }
  plan = rest;
  return rank;
}

}  // namespace

Storage::~Storage() {
  if (!faulty_) return;
  log(LogLevel::warn, cat("TAILRACE_FAULT: rank ", world_rank_, " made ", faulty_->calls(),
                          " such storage calls; ", faulty_->fired() ? "it struck" : "it struck none"));
}

Status Storage::open(const Settings& settings, std::shared_ptr<storage::Target> given, int world_rank) {
  target_ = std::move(given);
  world_rank_ = world_rank;
  if (target_ == nullptr) {
    Result<std::shared_ptr<storage::Target>> target = storage::make_target_of_program(settings.target);
    TR_TRY(target.status());
    target_ = *target;
  }
  if (!settings.throttle.empty()) {
    Result<storage::Throttle> throttle = storage::parse_throttle(settings.throttle);
    TR_TRY(throttle.status());
    target_ = storage::throttled_target(target_, *throttle);
  }
  if (!settings.fault.empty()) {
    std::string text = settings.fault;
    const Result<int> rank = take_fault_rank(text);
    TR_TRY(rank.status());
    const Result<storage::FaultPlan> plan = storage::parse_fault(text);
    TR_TRY(plan.status());
    if (*rank < 0 || *rank == world_rank) target_ = faulty_ = storage::faulty_target(target_, *plan);
  }
  of_streams_ = stores::with_stores(target_);
  return {};
}

Result<std::unique_ptr<Session>> Session::create(comm::Transport& transport, Facts facts,
                                                 LedgerFactory make_ledger) {
  std::unique_ptr<Session> session(new Session());
  TR_TRY(session->start(transport, std::move(facts), std::move(make_ledger)));
  return session;
}

/// A program that exits without tr_finalize destroys the session of a compute rank. Server 0 hears nothing of
/// it.
Session::~Session() {
  comm::before_job_ends(this, nullptr);
  if (settings_.report.empty() || !is_running_ || is_server() || computing_->has_left()) return;
  mark_failed(settings_.report, id_, "the session ended without tr_finalize");
}

pipeline::Process Session::spent() {
  pipeline::Process process;
  process.spent = board_.account().spent();
  process.elapsed = board_.account().elapsed();
  if (serving_) serving_->count_threads(process);
  return process;
}

Status Session::start(comm::Transport& transport, Facts facts, LedgerFactory make_ledger) {
  settings_ = std::move(facts.settings);
  stops_ = std::move(facts.stops);
  fix_places(settings_);
  topology_.emplace(facts.rank, std::move(facts.ranks), facts.serves);
  if (is_server())
    stops_->ignore_signals();
  else if (rank() == 0)
    stops_->tell_left_alone();
  collective_ = std::move(facts.collective);
  make_counters_ = std::move(facts.make_counters);
  make_exposed_ = std::move(facts.make_exposed);
  open_lines(transport);
  TR_TRY(open_storage(std::move(facts.storage)));
  if (!settings_.report.empty()) {
    comm::before_job_ends(
        this, [path = settings_.report, id = id_](std::string_view why) { mark_failed(path, id, why); });
  }
  TR_TRY(memory_->declare(settings_, facts.keeps_steps));
  if (topology_->world_rank() == 0) print_plan();
  TR_TRY(memory_->share());
  if (computing_) computing_->open_lane();
  // No server may look at a lane before the rank that writes into it has made its header.
  if (!topology_->roster().self_served) TR_TRY(node_line_->agree({{}, init_call, {}}).status);
  TR_TRY(same_everywhere(make_threads(std::move(facts.make_executor), std::move(make_ledger))));
  print_node_plan();
  // The account begins anew: until now ranks have waited for those that the launcher started last.
  board_.account().begin(board_.account().current());
  is_running_ = true;
  if (is_server() || topology_->roster().self_served) return {};
  // By now each server takes these signs.
  if (const std::int64_t period = sign_period(settings_); period > 0) {
    computing_->begin_signs(period);
    is_watched_ = true;
  }
  return {};
}

Status Session::watch_calls() {
  if (!settings_.check_world || is_server() || topology_->roster().self_served) return {};
  Result<std::unique_ptr<comm::CallWatch>> made = comm::CallWatch::create(
      settings_.watchdog_seconds.value_or(60) * 1'000'000'000, [rank = rank()](const std::string& what) {
        log(LogLevel::warn, cat("compute rank ", rank, " ", what));
      });
  TR_TRY(made.status());
  call_watch_ = std::move(*made);
  return {};
}

/// Returns nanoseconds, in steps of a few milliseconds. This clock costs a fraction of the transport's clock,
/// and agrees with it.
std::int64_t Session::coarse_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Collective. In the same vote the servers tell which encoders they have, and whether they have collective
/// files, and the first rank tells the name of the session.
Status Session::open_storage(std::shared_ptr<storage::Target> given) {
  const bool has_servers = !topology_->roster().self_served;
  const Status mine = storage_.open(settings_, std::move(given), topology_->world_rank());
  Packer told;
  const ByteVector own_encoders = is_server() ? encoders::OfServers::told() : ByteVector();
  const bool names = line_->rank() == 0;
  if (names || (is_server() && !(own_encoders.empty() && collective_.missing.empty())))
    told.put_bytes(own_encoders).put_text(is_server() ? collective_.missing : std::string());
  if (names) told.put_text(Uuid::random().text());
  const comm::Verdict verdict = line_->agree({mine, init_call, told.take()});
  TR_TRY(verdict.status);
  Unpacker first(verdict.contributions.front());
  first.get_bytes();
  first.get_text();
  id_ = first.get_text();
  if (has_servers) take_told(verdict.contributions);
  return {};
}

void Session::take_told(const std::vector<ByteVector>& told) {
  std::vector<ByteVector> encoders(told.size());
  collective_.missing.clear();
  for (const int rank : topology_->roster().server_transport) {
    const auto i = static_cast<std::size_t>(rank);
    Unpacker in(told[i]);
    const auto bytes = in.get_bytes();
    encoders[i].assign(bytes.begin(), bytes.end());
    const std::string missing = in.get_text();
    if (collective_.missing.empty()) collective_.missing = missing;
  }
  encoders_.take(encoders, topology_->roster().server_transport);
}

Status Session::check_collective(const std::string& path) {
  if (!collective_.missing.empty()) return {Code::unsupported, collective_.missing};
  if (!stores::is_store(path) && (!collective_.needs_files_of_system || streams_target().system_name(path)))
    return {};
  return {Code::unsupported, cat(path,
                                 " is no file of the operating system, as which MPI could open it: a store "
                                 "of objects, or storage of this library alone (TAILRACE_TARGET)")};
}

Status Session::try_appends(const std::string& path) {
  computing_->begin_trial(path);
  wait([&] { return computing_->trial().has_value(); },
       "the servers, which try to append to a file together");
  return *computing_->trial();
}

Status Session::same_everywhere(const Status& mine) { return line_->agree({mine, init_call, {}}).status; }

void Session::open_lines(comm::Transport& transport) {
  namespace number = comm::line_number;
  board_.connect(transport);
  board_.account().begin(is_server() ? comm::Routine::message : comm::Routine::model);
  board_.watch().who = cat(is_server() ? "server " : "compute rank ", rank());
  board_.watch().warn_seconds = settings_.watchdog_seconds;
  board_.watch().give_up_seconds = settings_.timeout_seconds;
  board_.watch().has_own_core = !topology_->is_crowded();
  board_.watch().before_each_look = [this] {
    if (!computing_) return;
    computing_->announce();
    computing_->note_call(board_.transport().now());
    if (call_watch_) call_watch_->note_call();
  };
  board_.watch().missing = [this] { return serving_ ? serving_->waiting_for() : std::string(); };
  std::vector<int> all(static_cast<std::size_t>(topology_->world_size()));
  std::iota(all.begin(), all.end(), 0);
  line_ = std::make_unique<comm::Line>(board_, number::session, std::make_shared<comm::Members>(all));
  const std::vector<int> node = topology_->ranks_of_node();
  node_line_ = std::make_unique<comm::Line>(board_, number::session | number::node_bit,
                                            std::make_shared<comm::Members>(node));
  node_line_->name_ranks([node](int rank) { return cat("rank ", node[static_cast<std::size_t>(rank)]); });
  board_.add_work([this] {
    const bool moved = computing_ && computing_->advance();
    return (serving_ && serving_->advance()) || moved;
  });
  memory_ = std::make_unique<Memory>(*topology_, *line_, *node_line_);
  if (!is_server() && !topology_->roster().self_served) giver_ = std::make_unique<node::MemoryGiver>(*line_);
  if (!is_server()) computing_ = std::make_unique<Computing>(*this);
}

Status Session::make_threads(decltype(Facts::make_executor) make_executor, LedgerFactory make_ledger) {
  statistics_.tracing = !settings_.trace.empty();
  if (!is_server()) {
    Result<std::unique_ptr<executor::Threads>> threads = executor::Threads::create({0, settings_.io_threads});
    TR_TRY(threads.status());
    threads_ = std::move(*threads);
    if (giver_ != nullptr && memory_->bells() != nullptr) giver_->ring_by(&memory_->bells()->reader[0]);
  }
  if (!is_server() && !topology_->roster().self_served) return watch_calls();
  TR_TRY(memory_->take_staging_without_ranks());
  // The first server writes the report and the trace when everything is done: too late to learn that it
  // cannot.
  if (rank() == 0) TR_TRY(check_report(settings_));
  serving_ = std::make_unique<Serving>(*this, storage_.of_streams(), std::move(make_ledger),
                                       std::move(make_executor), collective_.make, make_counters_);
  return serving_->start(false);
}

void Session::print_plan() const {
  if (!logs(LogLevel::info)) return;
  const exchange::Roster& roster = topology_->roster();
  const int threads =
      roster.self_served ? 0 : topology_->encoder_threads(settings_, roster.server_transport[0]);
  log(LogLevel::info, plan_text(roster, threads));
  log(LogLevel::info, memory_text(roster, memory_->quotas(), memory_->declared(), settings_));
  for (const SettingValue& value : settings_.values) {
    if (value.origin != "default")
      log(LogLevel::info, cat("plan: ", value.name, "=", value.value, " (", value.origin, ")"));
  }
}

/// Collective over the ranks of a node. Its first rank prints where they run.
void Session::print_node_plan() {
  RankCpus mine{topology_->world_rank(), is_server(), 1, own_cpus()};
  if (is_server()) mine.encoding = serving_->encoding_threads();
  if (is_server()) mine.threads = 2 + mine.encoding;  // threads that wait for storage need little of a CPU
  const comm::Verdict verdict = node_line_->agree({{}, init_call, Packer().put(mine).take()});
  if (node_line_->rank() != 0 || !logs(LogLevel::info)) return;
  std::vector<RankCpus> places;
  for (const ByteVector& each : verdict.contributions) places.push_back(Unpacker(each).get<RankCpus>());
  log(LogLevel::info, affinity_text(topology_->host(), places));
}

void Session::progress() {
  if (computing_) computing_->announce();
  board_.pump();
}

}  // namespace tailrace::session
