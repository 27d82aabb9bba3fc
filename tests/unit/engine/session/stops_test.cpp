// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/stops.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace tailrace::session {
namespace {

/// With several ranks in one process, none may take signals.
Settings settings_of(const std::string& options) {
  const Result<Settings> settings = Settings::read("stop_signals=none " + options, {});
  EXPECT_TRUE(settings.is_ok()) << settings.status().text();
  return *settings;
}

/// Two ranks ask once. Returns true if both conclude to stop.
bool ask(Stops& first, Stops& second) {
  const std::vector<ByteVector> votes{first.vote(0), second.vote(1)};
  const bool stop = first.conclude(votes, 0);
  EXPECT_EQ(second.conclude(votes, 1), stop);
  EXPECT_EQ(first.is_stopping(), stop);
  return stop;
}

TEST(stops, with_nothing_to_say_a_vote_is_empty) {
  Stops stops(settings_of("time_limit=1h halt_file=none.there"));
  EXPECT_TRUE(stops.vote(0).empty());
  EXPECT_FALSE(stops.conclude({{}, {}, {}}, 0));
}

TEST(stops, only_the_first_ranks_clock_counts) {
  Stops late(settings_of("time_limit=2020-01-01T00:00Z"));
  Stops early(settings_of("time_limit=1h"));
  EXPECT_TRUE(late.vote(1).empty());
  EXPECT_FALSE(ask(early, late));
  EXPECT_TRUE(ask(late, early));
}

TEST(stops, another_ranks_longer_save_widens_the_margin_of_the_first) {
  Stops first(settings_of("time_limit=1h"));
  Stops second(settings_of("time_limit=1h"));
  first.note_save_seconds(1);
  EXPECT_FALSE(ask(first, second));
  second.note_save_seconds(2000);
  EXPECT_FALSE(ask(first, second));  // the first rank does not know of it yet when it votes
  EXPECT_TRUE(ask(first, second));
}

TEST(stops, once_concluded_it_stays_although_the_reason_goes) {
  const std::string path = ::testing::TempDir() + "stops_test.halt";
  std::ofstream(path).put('\n');
  Stops first(settings_of("halt_file=" + path));
  Stops second(settings_of("halt_file=" + path));
  EXPECT_TRUE(ask(first, second));
  std::remove(path.c_str());
  EXPECT_TRUE(ask(first, second));
  EXPECT_TRUE(first.vote(0).empty());
}

}  // namespace
}  // namespace tailrace::session
