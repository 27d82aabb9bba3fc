// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <memory>

#include "commands.hpp"
#include "engine/session/select.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/compat/environment.hpp"
#include "ground/settings/settings.hpp"

namespace tailrace::cli {

namespace {

struct PlanRequest {
  int ranks = 0;
  int nodes = 1;
  std::string node_memory;
  std::string options;
  std::string streams;  // a description
  std::string given;    // options of tr_streams_configure
};

/// Returns ranks that fill the nodes in blocks, as launchers place them by default.
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
  const int ranks = std::max(1, request.ranks / request.nodes);
  Result<Bytes> available = request.node_memory.empty() ? Result<Bytes>(ranks * (Bytes{4} << 30))
                                                        : parse_bytes(request.node_memory);
  TR_TRY(available.status().in("--node-memory"));
  const session::Declared declared = session::declare(*settings, *available, ranks);
  settings->io_buffer = session::io_buffer_of(*settings, declared.memory);
  const session::Quotas quotas = session::cut_staging(roster, declared.staging);
  std::printf("%s\n%s\n", session::plan_text(roster, settings->threads).c_str(),
              session::memory_text(roster, quotas, declared, *settings).c_str());
  return {};
}

}  // namespace

void add_plan(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand(
      "plan",
      "Shows without running who would serve, what memory would be for, and what a description writes");
  const auto request = std::make_shared<PlanRequest>();
  command->add_option("--ranks", request->ranks, "ranks in all")->check(CLI::Range(1, 100'000'000));
  CLI::Option* const streams = command->add_option(
      "--streams", request->streams, "checks a description of streams, and prints what it writes");
  command
      ->add_option("--given", request->given,
                   "with --streams: the options that the program gives to tr_streams_configure")
      ->needs(streams);
  command->add_option("--nodes", request->nodes, "nodes that they fill in blocks")
      ->check(CLI::Range(1, 100'000'000));
  command->add_option("--node-memory", request->node_memory,
                      "what a node has available, as 256GiB; without it 4GiB for each of its ranks");
  command->add_option("--options", request->options,
                      "settings, as tr_init takes them; TAILRACE_* variables win");
  command->footer(
      "Examples:\n"
      "  tailrace plan --ranks 64 --nodes 4 --node-memory 256GiB --options servers=node:1\n"
      "  TAILRACE_SERVERS=last:2 tailrace plan --ranks 8\n"
      "  tailrace plan --streams output.yaml --given base=2026-03-01T00:00Z");
  command->callback([request, &exit] {
    if (request->ranks == 0 && request->streams.empty()) throw CLI::RequiredError("--ranks or --streams");
    Status status;
    if (!request->streams.empty()) status = print_streams(request->streams, request->given);
    if (status.is_ok() && request->ranks > 0) status = print_plan(*request);
    exit = status.is_ok() ? Exit::done : report("plan", status);
  });
}

}  // namespace tailrace::cli
