// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fibre_world.hpp"
#include "files/group.hpp"
#include "files/service.hpp"
#include "session/session.hpp"
#include "storage/target.hpp"

namespace tailrace::sim {

/// A job of the simulated world: its ranks, `ranks_per_node` on each node, all on the same storage.
struct Job {
  int ranks = 1;
  int ranks_per_node = 1;
  std::string settings;                      // as tr_init takes them
  std::map<int, std::string> more_settings;  // of single ranks
  std::shared_ptr<storage::Target> storage;
};

/// One rank between tr_init and tr_finalize: all that a program has there.
class SessionRank {
 public:
  SessionRank(FibreRank& fibre, session::Session& session)
      : fibre_(fibre), session_(session), service_(session) {}

  [[nodiscard]] int rank() const { return session_.rank(); }
  [[nodiscard]] int ranks() const { return session_.ranks(); }
  [[nodiscard]] FibreRank& fibre() { return fibre_; }
  [[nodiscard]] session::Session& session() { return session_; }
  [[nodiscard]] files::Service& files() { return service_; }
  /// Collective over `ranks`, when they are named for the first time: as a communicator of the program.
  Result<std::shared_ptr<files::Group>> group(const std::vector<int>& ranks);

 private:
  FibreRank& fibre_;
  session::Session& session_;
  files::Service service_;
  std::map<std::vector<int>, std::shared_ptr<files::Group>> groups_;
};

/// Runs a program on the library's own session, file and checkpoint code, in simulated time.
class SessionWorld {
 public:
  SessionWorld(Job job, std::uint64_t seed);

  [[nodiscard]] FibreWorld& world() { return world_; }
  /// Runs `program` between tr_init and tr_finalize of each rank, once. Returns what FibreWorld::run()
  /// returns. What tr_init or tr_finalize returned, where it was an error, is in failures().
  [[nodiscard]] std::vector<std::string> run(const std::function<void(SessionRank&)>& program,
                                             Nanoseconds limit = FibreWorld::hour);
  [[nodiscard]] const std::vector<Status>& failures() const { return failures_; }

 private:
  [[nodiscard]] session::Facts facts_of(int rank) const;
  void run_rank(FibreRank& fibre, const std::function<void(SessionRank&)>& program);

  const Job job_;
  FibreWorld world_;
  std::vector<Status> failures_;
};

}  // namespace tailrace::sim
