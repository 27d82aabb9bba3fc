// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "session_world.hpp"

#include <stdexcept>

#include "base/log.hpp"
#include "base/text.hpp"
#include "streams/ledger.hpp"

namespace tailrace::sim {

Result<std::shared_ptr<files::Group>> SessionRank::group(const std::vector<int>& ranks) {
  std::shared_ptr<files::Group>& group = groups_[ranks];
  if (group != nullptr) return group;
  Result<std::unique_ptr<comm::Line>> line = comm::Line::open_among(
      session_.board(), std::make_shared<const comm::Members>(ranks), "opening a group of ranks");
  TR_TRY(line.status());
  return group = std::make_shared<files::Group>(service_, std::move(*line));
}

SessionWorld::SessionWorld(Job job, std::uint64_t seed) : job_(std::move(job)), world_(job_.ranks, seed) {
  set_log_level(LogLevel::error);
}

session::Facts SessionWorld::facts_of(int rank) const {
  session::Facts facts;
  facts.rank = rank;
  const auto more = job_.more_settings.find(rank);
  // No threads: what a thread would do is done inside the call.
  const std::string settings = cat("servers=0 io_threads=0 huge_pages=off stop_signals=none ", job_.settings,
                                   " ", more == job_.more_settings.end() ? "" : more->second);
  Result<Settings> read = Settings::read(settings, {});
  if (!read.is_ok()) throw std::runtime_error(read.status().text());
  facts.settings = *read;
  for (int each = 0; each < job_.ranks; ++each) {
    const int node = each / job_.ranks_per_node;
    facts.ranks.push_back({node * job_.ranks_per_node, cat("node", node), "model", 1, job_.ranks_per_node});
  }
  facts.serves.assign(static_cast<std::size_t>(job_.ranks), char{0});
  facts.storage = job_.storage;
  facts.stops = std::make_unique<session::Stops>(facts.settings);
  return facts;
}

void SessionWorld::run_rank(FibreRank& fibre, const std::function<void(SessionRank&)>& program) {
  Result<std::unique_ptr<session::Session>> session =
      session::Session::create(fibre.port(), facts_of(fibre.rank()), streams::make_ledger);
  if (!session.is_ok()) {
    failures_.push_back(session.status());
    return;
  }
  {
    SessionRank rank(fibre, **session);
    program(rank);
    if (const Status met = (*session)->meet_in_finalize(); !met.is_ok()) failures_.push_back(met);
  }
  (*session)->leave();
}

std::vector<std::string> SessionWorld::run(const std::function<void(SessionRank&)>& program,
                                           Nanoseconds limit) {
  return world_.run([&](FibreRank& fibre) { run_rank(fibre, program); }, limit);
}

}  // namespace tailrace::sim
