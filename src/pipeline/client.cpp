// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/client.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tailrace::pipeline {

using comm::Descriptor;

Client::Client(comm::Line& session, comm::Line& computes, const exchange::Roster& roster)
    : session_(session), computes_(computes), roster_(roster) {
  session_.on(static_cast<std::uint32_t>(Message::verdict), [this](int, Unpacker& in) { on_verdict(in); });
  session_.on(static_cast<std::uint32_t>(Message::wanted), [this](int, Unpacker& in) {
    if (const auto found = streams_.find(in.get<std::uint32_t>()); found != streams_.end())
      found->second->want();
  });
}

void Client::grant_to(Outlet& outlet) {
  session_.on(static_cast<std::uint32_t>(Message::credit),
              [&outlet](int, Unpacker& in) { outlet.credit(in.get<std::uint64_t>()); });
}

void Client::on_verdict(Unpacker& in) {
  const auto found = streams_.find(in.get<std::uint32_t>());
  const auto kind = in.get<VerdictKind>();
  const auto step = in.get<std::int64_t>();
  if (found != streams_.end()) found->second->on_verdict(kind, step, Status::unpack(in));
}

void Client::add(StreamClient& stream) {
  stream.set_id(next_stream_++);
  streams_[stream.id()] = &stream;
}

// ---- agreements
// -----------------------------------------------------------------------------------------------------------

Descriptor Client::fence() {
  Descriptor descriptor;
  descriptor.kind = Descriptor::Kind::fence;
  descriptor.step = ++fences_;
  return descriptor;
}

/// Part of the call's text: ranks that have begun different numbers of steps disagree.
std::string Client::steps_text() const {
  std::string text;
  for (const auto& [id, stream] : streams_) {
    const std::int64_t steps = stream->steps();
    if (steps == 0 || stream->out_of_step()) continue;
    text +=
        cat(text.empty() ? " after " : ", ", steps, steps == 1 ? " step of " : " steps of ", stream->name());
  }
  return text;
}

std::uint64_t Client::vote(comm::Vote vote) {
  vote.call += steps_text();
  return computes_.agreements().post(std::move(vote));
}

std::uint64_t Client::vote_steps() {
  std::vector<StepCount> counts;
  for (const auto& [id, stream] : streams_) {
    if (!stream->out_of_step()) counts.push_back({id, stream->is_closing() ? 1U : 0U, stream->steps()});
  }
  Packer packed;
  packed.put_list(std::span<const StepCount>(counts));
  return computes_.agreements().post({{}, "the number of steps", packed.take()});
}

std::optional<comm::Verdict> Client::take(std::uint64_t number) {
  std::optional<comm::Verdict> verdict = computes_.agreements().take(number);
  // All that came before this agreement is done on this rank: it never began what others have.
  if (!verdict) {
    for (const auto& [id, stream] : streams_) stream->open_if_wanted();
  }
  return verdict;
}

Status Client::difference(const std::string& name, const std::vector<StepCount>& counts) {
  const StepCount& first = counts.front();
  for (std::size_t rank = 1; rank < counts.size(); ++rank) {
    const StepCount& other = counts[rank];
    std::string what;
    if (other.steps != first.steps) {
      what = cat("rank 0 has begun ", first.steps, first.steps == 1 ? " step, rank " : " steps, rank ", rank,
                 " ", other.steps);
    } else if (other.closing != first.closing) {
      what = cat("rank ", first.closing != 0 ? 0 : rank, " closes it, rank ", first.closing != 0 ? rank : 0,
                 " does not");
    } else {
      continue;
    }
    return Status(Code::order, cat("stream ", name, ": ", what, "; nothing more is written to it"))
        .at({-1, -1, static_cast<std::int32_t>(rank)});
  }
  return {};
}

std::vector<Told> Client::compare_steps(const comm::Verdict& verdict) {
  std::map<std::uint32_t, std::vector<StepCount>> counts;  // by stream, then by rank
  const std::size_t ranks = verdict.contributions.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Unpacker in(verdict.contributions[rank]);
    for (const StepCount& count : in.get_list<StepCount>()) {
      counts[count.stream].resize(ranks);
      counts[count.stream][rank] = count;
    }
  }
  std::vector<Told> all;
  for (const auto& [id, of_ranks] : counts) {
    const auto stream = streams_.find(id);
    if (stream == streams_.end()) continue;
    const Status differs = difference(stream->second->name(), of_ranks);
    if (differs.is_ok()) continue;
    const bool begun =
        std::any_of(of_ranks.begin(), of_ranks.end(), [](const StepCount& each) { return each.steps > 0; });
    std::vector<Told> told = stream->second->put_out_of_step(differs, begun);
    all.insert(all.end(), std::make_move_iterator(told.begin()), std::make_move_iterator(told.end()));
  }
  return all;
}

// ---- leaving
// ---------------------------------------------------------------------------------------------------------------

void Client::tell_statistics(const Statistics& statistics) {
  if (roster_.self_served) return;
  Packer out;
  out.put(Message::statistics);
  statistics.pack(out);
  session_.send(roster_.server_transport[0], out.take());
}

Descriptor Client::farewell() {
  Descriptor descriptor;
  descriptor.kind = Descriptor::Kind::farewell;
  return descriptor;
}

}  // namespace tailrace::pipeline
