// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/select.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/node/lane.hpp"

namespace tailrace::session {

namespace {

using Kind = ServerChoice::Kind;

/// Returns the ranks of each node, nodes in the order of their first rank.
std::vector<std::vector<int>> ranks_by_node(const std::vector<RankFacts>& world) {
  std::vector<std::vector<int>> nodes;
  std::map<int, std::size_t> position;
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    const auto [found, fresh] = position.emplace(world[rank].node, nodes.size());
    if (fresh) nodes.emplace_back();
    nodes[found->second].push_back(static_cast<int>(rank));
  }
  return nodes;
}

/// Makes the last `count` of these ranks servers, without rank 0. Returns how many of them were no servers
/// before.
Index take_last(const std::vector<int>& ranks, Index count, std::vector<char>& is_server) {
  Index fresh = 0;
  for (auto rank = ranks.rbegin(); rank != ranks.rend() && count > 0; ++rank) {
    if (*rank == 0) continue;
    if (std::exchange(is_server[static_cast<std::size_t>(*rank)], char{1}) == 0) ++fresh;
    --count;
  }
  return fresh;
}

/// Makes `count` servers, one more on each node in turn, so that no node has two more than another.
void spread(const std::vector<RankFacts>& world, Index count, std::vector<char>& is_server) {
  const auto nodes = ranks_by_node(world);
  for (Index round = 1; count > 0; ++round) {
    const Index before = count;
    for (auto node = nodes.rbegin(); node != nodes.rend() && count > 0; ++node)
      count -= take_last(*node, round, is_server);
    if (count == before) return;
  }
}

bool names_host(const std::string& name, const std::string& host) {
  return host == name || host.substr(0, host.find('.')) == name;
}

/// Returns the largest number of servers on one node.
Index most_on_a_node(const std::vector<RankFacts>& world, const std::vector<char>& is_server) {
  Index most = 0;
  for (const std::vector<int>& ranks : ranks_by_node(world))
    most = std::max(most, static_cast<Index>(std::ranges::count_if(ranks, [&](int rank) {
                      return is_server[static_cast<std::size_t>(rank)] != 0;
                    })));
  return most;
}

/// Returns Code::settings unless there are servers and compute ranks and, if a number was asked for, that
/// many servers.
Status check_chosen(const ServerChoice& choice, const std::string& asked, Index servers, Index ranks) {
  const bool short_of = choice.kind == Kind::count && servers < choice.count;
  if (servers > 0 && servers < ranks && !short_of) return {};
  return {Code::settings,
          cat("TAILRACE_SERVERS asks for ", asked, "; of ", counted(ranks, "rank"), " that makes ",
              counted(servers, "server"), " and ", counted(ranks - servers, "compute rank"),
              short_of ? ": there are not as many ranks to serve" : ", and both are needed",
              "; start more ranks or ask for other servers")};
}

}  // namespace

Result<std::vector<char>> select_servers(const ServerChoice& choice, const std::vector<RankFacts>& world) {
  const auto size = static_cast<Index>(world.size());
  std::vector<char> is_server(world.size(), 0);
  if (choice.none()) return is_server;
  std::string asked;
  switch (choice.kind) {
    case Kind::count:
      asked = counted(choice.count, "server");
      spread(world, choice.count, is_server);
      break;
    case Kind::per_node:
      asked = cat(counted(choice.count, "server"), " on each node");
      for (const auto& ranks : ranks_by_node(world)) take_last(ranks, choice.count, is_server);
      // A node of fewer ranks gives all of them.
      if (const Index most = most_on_a_node(world, is_server); most < choice.count)
        return Status(Code::settings, cat("TAILRACE_SERVERS asks for ", asked, ", and no node has more than ",
                                          counted(most, "rank"),
                                          " that may serve (rank 0 computes); start more ranks or "
                                          "ask for fewer servers"));
      break;
    case Kind::last:
      asked = choice.count == 1 ? std::string("the last rank") : cat("the last ", choice.count, " ranks");
      for (Index rank = std::max<Index>(0, size - choice.count); rank < size; ++rank) {
        is_server[static_cast<std::size_t>(rank)] = 1;
      }
      break;
    case Kind::ranks:
      for (const int rank : choice.ranks) {
        if (rank >= size) {
          return Status(Code::settings, cat("TAILRACE_SERVERS names rank ", rank, ", but there are only ",
                                            size, " ranks (0 to ", size - 1, ")"));
        }
        is_server[static_cast<std::size_t>(rank)] = 1;
      }
      asked = "the ranks named";
      break;
    case Kind::hosts:
      for (const std::string& name : choice.hosts) {
        bool found = false;
        for (std::size_t rank = 0; rank < world.size(); ++rank) {
          if (!names_host(name, world[rank].host)) continue;
          is_server[rank] = 1;
          found = true;
        }
        if (!found)
          return Status(Code::settings, cat("TAILRACE_SERVERS names host ", name, ", on which no rank runs"));
      }
      asked = "the hosts named";
      break;
    case Kind::app:
      for (std::size_t rank = 0; rank < world.size(); ++rank)
        is_server[rank] = world[rank].program == choice.app;
      asked = cat("every rank of the program ", choice.app);
      break;
  }
  TR_TRY(check_chosen(choice, asked, std::count(is_server.begin(), is_server.end(), 1), size));
  return is_server;
}

exchange::Roster make_roster(const std::vector<RankFacts>& world, const std::vector<char>& is_server) {
  exchange::Roster roster;
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    auto& transport = is_server[rank] != 0 ? roster.server_transport : roster.compute_transport;
    auto& node = is_server[rank] != 0 ? roster.server_node : roster.compute_node;
    transport.push_back(static_cast<int>(rank));
    node.push_back(world[rank].node);
  }
  if (!roster.server_transport.empty()) {
    exchange::assign_homes(roster);
    return roster;
  }
  roster.self_served = true;
  roster.server_transport = roster.compute_transport;
  roster.server_node = roster.compute_node;
  for (int c = 0; c < roster.computes(); ++c) roster.home.push_back(c);
  roster.shares_node.assign(roster.compute_transport.size(), 0);
  return roster;
}

/// The default budget leaves a quarter of the memory to the program: a capture is never larger than the data
/// that the program holds. The default staging is limited for each rank, because the first stream draws all
/// of it.
Declared declare(const Settings& settings, Bytes available, int ranks) {
  constexpr Bytes most_a_rank = Bytes{512} << 20;
  const Bytes eighth = std::min(available / 8, most_a_rank * std::max(ranks, 2));
  const Bytes memory = settings.memory.value_or(std::max(available / 4 * 3, settings.staging.value_or(0)));
  return {memory, settings.staging.value_or(std::min(eighth, memory / 2))};
}

Bytes io_buffer_of(const Settings& settings, Bytes memory) {
  if (!settings.is_default("io_buffer")) return settings.io_buffer;
  const Bytes share = memory / 4 / std::max(settings.aggregators, 1);
  return std::clamp(share, Settings::least_io_buffer, settings.io_buffer);
}

void Quotas::keep_definitions() {
  for (Bytes& each : lane) {
    // The ring ends where the definitions begin, on a cache line.
    const Bytes whole = each / 64 * 64;
    kept.push_back(whole / 8 / 64 * 64);
    each = whole - kept.back();
  }
}

Quotas cut_staging(const exchange::Roster& roster, Bytes staging) {
  std::map<int, Index> lanes;  // per node: number of quotas that lie there
  std::map<int, Index> servers;
  for (int s = 0; s < roster.servers(); ++s) ++servers[roster.server_node[static_cast<std::size_t>(s)]];
  Quotas quotas;
  if (roster.self_served) {
    for (const int node : roster.server_node) quotas.workspace.push_back(staging / servers[node]);
    quotas.lane.assign(roster.compute_node.size(), 0);
    return quotas;
  }
  const auto home_node = [&](std::size_t c) {
    return roster.server_node[static_cast<std::size_t>(roster.home[c])];
  };
  for (std::size_t c = 0; c < roster.compute_node.size(); ++c) {
    ++lanes[roster.compute_node[c]];
    if (home_node(c) != roster.compute_node[c]) ++lanes[home_node(c)];
  }
  const auto quota = [&](int node) {
    return staging / 4 * 3 / lanes[node] - static_cast<Bytes>(sizeof(node::LaneHeader));
  };
  for (std::size_t c = 0; c < roster.compute_node.size(); ++c)
    quotas.lane.push_back(std::max<Bytes>(std::min(quota(roster.compute_node[c]), quota(home_node(c))), 0));
  for (const int node : roster.server_node) quotas.workspace.push_back(staging / 4 / servers[node]);
  return quotas;
}

Bytes more_lanes_on(int node, const exchange::Roster& roster, const Quotas& quotas) {
  Bytes bytes = 0;
  for (std::size_t c = 0; c < roster.compute_node.size(); ++c) {
    const int home_node = roster.server_node[static_cast<std::size_t>(roster.home[c])];
    bytes += quotas.lane[c] * ((roster.compute_node[c] == node ? 1 : 0) + (home_node == node ? 1 : 0));
  }
  return bytes;
}

std::string plan_text(const exchange::Roster& roster, int threads) {
  const int servers = roster.self_served ? 0 : roster.servers();
  std::string text =
      cat("plan: ranks=", roster.computes() + servers, " compute=", roster.computes(), " servers=", servers);
  if (servers == 0) return cat(text, " executor=inline");
  const auto callers = std::count(roster.shares_node.begin(), roster.shares_node.end(), 0);
  text += " (world ranks";
  for (const int rank : roster.server_transport) text += cat(" ", rank);
  return cat(text, ") executor=servers progress=", callers == 0 ? "servers" : "caller",
             " (ranks without a server on their node: ", callers, ") threads=", threads);
}

std::string memory_text(const exchange::Roster& roster, const Quotas& quotas, const Declared& declared,
                        const Settings& settings) {
  std::string cut;
  if (!roster.self_served) cut = cat("lane=", size_text(quotas.lane[0]), " for each compute rank, ");
  return cat("plan: memory=", size_text(declared.memory),
             " on each node: staging=", size_text(declared.staging), " (", cut,
             "workspace=", size_text(quotas.workspace[0]), " for each ",
             roster.self_served ? "rank" : "server", "), stripes=", size_text(settings.io_buffer),
             " for each aggregator; captures, portions and intervals take from the rest");
}

}  // namespace tailrace::session
