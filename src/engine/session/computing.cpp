// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/computing.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "engine/pipeline/handoff_lanes.hpp"
#include "engine/session/session.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/node/available_memory.hpp"

namespace tailrace::session {

namespace {

constexpr std::int64_t idle_nanoseconds = 1'000'000;

}  // namespace

Computing::Computing(Session& session)
    : session_(session),
      line_(session.board(), comm::line_number::computes,
            std::make_shared<comm::Members>(session.topology().roster().compute_transport)),
      client_(session.line(), line_, session.topology().roster()) {
  line_.name_ranks([](int rank) { return cat("compute rank ", rank); });
  session.board().order().on_step(
      [this](const comm::OrderedCall& step) { return client_.has_ended(step.stream, step.number); });
  session.board().order().connect(line_);
  line_.on(print_message, [this](int, Unpacker& in) { print(in.get_text()); });
  line_.on(printed_message, [this](int, Unpacker&) { printed_ = true; });
}

void Computing::open_lane() {
  const Topology& topology = session_.topology();
  const exchange::Roster& roster = topology.roster();
  if (roster.self_served) {
    lent_ = std::make_shared<pipeline::LentLane>();
    lane_writer_ = std::make_unique<pipeline::LentLaneWriter>(lent_);
    return;
  }
  const Bytes capacity = session_.memory().quotas().lane[static_cast<std::size_t>(topology.me())];
  if (session_.memory().bells() != nullptr) {
    std::byte* const place = session_.memory().lane_of(session_.node_line().rank());
    auto* header = new (place) node::LaneHeader();
    header->capacity = capacity;
    header->readers = topology.servers_on(topology.node());
    header->owner = topology.me();
    header->kept = session_.memory().quotas().kept_of(topology.me());
    node::LaneProducer producer(
        header, place + sizeof(node::LaneHeader), session_.memory().bells(),
        topology.is_crowded() ? node::Announcing::patient : node::Announcing::at_once);
    producer.grow_with([&memory = session_.memory()](Bytes bytes) { return memory.grow_lane(bytes); });
    lane_writer_ = std::make_unique<pipeline::RingLaneWriter>(std::move(producer));
    shared_lane_ = header;
    return;
  }
  lane_writer_ =
      writer_to_home(std::make_unique<node::PrivateLane>(capacity), node::LaneKind::usual, nullptr);
  client_.grant_to(*lane_writer_, node::LaneKind::usual);
}

/// Returns the rank's end of a lane that its home does not map.
std::unique_ptr<pipeline::LaneWriter> Computing::writer_to_home(std::unique_ptr<node::PrivateLane> lane,
                                                                node::LaneKind kind,
                                                                comm::ExposedMemory* exposed) {
  const exchange::Roster& roster = session_.topology().roster();
  const int home = roster.home[static_cast<std::size_t>(session_.topology().me())];
  auto sender = std::make_unique<node::LaneSender>(
      *lane, session_.line(), roster.server_transport[static_cast<std::size_t>(home)], kind, exposed);
  node::LaneProducer producer(lane->header(), lane->data(), nullptr);
  // The ring then uses freed room again before it touches new memory.
  if (kind != node::LaneKind::usual) producer.grow_with([](Bytes) { return Status(); });
  return std::make_unique<pipeline::RingLaneWriter>(std::move(producer), std::move(lane), std::move(sender));
}

Result<pipeline::Handoff> Computing::open_handoff(pipeline::Handoff handoff, const std::string& call) {
  using pipeline::Handoff;
  const exchange::Roster& roster = session_.topology().roster();
  if (handoff == Handoff::onesided && no_onesided_ && !roster.self_served)
    return open_handoff(Handoff::messages, call);
  const node::LaneKind kind = pipeline::lane_of(handoff, roster);
  if (kind == node::LaneKind::usual || more_.count(kind) != 0) return handoff;
  const bool is_exposed = kind == node::LaneKind::onesided;
  // Memory may have been exposed for an earlier stream, of which a rank then had no memory for its end.
  if (unready_.count(kind) == 0) {
    const Status agreed = agree_on_lane(kind, handoff, call);
    if (!agreed.is_ok()) {
      unready_.erase(kind);
      return agreed;
    }
    if (line_.rank() == 0) client_.tell_lanes(kind);
    if (is_exposed && !expose(call)) return open_handoff(Handoff::messages, call);
  }
  if (is_exposed) TR_TRY(agree({make_writer(kind).in(call), cat(call, " making lanes"), {}}).status);
  client_.grant_to(*unready_.at(kind).writer, kind);
  more_.insert(unready_.extract(kind));  // allocates nothing: no rank may fail alone here
  return handoff;
}

/// Collective. Makes what a rank has of a lane before servers hear of it. Returns an error on every rank if
/// any has no memory for it, or a node lacks memory for its ranks' part.
Status Computing::agree_on_lane(node::LaneKind kind, pipeline::Handoff handoff, const std::string& call) {
  const node::MemoryNeed need{session_.topology().node(), session_.memory().share_of_more_lanes(),
                              node::available_memory()};
  const Status mine = guarded([&]() -> Status {
    MoreLane& lane = unready_[kind];
    lane.drawn = std::make_unique<node::Draw>(session_.memory().budget(), node::Use::staging);
    if (kind != node::LaneKind::onesided) TR_TRY(make_writer(kind));
    const Status fits = session_.memory().check_more_lanes(std::ssize(more_) + 1);
    return (fits.is_ok() ? lane.drawn->take(need.bytes) : fits)
        .in(cat("lanes for handoff=", pipeline::name_of(handoff),
                " (set TAILRACE_MEMORY higher, or TAILRACE_STAGING lower)"));
  });
  const comm::Verdict asked =
      agree({mine.in(call), cat(call, " asking for memory of lanes"), Packer().put(need).take()});
  TR_TRY(asked.status);
  std::vector<node::MemoryNeed> needs;
  for (const ByteVector& each : asked.contributions) needs.push_back(Unpacker(each).get<node::MemoryNeed>());
  return node::check_nodes(needs, cat("handoff=", pipeline::name_of(handoff), " takes"),
                           "set TAILRACE_STAGING lower")
      .in(call);
}

/// Collective. Exposes the memory of the unready lane. Returns false, and drops the lane, if the MPI has no
/// one-sided gets.
bool Computing::expose(const std::string& call) {
  const Bytes capacity = session_.memory().quotas().lane[static_cast<std::size_t>(session_.topology().me())];
  Result<std::unique_ptr<comm::ExposedMemory>> made =
      session_.make_exposed(node::PrivateLane::bytes_for(capacity), {});
  if (made.is_ok()) {
    unready_.at(node::LaneKind::onesided).exposed = *std::move(made);
    return true;
  }
  no_onesided_ = made.status();
  if (line_.rank() == 0)
    log(LogLevel::warn,
        cat(call, ": ranks send messages in place of handoff=onesided: ", made.status().text()));
  unready_.erase(node::LaneKind::onesided);
  return false;
}

/// Makes this rank's end of the unready lane of this kind.
Status Computing::make_writer(node::LaneKind kind) {
  return guarded([&]() -> Status {
    MoreLane& lane = unready_.at(kind);
    const Bytes capacity =
        session_.memory().quotas().lane[static_cast<std::size_t>(session_.topology().me())];
    auto ring = lane.exposed == nullptr
                    ? std::make_unique<node::PrivateLane>(capacity)
                    : std::make_unique<node::PrivateLane>(capacity, lane.exposed->own().data());
    lane.writer = writer_to_home(std::move(ring), kind, lane.exposed.get());
    return {};
  });
}

std::function<std::optional<bool>()> Computing::settled() const {
  if (shared_lane_ == nullptr || !more_.empty()) return {};
  return [lane = shared_lane_, fence = client_.newest_fence(),
          failed = client_.failed_steps()]() -> std::optional<bool> {
    const bool is_settled = lane->settled_fence >= fence;  // read first: failures are told before
    if (lane->failed_steps != failed) return false;
    return is_settled ? std::optional(true) : std::nullopt;
  };
}

std::int64_t Computing::publish(const std::function<bool()>& attempt, node::LaneKind kind) {
  session_.board().transport().let_others_run();
  if (attempt()) return 0;
  comm::Account::Turn full(session_.board().account(), comm::Routine::staging_full);
  comm::Doorbell* const bell = lane_writer(kind).space();
  session_.wait(
      [&] {
        if (bell == nullptr) return attempt();
        const std::uint32_t ticket = bell->ticket();
        if (attempt()) {
          bell->cancel();
          return true;
        }
        session_.board().transport().park(*bell, ticket, std::chrono::milliseconds(1));
        return false;
      },
      "free staging memory (TAILRACE_STAGING): servers or storage are slower than the model's output");
  return full.end() - full.begin();
}

comm::Verdict Computing::agree(comm::Vote vote) {
  // Publish no more fences: no other rank comes to them, and they would fill the lane.
  if (line_.ended()) return line_.ended_verdict();
  const std::string call = vote.call;
  publish_fence(client_.fence());
  comm::Verdict verdict = verdict_of(client_.vote(std::move(vote)), call);
  if (verdict.status.is_ok() || verdict.ended) return verdict;
  const comm::Verdict steps = verdict_of(client_.vote_steps(), call);
  if (steps.ended) return steps;
  tell(client_.compare_steps(steps));
  return verdict;
}

void Computing::tell(const std::vector<pipeline::Told>& all) {
  for (const pipeline::Told& told : all) {
    const node::LaneKind kind = client_.lane_of(told.descriptor);
    publish([&] { return lane_writer(kind).tell(told.descriptor, told.bytes); }, kind);
  }
}

/// A fence divides the steps in every lane.
void Computing::publish_fence(const node::Descriptor& fence) {
  publish([&] { return lane_writer_->tell(fence, {}); });
  for (const auto& each : more_) {
    const node::LaneKind kind = each.first;
    publish([&] { return lane_writer(kind).tell(fence, {}); }, kind);
  }
}

bool Computing::wait_for_step(const pipeline::StreamClient& stream, std::int64_t step, std::string_view call,
                              comm::Routine routine, const std::function<bool()>& done,
                              const std::string& what) {
  const comm::Account::Turn turn(session_.board().account(), routine);
  const comm::OrderedWait wait{{line_.number(), comm::OrderedCall::Kind::step, stream.id(),
                                static_cast<std::uint64_t>(std::max<std::int64_t>(step, 0))},
                               call,
                               line_.agreements().neighbours()};
  bool is_done = false;
  session_.board().wait([&] { return (is_done = done()) || broken().has_value(); }, what, wait);
  return is_done;
}

void Computing::begin_signs(std::int64_t nanoseconds) {
  sign_period_ = nanoseconds;
  next_sign_ = session_.line().now() + sign_period_;
}

void Computing::send_sign(std::int64_t now) {
  next_sign_ = now + sign_period_;
  const exchange::Roster& roster = session_.topology().roster();
  const int home = roster.home[static_cast<std::size_t>(line_.rank())];
  session_.line().send(roster.server_transport[static_cast<std::size_t>(home)],
                       Packer().put(pipeline::Message::alive).take());
}

void Computing::settle(const Status& why) {
  comm::Line line(session_.board(), comm::line_number::settlement, line_.members());
  line.name_ranks([](int rank) { return cat("compute rank ", rank); });
  const comm::Verdict verdict = line.agree(client_.settling_vote());
  publish_fence(client_.last_fence(verdict));
  tell(client_.settle(verdict, why));
}

Result<bool> Computing::should_stop() {
  const comm::Verdict verdict = agree({{}, "tr_should_stop", session_.stops().vote(line_.rank())});
  TR_TRY(verdict.status);
  return session_.stops().conclude(verdict.contributions, line_.rank());
}

comm::Verdict Computing::verdict_of(std::uint64_t agreement, const std::string& call) {
  return line_.verdict_of(agreement, call, [&] { return client_.take(agreement); });
}

Status Computing::meet_in_finalize() {
  Status first;
  for (;;) {
    const comm::Verdict verdict = agree({{}, "tr_finalize", {}});
    if (first.is_ok()) first = verdict.status;
    if (verdict.ended) settle(verdict.status);
    if (verdict.ended || verdict.status.is_ok()) return first;
  }
}

std::optional<pipeline::Process> Computing::spent_so_far() const {
  if (session_.settings().report.empty() || session_.topology().roster().self_served) return std::nullopt;
  return session_.spent();
}

void Computing::leave(const Status& ended) {
  has_left_ = true;
  const comm::Account::Turn turn(session_.board().account(), comm::Routine::message);
  session_.statistics().error = ended.text();
  session_.statistics().stopped = session_.stops().reason();
  // No server sends a credit for another lane once the rank has said farewell in the usual one.
  const auto is_drained = [](const auto& each) { return each.second.writer->is_drained(); };
  session_.wait([&] { return lane_writer_->is_drained() && std::ranges::all_of(more_, is_drained); },
                "the servers to take what was put");
  session_.statistics().process = session_.spent();
  client_.tell_statistics(session_.statistics());
  const node::Descriptor farewell = pipeline::Client::farewell();
  publish([&] { return lane_writer_->tell(farewell, {}); });
  session_.wait([&] { return session_.all_is_sent() && !advance(); }, "the end of the session");
}

std::chrono::milliseconds Computing::turn_of(int rank) {
  constexpr std::chrono::milliseconds for_the_first{5000};
  constexpr std::chrono::milliseconds for_each{250};
  constexpr int most = 20;
  return rank <= 0 ? std::chrono::milliseconds(0) : for_the_first + for_each * std::min(rank, most);
}

/// Prints the text if it is the first, and tells the ranks that wait for it.
void Computing::print(std::string_view text) {
  constexpr std::int64_t same_cause = 10'000'000'000;
  const bool is_told = has_printed_at_ && line_.now() - *has_printed_at_ < same_cause;
  if (!std::exchange(printed_, true) && !is_told) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
    std::fflush(stderr);
  }
  if (std::exchange(announced_, true)) return;
  for (int rank = 0; rank < line_.size(); ++rank) {
    if (rank != line_.rank()) line_.send(rank, Packer().put(printed_message).take());
  }
}

void Computing::print_once(const std::string& text) {
  comm::Switchboard& board = session_.board();
  const auto move_on_for = [&](std::chrono::nanoseconds time, const bool& done) {
    const std::int64_t end = line_.now() + time.count();
    while (!done && line_.now() < end) {
      if (!board.pump()) board.transport().idle(idle_nanoseconds, "the text of an error");
    }
  };
  if (line_.rank() != 0) {
    line_.send(0, Packer().put(print_message).put_text(text).take());
    move_on_for(turn_of(line_.rank()), printed_);
  }
  if (line_.rank() == 0 || !printed_) print(text);
  move_on_for(until_launchers_read, false);
}

const std::optional<Status>& Computing::broken() const { return session_.board().order().broken(); }

}  // namespace tailrace::session
