// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/compute/client.hpp"

#include <algorithm>

#include "ground/base/text.hpp"

namespace tailrace::pipeline {

using node::Descriptor;

Client::Client(comm::Line& session, comm::Line& computes, const exchange::Roster& roster)
    : session_(session), computes_(computes), roster_(roster) {
  session_.on(static_cast<std::uint32_t>(Message::verdict), [this](int, Unpacker& in) { on_verdict(in); });
  session_.on(static_cast<std::uint32_t>(Message::tried), [this](int, Unpacker& in) {
    const Status status = Status::unpack(in);
    if (trial_status_.is_ok()) trial_status_ = status;
    --untried_;
  });
  session_.on(static_cast<std::uint32_t>(Message::credit), [this](int, Unpacker& in) {
    LaneWriter& its = *granted_.at(static_cast<std::size_t>(in.get<node::LaneKind>()));
    its.credit(in.get<std::uint64_t>());
  });
}

void Client::begin_trial(const std::string& path) {
  untried_ = roster_.servers();
  trial_status_ = {};
  session_.send(roster_.server_transport.front(), Packer().put(Message::wants_trial).put_text(path).take());
}

void Client::tell_lanes(node::LaneKind kind) {
  for (const int server : roster_.server_transport)
    session_.send(server, Packer().put(Message::lanes).put(kind).take());
}

node::LaneKind Client::lane_of(const Descriptor& descriptor) const {
  const auto stream = streams_.find(descriptor.stream);
  return stream == streams_.end() ? node::LaneKind::usual : stream->second->lane_of(descriptor);
}

void Client::on_verdict(Unpacker& in) {
  const auto found = streams_.find(in.get<std::uint32_t>());
  const auto kind = in.get<VerdictKind>();
  const auto step = in.get<std::int64_t>();
  const Status status = Status::unpack(in);
  if (kind == VerdictKind::durable && !status.is_ok()) ++failed_steps_;
  if (found != streams_.end()) found->second->verdicts().take(kind, step, status, found->second->steps());
}

void Client::add(StreamClient& stream) {
  stream.definitions().set_stream(next_stream_++);
  streams_[stream.id()] = &stream;
}

/// Returns the number of steps begun of each stream, as text. It becomes part of each vote's call: ranks that
/// have begun different numbers of steps disagree.
std::string Client::steps_text() const {
  std::string text;
  for (const auto& [id, stream] : streams_) {
    const std::int64_t steps = stream->steps();
    if (steps == 0 || stream->out_of_step()) continue;
    text += cat(text.empty() ? " after " : ", ", counted(steps, "step"), " of ", stream->name());
  }
  return text;
}

std::uint64_t Client::vote(comm::Vote vote) {
  vote.call += steps_text();
  return computes_.agreements().post(std::move(vote));
}

/// Packs the number of fences, and the number of steps of each stream that is in step; with `unsettled`, also
/// of streams that are still to be settled.
ByteVector Client::own_counts(bool unsettled) const {
  std::vector<StepCount> counts;
  for (const auto& [id, stream] : streams_) {
    if (!stream->out_of_step() || (unsettled && stream->is_unsettled()))
      counts.push_back({id, stream->is_closing() ? 1U : 0U, stream->steps()});
  }
  return Packer().put(fences_).put_list(std::span<const StepCount>(counts)).take();
}

std::uint64_t Client::vote_steps() {
  return computes_.agreements().post({{}, "the number of steps", own_counts(false)});
}

Status Client::difference(const std::string& name, const std::vector<StepCount>& counts) {
  const StepCount& first = counts.front();
  const bool closes = first.closing != 0;
  for (std::size_t rank = 1; rank < counts.size(); ++rank) {
    const StepCount& other = counts[rank];
    if (other.steps == first.steps && other.closing == first.closing) continue;
    const std::string what =
        other.steps != first.steps
            ? cat("rank 0 has begun ", counted(first.steps, "step"), ", rank ", rank, " ", other.steps)
            : cat("rank ", closes ? 0 : rank, " closes it, rank ", closes ? rank : 0, " does not");
    return Status(Code::order, cat("stream ", name, ": ", what, "; nothing more is written to it"))
        .at({-1, -1, static_cast<std::int32_t>(rank)});
  }
  return {};
}

Client::Counts Client::counts_of(const comm::Verdict& verdict) {
  Counts counts;
  const std::size_t ranks = verdict.contributions.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Unpacker in(verdict.contributions[rank]);
    in.get<std::int64_t>();  // its fences
    for (const StepCount& count : in.get_list<StepCount>()) {
      counts[count.stream].resize(ranks);
      counts[count.stream][rank] = count;
    }
  }
  return counts;
}

/// Puts all streams of the verdict out of step if `why` is an error, otherwise those whose counts differ
/// among the ranks.
std::vector<Told> Client::put_out_of_step(const comm::Verdict& verdict, const Status& why) {
  std::vector<Told> told;
  for (const auto& [id, of_ranks] : counts_of(verdict)) {
    const auto stream = streams_.find(id);
    if (stream == streams_.end()) continue;
    const Status status = why.is_ok() ? difference(stream->second->name(), of_ranks) : why;
    if (status.is_ok()) continue;
    const bool begun = std::ranges::any_of(of_ranks, [](const StepCount& each) { return each.steps > 0; });
    std::ranges::move(stream->second->put_out_of_step(status, begun), std::back_inserter(told));
  }
  return told;
}

/// Returns a fence behind the fences of all ranks. Servers hold back everything behind a fence until the
/// reference rank has come to it too.
Descriptor Client::last_fence(const comm::Verdict& verdict) {
  for (const ByteVector& each : verdict.contributions)
    fences_ = std::max(fences_, Unpacker(each).get<std::int64_t>());
  return fence();
}

bool Client::has_ended(std::uint32_t stream, std::uint64_t step) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return stream < next_stream_;
  return found->second->ended() > static_cast<std::int64_t>(step);
}

void Client::tell_statistics(const Statistics& statistics) {
  if (roster_.self_served) return;
  Packer out;
  out.put(Message::statistics);
  statistics.pack(out);
  session_.send(roster_.server_transport[0], out.take());
}

}  // namespace tailrace::pipeline
