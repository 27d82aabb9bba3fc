// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/bootstrap.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include "engine/session/affinity.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/collective/mpi_files.hpp"
#include "ground/comm/communicators.hpp"
#include "ground/comm/mpi_process.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/compat/environment.hpp"

namespace tailrace::session {

namespace {

/// Collective over `node`. Returns the number of CPUs on which any rank of the node may run, at least 1. The
/// batch system may give the job only a part of the node's CPUs, and the launcher each rank only a part of
/// the job's.
int cpus_of_node(MPI_Comm node) {
  cpu_set_t cpus = own_cpus();
  int unknown = CPU_COUNT(&cpus) == 0 ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &unknown, 1, MPI_INT, MPI_MAX, node);
  MPI_Allreduce(MPI_IN_PLACE, &cpus, sizeof cpus, MPI_BYTE, MPI_BOR, node);
  if (unknown == 0) return CPU_COUNT(&cpus);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

const std::string& counters_use = *new const std::string(
    "the counters of method=offset_sharing. If the MPI hangs there, take another method");
const std::string& exposed_use =
    *new const std::string("the memory of handoff=onesided. If the MPI hangs there, take another handoff");

/// Collective over `comm`. A failure is one on every rank: those that have a duplicate free it.
Status duplicate(MPI_Comm comm, MPI_Comm& made) {
  MPI_Errhandler usual = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(comm, &usual);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const bool is_there = MPI_Comm_dup(comm, &made) == MPI_SUCCESS;
  int all = is_there ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  MPI_Comm_set_errhandler(comm, usual);
  MPI_Errhandler_free(&usual);
  if (all != 0) return {};
  if (is_there) MPI_Comm_free(&made);
  made = MPI_COMM_NULL;
  return {Code::unsupported, "MPI_Comm_dup failed"};
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// Warns once of what in the environment the user probably meant otherwise.
void tell_doubts(const std::vector<std::string>& environment) {
  static std::once_flag once;
  std::call_once(once, [&] {
    for (const std::string& line : compat::near_misses(environment)) log(LogLevel::warn, line);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::string other = ranks == 1 ? compat::other_launcher(environment) : "";
    if (!other.empty()) log(LogLevel::warn, other);
  });
}

/// Returns the file name of the executable.
std::string program_name() {
  const std::filesystem::path link = "/proc/self/exe";
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink(link, unknown);
  return unknown ? link.filename() : program.filename();
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> Bootstrap::create(MPI_Comm world, const char* options) {
  std::unique_ptr<Bootstrap> bootstrap(new Bootstrap(world));
  TR_TRY(bootstrap->start(options));
  return bootstrap;
}

Bootstrap::Bootstrap(MPI_Comm world) : world_(world) { MPI_Comm_rank(world, &facts_.rank); }

Bootstrap::~Bootstrap() {
  if (!comm::mpi_is_running()) return;
  if (counting_ != MPI_COMM_NULL) MPI_Comm_free(&counting_);
  if (exposing_ != MPI_COMM_NULL) MPI_Comm_free(&exposing_);
  if (transport_) transport_->free();
  if (compute_ != MPI_COMM_NULL) MPI_Comm_free(&compute_);
  if (servers_ != MPI_COMM_NULL) MPI_Comm_free(&servers_);
}

void Bootstrap::meet_at_the_end() {
  transport_->meet_at_the_end();
  free_windows();
}

void Bootstrap::free_windows() {
  if (window_) {
    const comm::BlockingCall watched = watch("MPI_Win_free", counters_use);
    window_->free();
    window_.reset();
  }
  if (exposed_) {
    const comm::BlockingCall watched = watch("MPI_Win_free", exposed_use);
    exposed_->free();
    exposed_.reset();
  }
}

comm::BlockingCall Bootstrap::watch(const std::string& call, const std::string& use) const {
  return {cat("rank ", comm::rank_in(world_)), cat(call, ", with ", use), patience_};
}

Status Bootstrap::start(const char* options) {
  const Status read = read_settings(options);
  // Takes the stop signals before any rank waits for another: from here on they end neither compute ranks nor
  // servers.
  facts_.stops = std::make_unique<Stops>(facts_.settings);
  await_everybody();
  TR_TRY(same_everywhere(read));
  TR_TRY(same_everywhere(take_common_settings()));
  patience_ = {facts_.settings.watchdog_seconds, facts_.settings.timeout_seconds};
  facts_.ranks = gather_facts();
  Result<std::vector<char>> servers = select_servers(facts_.settings.servers, facts_.ranks);
  TR_TRY(same_everywhere(servers.status()));
  facts_.serves = std::move(*servers);
  const bool serves = facts_.serves[static_cast<std::size_t>(facts_.rank)] != 0;
  MPI_Comm_split(world_, serves ? 1 : 0, facts_.rank, serves ? &servers_ : &compute_);
  Result<std::unique_ptr<comm::MpiTransport>> transport = comm::MpiTransport::create(world_);
  TR_TRY(same_everywhere(transport.status()));
  transport_ = std::move(*transport);
  find_collective();
  find_counters();
  find_exposed();
  return {};
}

/// Collective. Servers that do nothing else make the window of their counters when the first stream needs it,
/// and wait for each other meanwhile. A rank that serves itself may wait for other ranks in the program's own
/// calls by then: such ranks make the window now, if the settings say that streams need it.
void Bootstrap::find_counters() {
  const auto serving = std::ranges::count(facts_.serves, 1);
  const bool is_self_served = serving == 0;
  if (serving == 1 || (servers_ == MPI_COMM_NULL && !is_self_served)) return;
  const auto set = std::ranges::find(facts_.settings.values, "method", &SettingValue::name);
  Status missing;
  if (!is_self_served) {
    missing = duplicate(servers_, counting_);
  } else if (set != facts_.settings.values.end() && set->value == "offset_sharing") {
    missing = duplicate(transport_->communicator(), counting_);
    if (missing.is_ok()) missing = make_window();
  } else {
    missing = Status(Code::unsupported,
                     "every rank serves itself, and tr_init makes one-sided counters for them if "
                     "TAILRACE_METHOD=offset_sharing is set");
  }
  facts_.make_counters = [this, missing](comm::Transport& transport,
                                         const auto&) -> Result<std::unique_ptr<comm::Counters>> {
    TR_TRY(missing);
    if (window_ == nullptr) TR_TRY(make_window());
    return std::unique_ptr<comm::Counters>(std::make_unique<comm::MpiCounters>(*window_, transport));
  };
}

/// Collective over the servers. Blocks until all of them have called it.
Status Bootstrap::make_window() {
  if (comm::rank_in(counting_) == 0)
    log(LogLevel::info, "servers make a window of MPI for counters, and test it (MPI_Win_allocate)");
  const comm::BlockingCall watched = watch("MPI_Win_allocate and the test of its window", counters_use);
  Result<std::unique_ptr<comm::CounterWindow>> made = comm::CounterWindow::create(counting_);
  TR_TRY(made.status());
  window_ = *std::move(made);
  return {};
}

/// All ranks of the session make the window together, when the first stream asks for it: the compute ranks in
/// tr_stream_create, the servers when they hear of that.
void Bootstrap::find_exposed() {
  facts_.make_exposed = [this](comm::Transport& transport, Bytes bytes, std::vector<int> from,
                               const auto&) -> Result<std::unique_ptr<comm::ExposedMemory>> {
    const bool gets = !from.empty();
    TR_TRY(expose(transport, {bytes, bytes > 0, std::move(from)}));
    std::unique_ptr<comm::RepeatedCall> watch;
    if (gets)
      watch = std::make_unique<comm::RepeatedCall>(cat("rank ", comm::rank_in(world_)),
                                                   cat("MPI_Get, from ", exposed_use), patience_);
    return std::unique_ptr<comm::ExposedMemory>(
        std::make_unique<comm::MpiExposed>(*exposed_, transport, std::move(watch)));
  };
}

Status Bootstrap::expose(comm::Transport& transport, const comm::ExposedWindow::Part& part) {
  if (comm::rank_in(world_) == 0)
    log(LogLevel::info, "ranks make a window of MPI for the servers, and test it (MPI_Win_allocate)");
  const comm::BlockingCall watched = watch("MPI_Win_allocate and the test of its window", exposed_use);
  Status status;
  transport.exclusively([&] {
    status = duplicate(transport_->communicator(), exposing_);
    if (!status.is_ok()) return;
    Result<std::unique_ptr<comm::ExposedWindow>> made = comm::ExposedWindow::create(exposing_, part);
    status = made.status();
    if (made.is_ok()) exposed_ = *std::move(made);
  });
  return status;
}

/// If each rank serves itself, its collective calls use the transport's communicator: the transport makes
/// such a call only when it meets at the end.
void Bootstrap::find_collective() {
  if (!comm::threads_may_call_mpi()) {
    facts_.collective.missing =
        "MPI was not initialised with MPI_THREAD_MULTIPLE: give it to MPI_Init_thread in place of MPI_Init";
    return;
  }
  const MPI_Comm comm = servers_ != MPI_COMM_NULL ? servers_ : transport_->communicator();
  facts_.collective.make = [comm](std::function<void()> wake) {
    return comm::MpiFiles::create(comm, std::move(wake));
  };
}

Status Bootstrap::read_settings(const char* options) {
  const std::vector<std::string> environment = compat::plain_environment();
  Result<Settings> settings =
      Settings::read(options == nullptr ? "" : options, compat::translated(environment));
  TR_TRY(compat::as_given(settings.status(), environment));
  facts_.settings = std::move(*settings);
  set_log_level(facts_.settings.log);
  if (facts_.rank == 0) tell_doubts(environment);
  return {};
}

/// Collective. Blocks until every rank has called tr_init.
void Bootstrap::await_everybody() const {
  comm::Switchboard board;
  board.watch().who = cat("rank ", facts_.rank);
  board.watch().warn_seconds = facts_.settings.watchdog_seconds;
  board.watch().give_up_seconds = facts_.settings.timeout_seconds;
  comm::await_everybody(
      board, world_,
      "the other ranks in tr_init, which every rank of its communicator calls: those that print no "
      "such line have not called it, or not again after tr_finalize");
}

/// Collective. Returns the `mine` of every rank, by rank.
std::vector<ByteVector> Bootstrap::gather(const ByteVector& mine) const {
  int size = 0;
  MPI_Comm_size(world_, &size);
  const auto length = static_cast<int>(mine.size());
  std::vector<int> lengths(static_cast<std::size_t>(size));
  MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, world_);
  std::vector<int> offsets;
  int total = 0;
  for (const int each : lengths) {
    offsets.push_back(total);
    total += each;
  }
  ByteVector all(static_cast<std::size_t>(total));
  MPI_Allgatherv(mine.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(), MPI_BYTE, world_);
  std::vector<ByteVector> parts;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto begin = all.begin() + offsets[i];
    parts.emplace_back(begin, begin + lengths[i]);
  }
  return parts;
}

/// Collective. Returns the first failing rank's status on all ranks. Ranks use it while they have no line
/// yet.
Status Bootstrap::same_everywhere(const Status& mine) const {
  Packer packer;
  mine.pack(packer);
  for (const ByteVector& each : gather(packer.bytes())) {
    Unpacker in(each);
    Status status = Status::unpack(in);
    if (!status.is_ok()) return status;
  }
  return {};
}

/// Collective. Each rank has an environment of its own, and not every launcher passes it on to other nodes.
/// Rank 0's counts for settings that must be the same on all ranks.
Status Bootstrap::take_common_settings() {
  Status taken;
  for (const SettingValue& each : facts_.settings.common()) {
    const std::vector<ByteVector> told = gather(Packer().put_text(each.value).put_text(each.origin).bytes());
    Unpacker first(told.front());
    const std::string value = first.get_text();
    const std::string origin = first.get_text();
    for (std::size_t rank = 1; rank < told.size() && facts_.rank == 0; ++rank) {
      const std::string other = Unpacker(told[rank]).get_text();
      if (other == value) continue;
      log(LogLevel::warn, cat(environment_name(each.name), " is ", value, " on rank 0 and ", other,
                              " on rank ", rank, ": rank 0's counts on all ranks"));
      break;
    }
    const Status status = facts_.settings.take({each.name, value, origin});
    if (taken.is_ok()) taken = status;
  }
  return taken;
}

/// Collective. Returns the facts about each rank, by rank.
std::vector<RankFacts> Bootstrap::gather_facts() const {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, facts_.rank, MPI_INFO_NULL, &node);
  int leader = facts_.rank;
  MPI_Bcast(&leader, 1, MPI_INT, 0, node);
  const cpu_set_t cpus = own_cpus();
  Packer mine;
  mine.put(leader).put_text(host_name()).put_text(program_name());
  mine.put(static_cast<int>(CPU_COUNT(&cpus))).put(cpus_of_node(node));
  MPI_Comm_free(&node);
  std::vector<RankFacts> facts;
  for (const ByteVector& each : gather(mine.bytes())) {
    Unpacker in(each);
    RankFacts& rank = facts.emplace_back();
    rank.node = in.get<int>();
    rank.host = in.get_text();
    rank.program = in.get_text();
    rank.cpus = in.get<int>();
    rank.node_cpus = in.get<int>();
  }
  return facts;
}

}  // namespace tailrace::session
