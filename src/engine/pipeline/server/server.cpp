// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/server.hpp"

#include <algorithm>
#include <limits>

#include "engine/pipeline/sequence.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/counters/message_counters.hpp"

namespace tailrace::pipeline {

using node::Descriptor;

Server::Server(comm::Line& line, const exchange::Roster& roster, executor::Executor& executor,
               OpenFiles& files, Statistics& statistics, Setup setup)
    : roster_(roster),
      setup_(std::move(setup)),
      context_{line, roster_,          setup_.me, executor,   files,
               {},   setup_.workspace, 0,         statistics, std::move(setup_.make_ledger)},
      definitions_(
          context_, [this](Opening opening) { open(std::move(opening)); },
          [this](const Status& why) { give_up(why); }),
      homed_(static_cast<int>(roster_.homed(context_.me).size())),
      homes_(context_.homes()) {
  context_.quotas = std::move(setup_.quotas);
  context_.staging_for = std::move(setup_.staging_for);
  context_.make_offsets = [this] { make_counters(); };
  for (auto& [c, reader] : setup_.lanes) {
    const LaneCursor& lane = context_.lanes.emplace(c, LaneCursor(std::move(reader))).first->second;
    if (const std::int64_t passed = lane.reader().position().fences; passed > 0)
      fences_[node::LaneKind::usual][c] = passed;
  }
  for (const auto& [c, receiver] : setup_.receivers[node::LaneKind::usual]) senders_[c] = receiver->rank();
  if (roster_.servers() > 1) context_.line.keep_memory(context_.workspace / 8);
  take_messages();
  if (!setup_.takes_over) return;
  const Status taken = guarded([this] { return take_over(); });
  if (!taken.is_ok()) setup_.give_up(taken.in(cat("server ", context_.me, " cannot take the lanes over")));
}

/// Has the line drop messages that come later.
Server::~Server() {
  context_.line.keep_memory(0);
  for (const Message kind : context_.taken)
    context_.line.on(static_cast<std::uint32_t>(kind), [](int, Unpacker&) {});
}

/// Reads the definitions of all streams that are not over from the lanes, as if the ranks told them now.
Status Server::take_over() {
  for (const auto& [c, lane] : context_.lanes) {
    node::KeptDefinitions* const kept = lane.reader().kept();
    if (kept == nullptr || lane.reader().lacks_something()) {
      return {Code::unsupported, cat("the staging memory of compute rank ", c,
                                     " has no room for a whole step, or for all definitions; set "
                                     "TAILRACE_STAGING higher")};
    }
    if (c == 0) newest_stream_ = kept->newest_stream();
    for (const node::KeptDefinition& each : kept->all()) {
      kept_through_[c] = each.number;
      if (c == 0) decided_[each.stream] = kept->progress(each.stream)->decided;
      definitions_.on_entry(c, {.kind = Descriptor::Kind::define, .stream = each.stream, .level = each.level},
                            each.bytes);
    }
  }
  return {};
}

/// True if the descriptor is left in its lane from a step that has its verdict, or from a stream that is
/// over.
bool Server::is_over(const Descriptor& descriptor) const {
  if (descriptor.stream > newest_stream_) return false;
  const auto decided = decided_.find(descriptor.stream);
  if (decided == decided_.end()) return true;
  return descriptor.kind != Descriptor::Kind::close && descriptor.step < decided->second;
}

void Server::take_messages() {
  const auto on_stream = [this](Message kind, void (*take)(Stream&, int source, Unpacker&)) {
    context_.on(kind, [this, take](int source, Unpacker& in) {
      const auto found = streams_.find(in.get<std::uint32_t>());
      if (found != streams_.end()) take(found->second, source, in);
    });
  };
  on_stream(Message::ended, [](Stream& to, int source, Unpacker& in) { to.root->on_ended(source, in); });
  on_stream(Message::encoded, [](Stream& to, int, Unpacker& in) { to.root->on_encoded(in); });
  on_stream(Message::written, [](Stream& to, int, Unpacker& in) { to.root->on_written(in); });
  on_stream(Message::taken, [](Stream& to, int, Unpacker& in) { to.root->on_taken(in); });
  on_stream(Message::begun, [](Stream& to, int, Unpacker& in) { to.server->on_begun(in); });
  on_stream(Message::synced, [](Stream& to, int, Unpacker& in) { to.root->on_synced(in); });
  on_stream(Message::closed, [](Stream& to, int, Unpacker&) { to.root->on_closed(); });
  on_stream(Message::place, [](Stream& to, int, Unpacker& in) { to.server->on_place(in); });
  on_stream(Message::sync, [](Stream& to, int, Unpacker& in) { to.server->on_sync(in); });
  on_stream(Message::call, [](Stream& to, int, Unpacker& in) { to.server->collective().on_call(in); });
  on_stream(Message::call_over, [](Stream& to, int, Unpacker& in) { to.server->collective().on_over(in); });
  on_stream(Message::called, [](Stream& to, int source, Unpacker& in) { to.root->on_called(source, in); });
  context_.on(Message::wants_turn, [this](int, Unpacker& in) {
    const auto stream = in.get<std::uint32_t>();
    context_.send_to_servers(Packer().put(Message::turn).put(stream).put(in.get<std::int64_t>()));
  });
  context_.on(Message::turn, [this](int, Unpacker& in) {
    const auto stream = in.get<std::uint32_t>();
    turns_.emplace_back(stream, in.get<std::int64_t>());
  });
  context_.on(Message::wants_trial, [this](int source, Unpacker& in) {
    context_.send_to_servers(Packer().put(Message::trial).put_text(in.get_text()).put(source));
  });
  context_.on(Message::trial, [this](int, Unpacker& in) {
    std::string path = in.get_text();
    trials_[++newest_trial_] = {std::move(path), in.get<int>()};
    turns_.emplace_back(0, newest_trial_);
  });
  const auto on = [this](Message kind, void (Server::*take)(Unpacker&)) {
    context_.on(kind, [this, take](int, Unpacker& in) { (this->*take)(in); });
  };
  on(Message::opened, &Server::on_opened);
  on(Message::sequence, &Server::on_sequence);
  on(Message::decided, &Server::on_decided);
  on(Message::so_far, &Server::on_so_far);
  context_.on(Message::lanes,
              [this](int, Unpacker& in) { wanted_lanes_.push_back(in.get<node::LaneKind>()); });
  context_.on(Message::statistics,
              [this](int source, Unpacker& in) { gathered_[source] = Statistics::unpack(in); });
  context_.on(Message::farewell, [this](int, Unpacker& in) {
    ++homes_left_;
    streams_in_all_ = in.get<std::int64_t>();
  });
  context_.on(Message::finish, [this](int, Unpacker& in) {
    finishing_ = true;
    streams_in_all_ = in.get<std::int64_t>();
  });
}

/// Ends the job: a stream that one server does not know gets no verdict, and its ranks would wait for ever.
void Server::give_up(const Status& why) {
  setup_.give_up(
      why.in(cat("server ", context_.me, " cannot open a stream that the compute ranks have begun")));
}

void Server::open(Opening opening) {
  const std::uint32_t id = opening.stream;
  const int reference = opening.reference;
  if (const auto decided = decided_.find(id); decided != decided_.end() && decided->second >= 0) {
    opening.is_taken_over = true;
    opening.first_step = decided->second;
    if (opening.first_step > 0) opening.previous_lead = lead_before_[id];
  }
  ++context_.streams;
  for (auto& [number, other] : streams_) {
    if (other.server) other.server->on_stream_added();
  }
  if (const Status ready = prepare_method(opening); !ready.is_ok()) return give_up(ready);
  const node::LaneKind kind = lane_of(opening.handoff, roster_);
  open_lanes(kind);
  Fences& fences = fences_[kind];
  Result<std::unique_ptr<StreamServer>> server = StreamServer::create(context_, std::move(opening), fences);
  // A compute rank has accepted the same definitions. So memory is short here, or the message was damaged on
  // its way.
  if (!server.is_ok()) return give_up(server.status());
  Stream& stream = streams_[id];
  stream.server = std::move(*server);
  if (context_.is_home(reference)) {
    stream.root =
        std::make_unique<StreamRoot>(context_, stream.server->opening(), stream.server->codec(),
                                     context_.make_ledger(stream.server->opening(), stream.server->codec()));
    on_reference(stream, {.kind = Descriptor::Kind::fence, .step = fences[reference]});
  }
  context_.send_to_server(context_.home_of(reference), Packer().put(Message::opened).put(id));
}

/// tr_stream_create has refused the method where a server has no such files.
Status Server::prepare_method(const Opening& opening) {
  return opening.method().is_collective ? make_collective() : Status();
}

Status Server::make_collective() {
  if (context_.collective) return {};
  Result<std::unique_ptr<comm::CollectiveFiles>> made = setup_.make_collective();
  TR_TRY(made.status());
  context_.collective = *std::move(made);
  return {};
}

/// All servers open the first stream that needs counters, and so all come here. Only what they do together
/// tells whether the MPI has one-sided adds: either all of them use these, or none.
void Server::make_counters() {
  Status missing;
  if (roster_.servers() > 1) {
    Result<std::unique_ptr<comm::Counters>> made = setup_.make_counters();
    if (made.is_ok()) context_.offsets = *std::move(made);
    missing = made.status();
  }
  if (!context_.offsets) {
    std::vector<int> ranks;
    for (int server = 0; server < roster_.servers(); ++server)
      ranks.push_back(context_.rank_of_server(server));
    context_.offsets = std::make_unique<comm::MessageCounters>(
        context_.line, std::move(ranks),
        comm::MessageCounters::Kinds{static_cast<std::uint32_t>(Message::add),
                                     static_cast<std::uint32_t>(Message::added)});
  }
  if (context_.me != 0 || roster_.servers() == 1) return;
  log(LogLevel::info,
      missing.is_ok() ? "servers take offsets by one-sided adds (MPI_Fetch_and_op)"
                      : cat("servers take offsets by messages to the root of each stream: ", missing.text()));
}

/// Tells who has asked for the trial what becomes of it here.
void Server::try_appends(std::int64_t number) {
  const Trial trial = trials_.extract(number).mapped();
  const auto tell = [this, asker = trial.asker](const Status& status) {
    Packer out;
    out.put(Message::tried);
    status.pack(out);
    context_.line.send(asker, out.take());
  };
  if (const Status made = make_collective(); !made.is_ok()) return tell(made);
  context_.collective->try_appends(context_.files.target().system_name(trial.path).value_or(trial.path),
                                   tell);
}

/// Makes the calls whose turn has come, in their order. A call's own part comes from the stream's root, and
/// may come after its turn.
bool Server::make_collective_calls() {
  bool moved = context_.collective && context_.collective->poll();
  for (; !turns_.empty(); turns_.pop_front()) {
    const auto [id, call] = turns_.front();
    if (id == 0) {
      try_appends(call);
      moved = true;
      continue;
    }
    const auto stream = streams_.find(id);
    if (stream == streams_.end() || !stream->second.server->collective().knows(call)) break;
    stream->second.server->collective().make(call);
    moved = true;
  }
  return moved;
}

/// Starts the stream once every server has opened it. Before, the root announces nothing: no server hears of
/// a stream that it does not have.
void Server::on_opened(Unpacker& in) {
  const auto id = in.get<std::uint32_t>();
  if (++opened_[id] < roster_.servers()) return;
  opened_.erase(id);
  Stream& stream = streams_.at(id);
  stream.started = true;
  stream.server->on_sequence(stream.fresh);
  send_sequence(id, stream);
}

void Server::on_sequence(Unpacker& in) {
  Stream& stream = streams_.at(in.get<std::uint32_t>());
  stream.started = true;
  stream.server->on_sequence(unpack_sequence(in));
}

void Server::on_decided(Unpacker& in) {
  Stream& stream = streams_.at(in.get<std::uint32_t>());
  const auto verdict = in.get<VerdictKind>();
  const auto step = in.get<std::int64_t>();
  stream.server->on_verdict(verdict, step, Status::unpack(in));
}

bool Server::advance() {
  bool moved = open_wanted_lanes();
  moved = context_.executor.poll() || moved;
  moved = make_collective_calls() || moved;
  moved = (context_.offsets && context_.offsets->poll()) || moved;
  moved = scan_lanes() || moved;
  for (auto& [id, stream] : streams_) {
    if (stream.started && !stream.fresh.empty()) send_sequence(id, stream);
  }
  moved = poll_data() || moved;
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    moved = stream->second.server->advance() || moved;
    if (stream->second.root) moved = stream->second.root->advance() || moved;
    if (!stream->second.server->is_closed()) {
      ++stream;
      continue;
    }
    constexpr auto all = std::numeric_limits<std::int64_t>::max();
    for (auto& [c, lane] : stream->second.server->lanes()) {
      lane.finish_steps(stream->first, all, true);
      lane.forget_verdicts(stream->first);
    }
    stream = streams_.erase(stream);
    --context_.streams;
    ++streams_done_;
    moved = true;
  }
  moved = move_lanes() || moved;
  moved = report_so_far() || moved;
  return leave() || moved;
}

/// Opens the lanes of which compute rank 0 has told. That may block, and so it is not done where messages are
/// handed out.
bool Server::open_wanted_lanes() {
  const auto wanted = std::exchange(wanted_lanes_, {});
  for (const node::LaneKind kind : wanted) open_lanes(kind);
  return !wanted.empty();
}

/// The lane of a kind that nobody has asked for has no stream and no fence yet. A stream may open before
/// compute rank 0 has told this server of its lanes.
void Server::open_lanes(node::LaneKind kind) {
  if (kind == node::LaneKind::usual || !opened_lanes_.insert(kind).second) return;
  // Each of the two windows is made by all servers together, and MPI gives no order between a message of a
  // rank and one of a server: whichever comes first, every server makes that of the counters first.
  const bool makes_window = kind == node::LaneKind::onesided && roster_.servers() > 1;
  if (makes_window && !context_.offsets) make_counters();
  auto made = setup_.make_lanes(kind);
  if (!made.is_ok()) return give_up(made.status());
  context_.apart = roster_;
  std::ranges::fill(context_.apart.shares_node, 0);
  Lanes& lanes = context_.more_lanes[kind];
  for (auto& [c, lane] : *made) {
    lanes.emplace(c, LaneCursor(std::move(lane.reader)));
    senders_[c] = lane.receiver->rank();
    setup_.receivers[kind][c] = std::move(lane.receiver);
  }
}

/// Brings what lies with ranks, and tells ranks what room was freed.
bool Server::move_lanes() {
  bool moved = false;
  for (const auto& [kind, receivers] : setup_.receivers) {
    for (const auto& [c, receiver] : receivers) {
      moved = receiver->advance() || moved;
      const auto credit = receiver->fresh_credit();
      if (!credit) continue;
      context_.line.send(receiver->rank(), Packer().put(Message::credit).put(kind).put(*credit).take());
      moved = true;
    }
  }
  return moved;
}

bool Server::scan_lanes() {
  bool moved = false;
  const auto scan = [&](node::LaneKind kind, Lanes& lanes) {
    for (auto& [c, lane] : lanes) {
      while (scan_lane(kind, c, lane)) moved = true;
      moved = lane.make_room() || moved;
    }
  };
  scan(node::LaneKind::usual, context_.lanes);
  for (auto& [kind, lanes] : context_.more_lanes) scan(kind, lanes);
  return moved;
}

bool Server::scan_lane(node::LaneKind of, int c, LaneCursor& lane) {
  using Kind = Descriptor::Kind;
  const Descriptor* descriptor = lane.front();
  if (descriptor == nullptr) return false;
  const Kind kind = descriptor->kind;
  if (kind == Kind::farewell && context_.is_home(c)) ++left_;
  if (kind == Kind::fence) on_fence(of, c, descriptor->step);
  if (kind == Kind::fence && context_.is_home(c)) lane.pass_fence(descriptor->step);
  if (kind == Kind::define) take_definition(c, lane);
  if (kind == Kind::farewell || kind == Kind::fence || kind == Kind::define || is_over(*descriptor)) {
    lane.finish(lane.pass());
    return true;
  }
  const auto found = streams_.find(descriptor->stream);
  if (found == streams_.end()) {
    if (decided_.count(descriptor->stream) != 0)
      lead_before_[descriptor->stream] = kind == Kind::close ? descriptor->lead : descriptor->stamp;
    definitions_.want(*descriptor);
  }
  if (found == streams_.end() || !found->second.started) return false;
  Stream& stream = found->second;
  if (stream.root && c == stream.server->opening().reference && lane.number() >= stream.reference_at) {
    on_reference(stream, *descriptor);
    stream.reference_at = lane.number() + 1;
  }
  const std::uint32_t id = descriptor->stream;
  const std::int64_t step = descriptor->step;
  if (!stream.server->on_descriptor(c, *descriptor)) return false;
  if (kind == Kind::end && context_.is_home(c)) lane.await_verdict(id, step);
  return true;
}

void Server::take_definition(int c, const LaneCursor& lane) {
  const auto kept = kept_through_.find(c);
  const bool is_known = kept != kept_through_.end() && lane.number() <= kept->second;
  if (is_known || !context_.is_home(c)) return;
  ByteVector scratch;
  definitions_.on_entry(c, *lane.front(), lane.reader().bytes(lane.number(), scratch));
}

void Server::on_reference(Stream& stream, const Descriptor& descriptor) {
  std::vector<SequenceEntry> fresh;
  stream.root->on_reference(descriptor, fresh);
  if (stream.started) stream.server->on_sequence(fresh);
  stream.fresh.insert(stream.fresh.end(), fresh.begin(), fresh.end());
}

/// A fence is for all streams of the lane, also for those that open later. No stream holds it up for the
/// others.
void Server::on_fence(node::LaneKind kind, int c, std::int64_t number) {
  fences_[kind][c] = number;
  const Descriptor fence{.kind = Descriptor::Kind::fence, .step = number};
  for (auto& [id, stream] : streams_) {
    if (stream.server->lane_kind() != kind || stream.server->has_closed(c)) continue;
    if (stream.root && c == stream.server->opening().reference) on_reference(stream, fence);
    stream.server->on_fence(c, number);
  }
}

void Server::send_sequence(std::uint32_t id, Stream& stream) {
  Packer out;
  out.put(Message::sequence).put(id);
  pack_sequence(out, stream.fresh);
  for (int server = 0; server < roster_.servers(); ++server) {
    if (server != context_.me) context_.send_to_server(server, out);
  }
  stream.fresh.clear();
}

bool Server::poll_data() {
  bool moved = false;
  for (const auto& [c, rank] : senders_) {
    while (const auto bytes = context_.line.receive_data(rank)) {
      take_lane_message(c, Unpacker(*bytes));
      moved = true;
    }
  }
  for (const auto& [id, stream] : streams_) {
    for (const int server : awaited(stream)) {
      while (awaits(stream, server) && take_data(server)) moved = true;
    }
  }
  return moved;
}

void Server::take_lane_message(int c, Unpacker in) {
  const auto kind = in.get<node::LaneKind>();
  open_lanes(kind);
  setup_.receivers[kind].at(c)->take(in);
}

/// Returns the servers from which the stream needs data next: pieces, or chunks that this server writes.
std::vector<int> Server::awaited(const Stream& stream) {
  std::vector<int> servers = stream.server->waits_for();
  if (stream.root) {
    const std::vector<int> owners = stream.root->awaited();
    servers.insert(servers.end(), owners.begin(), owners.end());
  }
  std::ranges::sort(servers);
  const auto twice = std::ranges::unique(servers);
  servers.erase(twice.begin(), twice.end());
  return servers;
}

/// Returns true if the server is one of those. With hundreds of them, asking is cheaper than listing them
/// for each.
bool Server::awaits(const Stream& stream, int server) {
  return stream.server->waits_for(server) || (stream.root && stream.root->awaits(server));
}

/// Takes a data message from a server. Its stream need not be the one that waits.
bool Server::take_data(int server) {
  std::optional<ByteVector> bytes = context_.line.receive_data(context_.rank_of_server(server));
  if (!bytes) return false;
  const std::shared_ptr<ByteVector> message(new ByteVector(*std::move(bytes)),
                                            [&line = context_.line](ByteVector* over) {
                                              line.give_back(std::move(*over));
                                              delete over;
                                            });
  Unpacker in(*message);
  const auto id = in.get<std::uint32_t>();
  const int sender = in.get<int>();
  const auto kind = in.get<Data>();
  // Pieces of a record that has failed may come when the stream is over.
  const auto found = streams_.find(id);
  if (found == streams_.end()) return true;
  Stream& stream = found->second;
  if (kind == Data::pieces) {
    stream.server->on_pieces(sender, in, message);
    return true;
  }
  const auto chunk = in.get<std::uint64_t>();
  if (!stream.root || !stream.root->on_come(chunk)) {
    log(LogLevel::warn, cat("stream ", stream.server->opening().name(), ": server ", sender,
                            " has sent chunk ", chunk, ", which nobody waits for"));
    return true;
  }
  stream.server->on_chunk(in, message, [root = stream.root.get(), chunk] { root->on_over(chunk); });
  return true;
}

namespace {

constexpr std::int64_t between_reports = 1'000'000'000;

}  // namespace

/// Returns the figures of this server and of the ranks that are at home here.
Figures Server::own_figures() {
  Figures figures;
  if (setup_.process) context_.statistics.process = setup_.process();
  figures[context_.line.rank()] = std::make_shared<const Statistics>(context_.statistics.so_far());
  // With 0 servers a rank's counters are its server's already.
  if (roster_.self_served) return figures;
  for (const auto& [c, said] : context_.said) figures[context_.rank_of_compute(c)] = said.figures;
  return figures;
}

/// Tells server 0 the figures after a commit. What takes long to tell is told more rarely. If memory is
/// short, nothing is told: figures are not worth the job.
bool Server::report_so_far() {
  if (!setup_.reporting || told_) return false;
  static_cast<void>(guarded([this]() -> Status {
    hand_over_figures();
    return {};
  }));
  const std::int64_t begin = context_.line.now();
  if (!context_.news || context_.me == 0 || begin < next_report_) return false;
  context_.news = false;
  Packer out;
  const Status packed = guarded([&]() -> Status {
    out.put(Message::so_far);
    for (const auto& [rank, statistics] : own_figures()) {
      out.put(rank);
      statistics->pack(out);
    }
    return {};
  });
  constexpr std::int64_t share = 20;
  next_report_ = begin + std::max(between_reports, share * (context_.line.now() - begin));
  if (packed.is_ok()) context_.send_to_server(0, out);
  return packed.is_ok();
}

/// On server 0: hands over what is known, whatever has happened since the last time.
void Server::hand_over_figures() {
  if (!setup_.on_figures) return;
  const std::int64_t now = context_.line.now();
  if ((handed_over_at_ && now - *handed_over_at_ < between_reports) || !setup_.wants_figures()) return;
  handed_over_at_ = now;
  for (auto& [rank, statistics] : own_figures()) so_far_[rank] = std::move(statistics);
  for (auto& [c, said] : context_.said) said.is_lent = true;
  setup_.on_figures(so_far_);
}

void Server::on_so_far(Unpacker& in) {
  static_cast<void>(guarded([&]() -> Status {  // without memory the figures before stay
    while (in.ok() && !in.rest().empty()) {
      const int rank = in.get<int>();
      so_far_[rank] = std::make_shared<const Statistics>(Statistics::unpack(in));
    }
    return {};
  }));
}

bool Server::leave() {
  bool moved = false;
  if (!said_farewell_ && homed_ > 0 && left_ == homed_ && streams_.empty()) {
    said_farewell_ = moved = true;
    context_.send_to_server(0, Packer().put(Message::farewell).put(streams_done_));
  }
  if (context_.me == 0 && homes_left_ == homes_) {
    homes_left_ = 0;
    context_.send_to_servers(Packer().put(Message::finish).put(streams_in_all_));
    moved = true;
  }
  // A server without compute ranks of its own may hear of the end before it heard of the last stream.
  if (finishing_ && !told_ && streams_done_ == streams_in_all_) {
    told_ = moved = true;
    if (setup_.process) context_.statistics.process = setup_.process();
    Packer out;
    out.put(Message::statistics);
    context_.statistics.pack(out);
    context_.send_to_server(0, out);
  }
  const std::size_t everybody = static_cast<std::size_t>(
      roster_.self_served ? roster_.servers() : roster_.servers() + roster_.computes());
  if (!over_ && told_ && (context_.me != 0 || gathered_.size() == everybody)) {
    over_ = moved = true;
    if (context_.me == 0 && setup_.on_statistics) setup_.on_statistics(gathered_);
  }
  return moved;
}

std::string Server::waiting_for() const {
  std::string text;
  for (const auto& [id, stream] : streams_) {
    text += stream.server->waiting_for();
    if (stream.root && context_.roster.self_served) text += stream.root->waiting_for();
    if (stream.root) text += stream.root->waiting_for_call();
  }
  return text;
}

bool Server::waits_for_servers() const {
  if (roster_.servers() == 1) return false;
  return !turns_.empty() || std::ranges::any_of(streams_, [](const auto& each) {
    const Stream& stream = each.second;
    return stream.server->waits_for_servers() || (stream.root && !stream.root->awaited().empty());
  });
}

}  // namespace tailrace::pipeline
