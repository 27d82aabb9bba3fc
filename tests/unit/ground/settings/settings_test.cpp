// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/settings/settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ground/storage/target.hpp"

namespace tailrace {
namespace {

using Environment = std::vector<std::string>;

Settings read(std::string_view options, const Environment& environment = {}) {
  const Result<Settings> settings = Settings::read(options, environment);
  EXPECT_TRUE(settings.is_ok()) << settings.status().text();
  return settings.is_ok() ? *settings : Settings{};
}

std::string error_of(std::string_view options, const Environment& environment = {}) {
  const Result<Settings> settings = Settings::read(options, environment);
  if (settings.is_ok()) return "no error";
  EXPECT_EQ(settings.status().code(), Code::settings);
  return settings.status().text();
}

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(settings, without_any_have_the_defaults_of_the_table) {
  const Settings settings = read("");
  EXPECT_TRUE(settings.servers.none());
  EXPECT_FALSE(settings.staging.has_value());
  EXPECT_EQ(settings.threads, 0);
  EXPECT_EQ(settings.report, "");
  EXPECT_EQ(settings.trace, "");
  EXPECT_EQ(settings.log, LogLevel::warn);
  EXPECT_FALSE(settings.timeout_seconds.has_value());
  EXPECT_EQ(settings.watchdog_seconds, 60);
  EXPECT_EQ(settings.throttle, "");
  EXPECT_EQ(settings.target, "posix");
  EXPECT_TRUE(settings.huge_pages);
  EXPECT_EQ(settings.time_limit.kind, TimeLimit::Kind::automatic);
  EXPECT_FALSE(settings.stop_margin_seconds.has_value());
  EXPECT_EQ(settings.stop_signals, (std::vector<Signal>{{"TERM", SIGTERM}, {"USR1", SIGUSR1}}));
  EXPECT_EQ(settings.halt_file, "");
  EXPECT_EQ(settings.cache, "auto");
  ASSERT_EQ(settings.values.size(), all_settings().size());
  for (std::size_t i = 0; i < settings.values.size(); ++i) {
    EXPECT_EQ(settings.values[i].name, all_settings()[i].name);
    EXPECT_EQ(settings.values[i].value, all_settings()[i].default_value);
    EXPECT_EQ(settings.values[i].origin, "default");
  }
}

TEST(settings, that_all_ranks_need_alike_are_taken_from_another) {
  const Settings other =
      read("servers=2 aggregators=3 threads=5 check_conflicts=on", {"TAILRACE_IO_BUFFER=8MiB"});
  Settings settings = read("parallel_threshold=0", {"TAILRACE_SERVERS=1"});
  for (const SettingValue& value : other.common()) EXPECT_TRUE(settings.take(value).is_ok());
  EXPECT_EQ(settings.servers.count, 2);
  EXPECT_EQ(settings.aggregators, 3);
  EXPECT_EQ(settings.io_buffer, 8 << 20);
  EXPECT_EQ(settings.parallel_threshold, 1 << 20);
  EXPECT_EQ(settings.threads, 0);
  EXPECT_TRUE(settings.check_conflicts);
  ASSERT_EQ(settings.common().size(), 7u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(settings.common()[i].value, other.common()[i].value);
    EXPECT_EQ(settings.common()[i].origin, other.common()[i].origin);
  }
  EXPECT_EQ(settings.take({"colour", "blue", "options"}).code(), Code::settings);
}

TEST(settings, options_set_every_one) {
  const Settings settings = read(
      "servers=2 staging=512MiB threads=3 report=r.json trace=t.json log=debug timeout=10m watchdog=off "
      "throttle=50MB/s,2ms target=uring huge_pages=off time_limit=2h30m stop_margin=90s "
      "donio_errors=return stop_signals=int halt_file=STOP cache=/scratch/kept");
  EXPECT_EQ(settings.servers.count, 2);
  EXPECT_EQ(settings.staging, Bytes{512} << 20);
  EXPECT_EQ(settings.threads, 3);
  EXPECT_EQ(settings.report, "r.json");
  EXPECT_EQ(settings.trace, "t.json");
  EXPECT_EQ(settings.log, LogLevel::debug);
  EXPECT_EQ(settings.timeout_seconds, 600);
  EXPECT_FALSE(settings.watchdog_seconds.has_value());
  EXPECT_EQ(settings.throttle, "50MB/s,2ms");
  EXPECT_EQ(settings.target, "uring");
  EXPECT_FALSE(settings.huge_pages);
  EXPECT_TRUE(settings.donio_returns);
  EXPECT_EQ(settings.time_limit.kind, TimeLimit::Kind::duration);
  EXPECT_EQ(settings.time_limit.seconds, 9000);
  EXPECT_EQ(settings.stop_margin_seconds, 90);
  EXPECT_EQ(settings.stop_signals, (std::vector<Signal>{{"INT", SIGINT}}));
  EXPECT_EQ(settings.halt_file, "STOP");
  EXPECT_EQ(settings.cache, "/scratch/kept");
}

TEST(settings, the_environment_wins_over_the_options) {
  const Settings settings =
      read("servers=1 threads=2", {"PATH=/bin", "TAILRACE_SERVERS=node:2", "TAILRACEX=1", "HOME=/"});
  EXPECT_EQ(settings.servers.kind, ServerChoice::Kind::per_node);
  EXPECT_EQ(settings.threads, 2);
  EXPECT_EQ(settings.values[0].value, "node:2");
  EXPECT_EQ(settings.values[0].origin, "environment");
  EXPECT_EQ(settings.values[3].origin, "options");
}

TEST(settings, an_empty_variable_clears_what_may_be_empty_and_is_an_error_otherwise) {
  EXPECT_EQ(read("report=r.json", {"TAILRACE_REPORT="}).report, "");
  EXPECT_TRUE(mentions(error_of("", {"TAILRACE_STAGING="}),
                       "TAILRACE_STAGING=: the value is empty; the default is auto"));
}

TEST(settings, an_unknown_key_is_an_error_with_the_nearest_one) {
  EXPECT_TRUE(mentions(error_of("stagging=1GiB"), "unknown setting \"stagging\"; did you mean \"staging\"?"));
  EXPECT_TRUE(mentions(error_of("", {"TAILRACE_SERVER=1"}),
                       "unknown environment variable TAILRACE_SERVER; did you mean TAILRACE_SERVERS?"));
  EXPECT_TRUE(mentions(error_of("", {"TAILRACE_="}), "unknown environment variable TAILRACE_;"));
  EXPECT_TRUE(mentions(error_of("", {"TAILRACE_servers=1"}), "did you mean TAILRACE_SERVERS?"));
  EXPECT_TRUE(mentions(error_of("colour=blue"), "unknown setting \"colour\"; `tailrace settings` lists"));
}

TEST(settings, a_bad_value_is_an_error_that_names_its_setting_as_it_was_given) {
  EXPECT_TRUE(mentions(error_of("staging=12QB"), "staging=12QB: \"12QB\" is no size"));
  EXPECT_TRUE(mentions(error_of("staging=0"), "512MiB"));
  EXPECT_TRUE(mentions(error_of("", {"TAILRACE_LOG=wran"}),
                       "TAILRACE_LOG=wran: unknown value \"wran\"; did you mean \"warn\"?"));
  EXPECT_TRUE(mentions(error_of("target=posxi"), "did you mean \"posix\"?"));
  EXPECT_TRUE(mentions(error_of("timeout=5"), "timeout=5: \"5\" is no duration"));
  EXPECT_TRUE(mentions(error_of("watchdog=0"), "off"));
  EXPECT_TRUE(mentions(error_of("threads=-1"), "threads=-1: -1 is out of range; it may be 0 to 4096"));
  EXPECT_TRUE(mentions(error_of("huge_pages=maybe"), "neither on nor off"));
  EXPECT_TRUE(mentions(error_of("servers"), "expected key=value"));
  EXPECT_TRUE(mentions(error_of("threads=1 threads=2"), "given twice"));
}

TEST(time_limit, is_a_duration_a_time_or_a_word) {
  using Kind = TimeLimit::Kind;
  const auto limit = [](const std::string& text) { return read("time_limit=" + text).time_limit; };
  EXPECT_EQ(limit("90min").seconds, 5400);
  EXPECT_EQ(limit("1:30:00").seconds, 5400);
  EXPECT_EQ(limit("1970-01-02T00:00:10Z").kind, Kind::time);
  EXPECT_EQ(limit("1970-01-02T00:00:10Z").seconds, 86410);
  EXPECT_EQ(limit("off").kind, Kind::none);
  EXPECT_EQ(limit("auto").kind, Kind::automatic);
}

TEST(time_limit, what_is_none_is_an_error_that_shows_the_forms) {
  for (const char* const bad : {"time_limit=3600", "time_limit=0", "time_limit=soon"}) {
    EXPECT_TRUE(mentions(error_of(bad), "2h30m") || mentions(error_of(bad), "1h30m")) << error_of(bad);
    EXPECT_TRUE(mentions(error_of(bad), "2026-11-22T12:00Z, auto or off")) << error_of(bad);
  }
  EXPECT_TRUE(mentions(error_of("time_limit=2026-13-01T00:00Z"), "give a duration as 2h30m, auto or off"));
  EXPECT_TRUE(mentions(error_of("stop_margin=5"), "a unit is missing"));
  EXPECT_TRUE(mentions(error_of("stop_margin=5"), "or auto"));
}

TEST(stop_signals, are_named_with_or_without_sig_each_once) {
  const std::vector<Signal> both{{"USR2", SIGUSR2}, {"TERM", SIGTERM}};
  EXPECT_EQ(read("stop_signals=SIGUSR2,term,USR2").stop_signals, both);
  EXPECT_TRUE(read("stop_signals=none").stop_signals.empty());
  EXPECT_TRUE(mentions(error_of("stop_signals=KILL"), "Give some of TERM, INT, HUP, USR1, USR2 and XCPU"));
  EXPECT_TRUE(mentions(error_of("stop_signals=TERM,USR"), "did you mean USR1?"));
  EXPECT_TRUE(mentions(error_of("stop_signals=15"), "\"15\" is no signal"));
}

TEST(servers, every_form_is_read) {
  using Kind = ServerChoice::Kind;
  EXPECT_TRUE(parse_servers("0")->none());
  EXPECT_EQ(parse_servers("4")->count, 4);
  EXPECT_EQ(parse_servers("node:2")->kind, Kind::per_node);
  EXPECT_EQ(parse_servers("node:2")->count, 2);
  EXPECT_EQ(parse_servers("last:3")->kind, Kind::last);
  EXPECT_EQ(parse_servers("last:3")->count, 3);
  EXPECT_EQ(parse_servers("ranks:8,0,16-19")->kind, Kind::ranks);
  EXPECT_EQ(parse_servers("ranks:8,0,16-19")->ranks, (std::vector<int>{0, 8, 16, 17, 18, 19}));
  EXPECT_EQ(parse_servers("hosts:io1, io2")->hosts, (std::vector<std::string>{"io1", "io2"}));
  EXPECT_EQ(parse_servers("app:ioserver")->kind, Kind::app);
  EXPECT_EQ(parse_servers("app:ioserver")->app, "ioserver");
  EXPECT_FALSE(parse_servers("ranks:0")->none());
}

TEST(servers, what_names_no_ranks_is_an_error_that_shows_the_forms) {
  for (const std::string_view text : {"",
                                      "x",
                                      "-1",
                                      "1.5",
                                      "node",
                                      "node:",
                                      "node:0",
                                      "node:x",
                                      "last:-1",
                                      "ranks:",
                                      "ranks:a",
                                      "ranks:1,1",
                                      "ranks:1-3,2",
                                      "ranks:-1",
                                      "ranks:0.5",
                                      "ranks:3000000000",
                                      "hosts:",
                                      "hosts:a,,b",
                                      "hosts:a,a",
                                      "app:",
                                      "nodes:2",
                                      "99999999999"}) {
    const Result<ServerChoice> choice = parse_servers(text);
    ASSERT_FALSE(choice.is_ok()) << text;
    EXPECT_EQ(choice.status().code(), Code::settings);
    EXPECT_TRUE(mentions(choice.status().text(), "node:k, last:n, ranks:")) << choice.status().text();
  }
  EXPECT_TRUE(mentions(parse_servers("rank:1").status().text(), "did you mean \"ranks:\"?"));
  EXPECT_TRUE(mentions(parse_servers("ranks:1-3,2").status().text(), "rank 2 is named twice"));
}

TEST(settings, a_target_is_one_that_programs_may_choose) {
  for (const storage::TargetKind& kind : storage::target_kinds()) {
    const std::string text = "target=" + std::string(kind.name);
    if (kind.for_programs)
      EXPECT_EQ(read(text).target, kind.name);
    else
      EXPECT_TRUE(mentions(error_of(text), "it may be posix, uring") ||
                  mentions(error_of(text), "It may be posix, uring"))
          << error_of(text);
    const auto row = std::ranges::find(all_settings(), "target", &SettingInfo::name);
    EXPECT_EQ(mentions(row->meaning, "`" + std::string(kind.name) + "`: " + std::string(kind.use)),
              kind.for_programs)
        << row->meaning;
  }
}

TEST(settings, the_text_names_each_with_its_variable) {
  const std::string text = settings_text();
  for (const SettingInfo& info : all_settings()) {
    EXPECT_TRUE(mentions(text, std::string(info.name) + " (" + environment_name(info.name) + ")"))
        << info.name;
    EXPECT_FALSE(info.meaning.empty());
    EXPECT_FALSE(info.type.empty());
  }
  EXPECT_EQ(environment_name("parallel_threshold"), "TAILRACE_PARALLEL_THRESHOLD");
}

TEST(settings, the_page_in_the_docs_is_the_generated_one) {
  std::ifstream file(TAILRACE_SETTINGS_PAGE);
  ASSERT_TRUE(file) << TAILRACE_SETTINGS_PAGE;
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), settings_markdown()) << "run: tailrace settings --markdown > docs/settings.md";
}

}  // namespace
}  // namespace tailrace
