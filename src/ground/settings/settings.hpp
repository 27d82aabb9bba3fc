// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/log.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace {

/// The setting servers=: the ranks that become servers.
struct ServerChoice {
  enum class Kind {
    count,     // n: that many servers, spread over the nodes
    per_node,  // node:k: k servers on each node
    last,      // last:n: the last n ranks
    ranks,     // ranks:0,8,16-19: these ranks of the world
    hosts,     // hosts:io1,io2: every rank on these hosts
    app,       // app:NAME: every rank whose executable has this name (MPMD)
  };
  Kind kind = Kind::count;
  Index count = 0;         // count, per_node, last
  std::vector<int> ranks;  // ascending, each once
  std::vector<std::string> hosts;
  std::string app;
  [[nodiscard]] bool none() const { return kind == Kind::count && count == 0; }
};
Result<ServerChoice> parse_servers(std::string_view text);

/// The time at which the program has to end, for tr_should_stop().
struct TimeLimit {
  enum class Kind {
    automatic,  // auto: Slurm's end of job, if there is one
    none,       // off
    duration,   // seconds from tr_init
    time,       // seconds since 1970-01-01T00:00Z
  };
  Kind kind = Kind::automatic;
  std::int64_t seconds = 0;
};

/// A signal that asks the program to stop: its name without "SIG", and its number here.
struct Signal {
  std::string_view name;
  int number = 0;
  friend bool operator==(const Signal&, const Signal&) = default;
};

struct Settings;

/// One row of the table of settings.
struct SettingInfo {
  std::string_view name;           // in an options string; environment_name tells the variable
  std::string_view default_value;  // as text, "" = none
  std::string_view type;
  std::string_view unit;  // "" = none
  std::string meaning;
  Status (*set)(Settings& settings, std::string_view text);
};

/// One setting as the printed plan shows it: its value as it was written, and where it came from.
struct SettingValue {
  std::string name;
  std::string value;
  std::string origin;  // "default", "options" or "environment"
};

/// The settings of a session. The defaults stand in the table in settings.cpp and nowhere else.
struct Settings {
  ServerChoice servers;
  std::optional<Bytes> memory;   // per node; none = chosen from the node's memory
  std::optional<Bytes> staging;  // per node; none = chosen from the node's memory
  int threads = 0;               // per server; 0 = chosen from the node's cores
  std::string report;            // path; "" = none
  std::string trace;             // path; "" = none
  LogLevel log = LogLevel::warn;
  std::optional<std::int64_t> timeout_seconds;   // none = never give up
  std::optional<std::int64_t> watchdog_seconds;  // none = silent
  std::string throttle;                          // in the form of storage::parse_throttle; "" = none
  std::string fault;                             // "rank=N" and the form of storage::parse_fault; "" = none
  std::string target;                            // a name of storage::target_kinds()
  bool huge_pages = false;
  static constexpr Bytes least_io_buffer = Bytes{64} << 10;
  Bytes io_buffer = 0;           // per aggregator of a collective file
  int io_threads = 0;            // per rank
  int aggregators = 0;           // per node; 0 = one
  Bytes parallel_threshold = 0;  // size of an array in bytes
  bool check_conflicts = false;  // conflicts in shared files and global arrays
  bool check_world = false;      // calls of MPI that wait for servers
  /// Calls of DONIO that Fortran programs make as subroutines return their failures instead of ending all
  /// ranks.
  bool donio_returns = false;
  TimeLimit time_limit;
  std::optional<std::int64_t> stop_margin_seconds;  // none = measured
  std::vector<Signal> stop_signals;
  std::string halt_file;             // path; "" = none
  std::string cache;                 // in the form of sources::cache_directory
  std::vector<SettingValue> values;  // every setting, in the order of the table

  /// Reads the settings: the environment has precedence over `options`, and `options` over the defaults.
  /// `environment` has "NAME=value" entries; entries not named TAILRACE_* are ignored. An unknown key or
  /// TAILRACE_* variable and a bad value give Code::settings with the nearest valid one.
  static Result<Settings> read(std::string_view options, std::span<const std::string> environment);

  /// True if neither the options nor the environment give the setting `name`.
  [[nodiscard]] bool is_default(std::string_view name) const;
  /// Returns the settings that must be the same on all ranks. Ranks with different values would wait for each
  /// other forever.
  [[nodiscard]] std::vector<SettingValue> common() const;
  /// Sets one of the settings of common() to another rank's value.
  Status take(const SettingValue& value);
};

/// The table of all settings.
std::span<const SettingInfo> all_settings();
/// Returns the environment variable of a setting: "TAILRACE_STAGING" for "staging".
std::string environment_name(std::string_view setting);
/// Return the table as plain text, and as the page docs/settings.md.
std::string settings_text();
std::string settings_markdown();

}  // namespace tailrace
