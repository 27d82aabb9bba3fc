// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "ground/node/lane.hpp"

namespace tailrace::session {
namespace {

/// `ranks_per_node[n]` ranks on node n, placed block-wise; host names h0.site, h1.site, ...
std::vector<RankFacts> world_of(const std::vector<int>& ranks_per_node) {
  std::vector<RankFacts> world;
  for (std::size_t node = 0; node < ranks_per_node.size(); ++node) {
    for (int i = 0; i < ranks_per_node[node]; ++i) {
      // A node's number is that of its first rank in the world.
      const int number = static_cast<int>(world.size()) - i;
      world.push_back({number, "h" + std::to_string(node) + ".site", "model"});
    }
  }
  return world;
}

Result<std::vector<char>> select(const std::string& text, const std::vector<RankFacts>& world) {
  Result<ServerChoice> choice = parse_servers(text);
  TR_TRY(choice.status());
  return select_servers(*choice, world);
}

/// Returns the servers as a list of ranks, or the text of the error.
std::string chosen(const std::string& text, const std::vector<RankFacts>& world) {
  const Result<std::vector<char>> servers = select(text, world);
  if (!servers.is_ok()) return servers.status().text();
  std::string list;
  for (std::size_t rank = 0; rank < servers->size(); ++rank) {
    if ((*servers)[rank] != 0) list += (list.empty() ? "" : " ") + std::to_string(rank);
  }
  return list;
}

TEST(SelectServers, none_when_none_are_asked_for) { EXPECT_EQ(chosen("0", world_of({4})), ""); }

TEST(SelectServers, a_count_takes_the_last_ranks_of_one_node) {
  EXPECT_EQ(chosen("1", world_of({4})), "3");
  EXPECT_EQ(chosen("3", world_of({4})), "1 2 3");
}

TEST(SelectServers, a_count_is_spread_over_the_nodes) {
  EXPECT_EQ(chosen("3", world_of({4, 4, 4})), "3 7 11");
  EXPECT_EQ(chosen("2", world_of({4, 4})), "3 7");
  EXPECT_EQ(chosen("4", world_of({4, 4, 4})), "3 7 10 11");
}

TEST(SelectServers, no_node_has_two_servers_more_than_another_that_has_room) {
  for (int count = 1; count <= 11; ++count) {
    const std::vector<RankFacts> world = world_of({4, 4, 4});
    const Result<std::vector<char>> servers = select(std::to_string(count), world);
    ASSERT_TRUE(servers.is_ok()) << servers.status().text();
    std::vector<int> per_node(3, 0);
    for (std::size_t rank = 0; rank < world.size(); ++rank) per_node[rank / 4] += (*servers)[rank];
    EXPECT_EQ(std::accumulate(per_node.begin(), per_node.end(), 0), count);
    // Rank 0 computes, so its node has room for three.
    for (const int each : {1, 2}) {
      EXPECT_LE(std::abs(per_node[static_cast<std::size_t>(each)] - per_node[0]), 1) << count;
    }
  }
}

TEST(SelectServers, nodes_of_one_rank_get_servers_where_there_is_room) {
  EXPECT_EQ(chosen("3", world_of({1, 4, 1})), "3 4 5");
}

TEST(SelectServers, rank_0_computes_unless_it_is_named) {
  EXPECT_EQ(chosen("node:1", world_of({1, 2, 2})), "2 4");
  EXPECT_EQ(chosen("ranks:0", world_of({3})), "0");
  EXPECT_EQ(chosen("last:2", world_of({2})).find("TAILRACE_SERVERS"), 0U);
}

TEST(SelectServers, a_count_for_each_node) {
  EXPECT_EQ(chosen("node:1", world_of({3, 3})), "2 5");
  EXPECT_EQ(chosen("node:2", world_of({3, 4})), "1 2 5 6");
  // A node with fewer ranks gives all of them.
  EXPECT_EQ(chosen("node:2", world_of({3, 1})), "1 2 3");
  EXPECT_NE(chosen("node:9", world_of({3})).find("9 servers on each node, and no node has more than 2 ranks"),
            std::string::npos);
}

TEST(SelectServers, the_last_ranks) {
  EXPECT_EQ(chosen("last:1", world_of({2, 2})), "3");
  EXPECT_EQ(chosen("last:3", world_of({2, 2})), "1 2 3");
}

TEST(SelectServers, a_list_of_ranks) {
  EXPECT_EQ(chosen("ranks:0,2,4-5", world_of({6})), "0 2 4 5");
  const std::string error = chosen("ranks:1,6", world_of({6}));
  EXPECT_NE(error.find("names rank 6, but there are only 6 ranks (0 to 5)"), std::string::npos) << error;
}

TEST(SelectServers, hosts_by_full_or_short_name) {
  EXPECT_EQ(chosen("hosts:h1", world_of({2, 2, 1})), "2 3");
  EXPECT_EQ(chosen("hosts:h1.site,h2", world_of({2, 2, 1})), "2 3 4");
  const std::string error = chosen("hosts:h1,elsewhere", world_of({2, 2}));
  EXPECT_NE(error.find("host elsewhere, on which no rank runs"), std::string::npos) << error;
  EXPECT_NE(chosen("hosts:h", world_of({2, 2})).find("host h,"), std::string::npos);
}

TEST(SelectServers, a_program_by_its_name) {
  std::vector<RankFacts> world = world_of({2, 2});
  world[1].program = world[3].program = "io_server";
  EXPECT_EQ(chosen("app:io_server", world), "1 3");
  const std::string error = chosen("app:io_serve", world);
  EXPECT_NE(error.find("every rank of the program io_serve; of 4 ranks that makes 0 servers"),
            std::string::npos)
      << error;
}

TEST(SelectServers, somebody_must_compute) {
  for (const std::string text : {"last:4", "ranks:0-3", "hosts:h0", "app:model", "last:9"}) {
    const Result<std::vector<char>> servers = select(text, world_of({4}));
    EXPECT_EQ(servers.status().code(), Code::settings) << text;
    EXPECT_NE(servers.status().text().find("of 4 ranks that makes 4 servers and 0 compute ranks"),
              std::string::npos)
        << servers.status().text();
  }
}

TEST(SelectServers, a_count_that_cannot_be_had_is_an_error) {
  EXPECT_EQ(select("4", world_of({4})).status().code(), Code::settings);
  EXPECT_EQ(select("1", world_of({1})).status().code(), Code::settings);
}

TEST(Roster, compute_ranks_keep_their_order_and_prefer_a_server_of_their_node) {
  const std::vector<RankFacts> world = world_of({3, 3});
  const exchange::Roster roster = make_roster(world, *select("node:1", world));
  EXPECT_EQ(roster.compute_transport, (std::vector<int>{0, 1, 3, 4}));
  EXPECT_EQ(roster.server_transport, (std::vector<int>{2, 5}));
  EXPECT_EQ(roster.home, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(roster.shares_node, (std::vector<char>{1, 1, 1, 1}));
  EXPECT_FALSE(roster.self_served);
}

TEST(Roster, ranks_of_a_node_without_a_server_are_shared_out_over_all) {
  const std::vector<RankFacts> world = world_of({4, 2});
  const exchange::Roster roster = make_roster(world, *select("last:2", world));
  EXPECT_EQ(roster.home, (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(roster.shares_node, (std::vector<char>{0, 0, 0, 0}));
}

TEST(Roster, without_servers_each_rank_is_its_own) {
  const std::vector<RankFacts> world = world_of({3});
  const exchange::Roster roster = make_roster(world, *select("0", world));
  EXPECT_TRUE(roster.self_served);
  EXPECT_EQ(roster.home, (std::vector<int>{0, 1, 2}));
}

TEST(staging, of_a_node_is_never_exceeded) {
  constexpr Bytes staging = Bytes{100} << 20;
  const std::vector<std::vector<int>> clusters = {{4}, {3, 3}, {8, 1, 5}, {1, 1, 1, 4}};
  for (const auto& cluster : clusters) {
    for (const std::string text : {"0", "node:1", "last:1", "last:3", "2"}) {
      const std::vector<RankFacts> world = world_of(cluster);
      const Result<std::vector<char>> servers = select(text, world);
      if (!servers.is_ok()) continue;
      const exchange::Roster roster = make_roster(world, *servers);
      const Quotas quotas = cut_staging(roster, staging);
      std::map<int, Bytes> used;
      for (int s = 0; s < roster.servers(); ++s) {
        used[roster.server_node[static_cast<std::size_t>(s)]] +=
            quotas.workspace[static_cast<std::size_t>(s)];
      }
      // Without servers there are no lanes.
      for (int c = 0; c < roster.computes() && !roster.self_served; ++c) {
        const auto i = static_cast<std::size_t>(c);
        const int home_node = roster.server_node[static_cast<std::size_t>(roster.home[i])];
        used[roster.compute_node[i]] += node::lane_bytes(quotas.lane[i]);
        // Data that travels to another node is held there, too.
        if (home_node != roster.compute_node[i]) used[home_node] += node::lane_bytes(quotas.lane[i]);
      }
      for (const auto& [node, bytes] : used) EXPECT_LE(bytes, staging) << text << " on node " << node;
    }
  }
}

TEST(staging, lanes_of_one_more_kind_take_a_ring_at_each_rank_and_one_at_its_home) {
  for (const std::vector<int>& cluster : {std::vector<int>{4}, {3, 3}, {2, 2, 1}}) {
    for (const std::string text : {"node:1", "last:1", "last:2"}) {
      const std::vector<RankFacts> world = world_of(cluster);
      const Result<std::vector<char>> servers = select(text, world);
      if (!servers.is_ok()) continue;
      const exchange::Roster roster = make_roster(world, *servers);
      const Quotas quotas = cut_staging(roster, Bytes{100} << 20);
      Bytes all = 0, of_ranks = 0;
      std::set<int> nodes(roster.compute_node.begin(), roster.compute_node.end());
      nodes.insert(roster.server_node.begin(), roster.server_node.end());
      for (const int node : nodes) all += more_lanes_on(node, roster, quotas);
      for (const Bytes lane : quotas.lane) of_ranks += lane;
      EXPECT_EQ(all, 2 * of_ranks) << text;
      const int first = roster.compute_node[0];
      const auto lies_there = std::ranges::count(roster.compute_node, first);
      if (roster.server_node.size() == 1 && roster.server_node[0] != first)
        EXPECT_EQ(more_lanes_on(first, roster, quotas), lies_there * quotas.lane[0]) << text;
    }
  }
}

// The field has 3600 x 1801 floats in CCSDS, the widest that their accuracy may need.
TEST(staging, of_a_node_of_24_GiB_takes_a_field_of_a_tenth_of_a_degree) {
  constexpr Bytes gibibyte = Bytes{1} << 30, needed = 182873394;
  for (int ranks = 2; ranks <= 4; ++ranks) {
    for (const char* const servers : {"0", "1"}) {
      const std::vector<RankFacts> world(static_cast<std::size_t>(ranks), RankFacts{0, "a", "model"});
      const auto chosen = select_servers(*parse_servers(servers), world);
      ASSERT_TRUE(chosen.is_ok());
      const Declared declared = declare({}, 20 * gibibyte, ranks);
      const Quotas quotas = cut_staging(make_roster(world, *chosen), declared.staging);
      for (const Bytes bytes : quotas.workspace) EXPECT_GE(bytes, needed) << ranks << " " << servers;
    }
  }
  EXPECT_EQ(declare({}, 2 * gibibyte, 64).staging, gibibyte / 4) << "an eighth";
  EXPECT_EQ(declare({}, 1024 * gibibyte, 64).staging, 32 * gibibyte) << "512 MiB a rank";
}

TEST(declared_memory, is_what_the_settings_give_and_leaves_the_program_a_quarter_otherwise) {
  constexpr Bytes mib = Bytes{1} << 20;
  const auto of = [](const char* options) { return declare(*Settings::read(options, {}), 800 * mib, 4); };
  EXPECT_EQ(of("").memory, 600 * mib);
  EXPECT_EQ(of("").staging, 100 * mib) << "an eighth of the node";
  EXPECT_EQ(of("memory=80MiB").memory, 80 * mib);
  EXPECT_EQ(of("memory=80MiB").staging, 40 * mib) << "half of the budget";
  EXPECT_EQ(of("memory=80MiB staging=70MiB").staging, 70 * mib);
  EXPECT_EQ(of("staging=700MiB").memory, 700 * mib) << "a budget that nobody gave holds the staging";
}

TEST(io_buffer, takes_a_quarter_of_the_budget_at_most_unless_it_is_given) {
  constexpr Bytes mib = Bytes{1} << 20;
  const auto of = [](const char* options, Bytes memory) {
    return io_buffer_of(*Settings::read(options, {}), memory);
  };
  EXPECT_EQ(of("", 4000 * mib), 100 * mib);
  EXPECT_EQ(of("", 200 * mib), 50 * mib);
  EXPECT_EQ(of("aggregators=5", 200 * mib), 10 * mib);
  EXPECT_EQ(of("", 1000), Settings::least_io_buffer);
  EXPECT_EQ(of("io_buffer=90MiB", 200 * mib), 90 * mib);
}

}  // namespace
}  // namespace tailrace::session
