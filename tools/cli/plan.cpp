// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstdio>
#include <limits>
#include <memory>

#include "base/settings.hpp"
#include "base/text.hpp"
#include "commands.hpp"
#include "compat/environment.hpp"
#include "session/select.hpp"

namespace tailrace::cli {

namespace {

struct PlanRequest {
  int ranks = 0;
  int nodes = 1;
  std::string options;
};

/// Ranks are laid out in blocks, as launchers do by default.
std::vector<session::RankFacts> imagined_world(const PlanRequest& request) {
  std::vector<session::RankFacts> world;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const int node = static_cast<int>(std::int64_t{rank} * request.nodes / request.ranks);
    world.push_back({node, cat("node", node), "model"});
  }
  return world;
}

Status print_plan(const PlanRequest& request) {
  Result<Settings> settings = Settings::read(request.options, compat::environment());
  TR_TRY(settings.status());
  const std::vector<session::RankFacts> world = imagined_world(request);
  const Result<std::vector<char>> servers = session::select_servers(settings->servers, world);
  TR_TRY(servers.status());
  const exchange::Roster roster = session::make_roster(world, *servers);
  // A session takes this if nothing is said, on a node with enough memory.
  const Bytes staging = settings->staging.value_or(
      session::default_staging(std::numeric_limits<Bytes>::max(), request.ranks / request.nodes));
  const session::Budget budget = session::cut_budget(roster, staging);
  std::printf("%s\n", session::plan_text(roster, budget, staging, settings->threads).c_str());
  return {};
}

}  // namespace

void add_plan(CLI::App& app, int& exit) {
  CLI::App* command =
      app.add_subcommand("plan", "Shows who would serve and how staging would be cut, without running");
  const auto request = std::make_shared<PlanRequest>();
  command->add_option("--ranks", request->ranks, "ranks in all")
      ->required()
      ->check(CLI::Range(1, 100'000'000));
  command->add_option("--nodes", request->nodes, "nodes that they fill in blocks")
      ->check(CLI::Range(1, 100'000'000));
  command->add_option("--options", request->options,
                      "settings, as tr_init takes them; TAILRACE_* variables win");
  command->footer(
      "Examples:\n"
      "  tailrace plan --ranks 64 --nodes 4 --options 'servers=node:1 staging=4GiB'\n"
      "  TAILRACE_SERVERS=last:2 tailrace plan --ranks 8");
  command->callback([request, &exit] {
    const Status status = print_plan(*request);
    exit = status.is_ok() ? Exit::done : report("plan", status);
  });
}

}  // namespace tailrace::cli
