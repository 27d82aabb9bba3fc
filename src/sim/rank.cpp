// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sim/rank.hpp"

#include <stdexcept>

#include "base/text.hpp"

namespace tailrace::sim {

namespace {

comm::Switchboard& connected(comm::Switchboard& board, Port& port) {
  board.connect(port);
  return board;
}

}  // namespace

Rank::Rank(int me, const exchange::Roster& roster, Scheduler& scheduler, Port& port,
           std::shared_ptr<const comm::Members> all, std::shared_ptr<const comm::Members> computes)
    : me_(me),
      roster_(roster),
      port_(port),
      actor_(scheduler, cat("compute rank ", me)),
      line_(connected(board_, port), comm::line_number::session, std::move(all)),
      computes_(board_, comm::line_number::computes, std::move(computes)),
      client_(line_, computes_, roster) {
  board_.add_work([this] {
    const bool moved = outlet_->advance();
    return (server_ != nullptr && server_->advance()) || moved;
  });
}

void Rank::set_outlet(std::unique_ptr<pipeline::Outlet> outlet) {
  outlet_ = std::move(outlet);
  client_.grant_to(*outlet_);
}

void Rank::set_server(pipeline::Server* server, pipeline::Statistics* statistics,
                      std::shared_ptr<Disk> disk) {
  server_ = server;
  statistics_ = statistics;
  disk_ = std::move(disk);
}

bool Rank::pump() {
  const bool moved = board_.pump();
  if (board_.strays() > 0) throw std::logic_error("a message came of a kind that nobody takes");
  return moved;
}

Task<> Rank::wait(std::function<bool()> done, std::string what, bool memory) {
  const std::function<bool()> awake = [this, &done, memory] {
    return port_.has_news() || (memory && done());
  };
  while (!done()) {
    outlet_->announce();
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

Task<> Rank::tell(pipeline::Told told) {
  const std::function<bool()> attempt = [this, &told] { return outlet_->tell(told.descriptor, told.bytes); };
  co_await publish(attempt);
}

Task<comm::Verdict> Rank::agree(comm::Vote vote) {
  const std::string what = cat("the other ranks in ", vote.call);
  co_await tell({client_.fence(), {}});
  comm::Verdict verdict = co_await verdict_of(client_.vote(std::move(vote)), what);
  if (verdict.status.is_ok()) co_return verdict;
  const comm::Verdict steps = co_await verdict_of(client_.vote_steps(), what);
  for (pipeline::Told& told : client_.compare_steps(steps)) co_await tell(std::move(told));
  co_return verdict;
}

Task<comm::Verdict> Rank::verdict_of(std::uint64_t agreement, std::string what) {
  open_agreement_ = agreement;
  std::optional<comm::Verdict> verdict;
  const std::function<bool()> decided = [this, agreement, &verdict] {
    if (!verdict) verdict = client_.take(agreement);
    return verdict.has_value();
  };
  co_await wait(decided, what);
  open_agreement_.reset();
  co_return std::move(*verdict);
}

Task<> Rank::leave() {
  const std::function<bool()> drained = [this] { return outlet_->is_drained(); };
  co_await wait(drained, "the servers to take what was put", true);
  client_.tell_statistics(*statistics_);
  co_await tell({pipeline::Client::farewell(), {}});
  const std::function<bool()> over = [this] {
    return board_.all_sent() && !outlet_->advance() && (server_ == nullptr || server_->is_over());
  };
  co_await wait(over, "the end of the session");
}

}  // namespace tailrace::sim
