// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sim/rank.hpp"

#include <stdexcept>

#include "base/text.hpp"
#include "sim/stream.hpp"

namespace tailrace::sim {

Rank::Rank(int me, const exchange::Roster& roster, Scheduler& scheduler, Port& port)
    : me_(me),
      roster_(roster),
      port_(port),
      actor_(scheduler, cat("compute rank ", me)),
      agreements_(port, roster.compute_transport, me) {}

void Rank::set_server(pipeline::Server* server, pipeline::Statistics* statistics,
                      std::shared_ptr<Disk> disk) {
  server_ = server;
  statistics_ = statistics;
  disk_ = std::move(disk);
}

bool Rank::pump() {
  bool moved = port_.progress();
  while (std::optional<comm::Envelope> envelope = port_.receive()) {
    dispatch(*envelope);
    moved = true;
  }
  moved = outlet_->advance() || moved;
  if (server_ != nullptr) moved = server_->advance() || moved;
  return moved;
}

void Rank::dispatch(comm::Envelope& envelope) {
  Unpacker in(envelope.bytes);
  const auto kind = in.get<std::uint32_t>();
  if (agreements_.on_message(kind, envelope.source, in)) return;
  if (server_ != nullptr && server_->on_message(kind, envelope.source, in)) return;
  switch (static_cast<pipeline::Message>(kind)) {
    case pipeline::Message::verdict: {
      const auto id = in.get<std::uint32_t>();
      const auto verdict = in.get<pipeline::VerdictKind>();
      const auto step = in.get<std::int64_t>();
      const Status status = Status::unpack(in);
      if (const auto found = streams_.find(id); found != streams_.end())
        found->second->on_verdict(verdict, step, status);
      return;
    }
    case pipeline::Message::credit:
      outlet_->credit(in.get<std::uint64_t>());
      return;
    default:
      throw std::logic_error(cat("a message of unknown kind ", kind, " from rank ", envelope.source));
  }
}

Task<> Rank::wait(std::function<bool()> done, std::string what, bool memory) {
  const std::function<bool()> awake = [this, &done, memory] {
    return port_.has_news() || (memory && done());
  };
  while (!done()) {
    const bool moved = pump();
    // Where there are no servers the rank itself waited for the disk meanwhile.
    co_await actor_.step(disk_ ? disk_->take_spent() : 0);
    if (moved || done()) continue;
    co_await actor_.sleep(awake, what);
  }
}

Task<> Rank::publish(std::function<bool()> attempt) {
  if (attempt()) {
    co_await actor_.step();
    co_return;
  }
  ++times_full_;
  comm::Doorbell* const bell = outlet_->space();
  if (bell == nullptr)
    co_await wait(attempt, "free staging memory, granted by a message");
  else
    co_await wait_for_space(attempt, *bell);
}

Task<> Rank::wait_for_space(const std::function<bool()>& attempt, comm::Doorbell& bell) {
  for (;;) {
    const std::uint32_t ticket = bell.ticket();
    co_await actor_.step();
    if (attempt()) break;
    co_await actor_.step();
    const std::function<bool()> rung = [&bell, ticket] { return bell.rung_since(ticket); };
    co_await actor_.sleep(rung, "free staging memory", timer_);
    bell.cancel();
    co_await actor_.step();
    while (pump()) co_await actor_.step();
  }
  bell.cancel();
}

Task<comm::Verdict> Rank::agree(comm::Vote vote) {
  const std::string what = cat("the other ranks in ", vote.call);
  const std::uint64_t number = agreements_.post(std::move(vote));
  open_agreement_ = number;
  std::optional<comm::Verdict> verdict;
  const std::function<bool()> decided = [this, number, &verdict] {
    if (!verdict) verdict = agreements_.take(number);
    return verdict.has_value();
  };
  co_await wait(decided, what);
  open_agreement_.reset();
  co_return std::move(*verdict);
}

Task<> Rank::leave() {
  const std::function<bool()> drained = [this] { return outlet_->is_drained(); };
  co_await wait(drained, "the servers to take what was put", true);
  if (!roster_.self_served) {
    Packer out;
    out.put(pipeline::Message::statistics);
    statistics_->pack(out);
    port_.send(roster_.server_transport[0], comm::Channel::control, out.take());
  }
  comm::Descriptor farewell;
  farewell.kind = comm::Descriptor::Kind::farewell;
  const std::function<bool()> tell = [this, farewell] { return outlet_->tell(farewell, {}); };
  co_await publish(tell);
  const std::function<bool()> over = [this] {
    return port_.unsent() == 0 && !outlet_->advance() && (server_ == nullptr || server_->is_over());
  };
  co_await wait(over, "the end of the session");
}

std::uint32_t Rank::add_stream(Stream* stream) {
  streams_[next_stream_] = stream;
  return next_stream_++;
}

}  // namespace tailrace::sim
