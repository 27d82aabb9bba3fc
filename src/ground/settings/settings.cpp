// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/settings/settings.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <limits>

#include "ground/base/calendar.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/target.hpp"

namespace tailrace {
namespace {

constexpr std::string_view kPrefix = "TAILRACE_";

Result<TimeLimit> parse_time_limit(std::string_view text) {
  using Kind = TimeLimit::Kind;
  if (text == "auto") return TimeLimit{Kind::automatic, 0};
  if (text == "off") return TimeLimit{Kind::none, 0};
  constexpr std::string_view others = ", a time in UTC as 2026-11-22T12:00Z, auto or off";
  // Only a time has a T between its date and its time of day; a duration never has one.
  if (text.find('T') != std::string_view::npos) {
    const Result<DateTime> time = parse_time(text, Calendar::proleptic_gregorian);
    if (!time.is_ok()) {
      return Status(Code::settings, cat(time.status().text(), "; or give a duration as 2h30m, auto or off"));
    }
    return TimeLimit{Kind::time, to_seconds(*time, Calendar::proleptic_gregorian)};
  }
  const Result<std::int64_t> value = parse_duration(text);
  if (!value.is_ok()) return Status(Code::settings, cat(value.status().text(), others));
  if (*value == 0) return Status(Code::settings, cat("0 is no limit; give a duration as 2h30m", others));
  return TimeLimit{Kind::duration, *value};
}

constexpr Signal kSignals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},
                               {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"XCPU", SIGXCPU}};

/// Builds a vector, because clang 14 does not compile the views of libstdc++ 12.
template <typename Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

/// Parses a list of signals such as "TERM,SIGUSR1", in any case, or "none".
Result<std::vector<Signal>> parse_signals(std::string_view text) {
  std::vector<Signal> signals;
  if (text == "none") return signals;
  for (const std::string& word : split(text, ',')) {
    std::string name = upper_case(word);
    if (name.starts_with("SIG")) name.erase(0, 3);
    const auto found = std::ranges::find(kSignals, name, &Signal::name);
    if (found == std::end(kSignals)) {
      const std::string near = nearest(name, names_of(kSignals));
      return Status(Code::settings,
                    cat("\"", word, "\" is no signal that can ask a program to stop",
                        near.empty() ? "." : cat("; did you mean ", near, "?"),
                        " Give some of TERM, INT, HUP, USR1, USR2 and XCPU, with commas, or none"));
    }
    if (std::ranges::find(signals, *found) == signals.end()) signals.push_back(*found);
  }
  return signals;
}

template <auto member, auto parse>
Status set_parsed(Settings& settings, std::string_view text) {
  auto value = parse(text);
  TR_TRY(value.status());
  settings.*member = std::move(*value);
  return {};
}

template <std::string Settings::*member>
Status set_text(Settings& settings, std::string_view text) {
  settings.*member = text;
  return {};
}

template <int Settings::*member, int most>
Status set_count(Settings& settings, std::string_view text) {
  const Result<std::int64_t> value = parse_integer(text, 0, most);
  TR_TRY(value.status());
  settings.*member = static_cast<int>(*value);
  return {};
}

/// Sets an optional number; the word `none` leaves it unset. `zero` says why the number may not be 0; with ""
/// it may be 0.
Status set_optional(std::optional<std::int64_t>& number, std::string_view text, std::string_view none,
                    Result<std::int64_t> (*parse)(std::string_view), std::string_view zero) {
  number = std::nullopt;
  if (text == none) return {};
  const Result<std::int64_t> value = parse(text);
  if (!value.is_ok()) return {Code::settings, cat(value.status().text(), ", or ", none)};
  if (*value == 0 && !zero.empty()) return {Code::settings, std::string(zero)};
  number = *value;
  return {};
}

template <std::optional<std::int64_t> Settings::*member>
Status set_limit(Settings& settings, std::string_view text) {
  return set_optional(settings.*member, text, "off", parse_duration,
                      "0 is no limit; give a duration such as 60s, or off");
}

template <std::optional<Bytes> Settings::*member>
Status set_memory(Settings& settings, std::string_view text) {
  return set_optional(settings.*member, text, "auto", parse_bytes,
                      "0 bytes hold nothing; give a size such as 512MiB, or auto");
}

Status set_stop_margin(Settings& settings, std::string_view text) {
  return set_optional(settings.stop_margin_seconds, text, "auto", parse_duration, "");
}

Status set_io_buffer(Settings& settings, std::string_view text) {
  TR_TRY((set_parsed<&Settings::io_buffer, parse_bytes>(settings, text)));
  if (settings.io_buffer < Settings::least_io_buffer)
    return {Code::settings,
            cat(settings.io_buffer, " bytes hold no portion; give at least ", Settings::least_io_buffer)};
  return {};
}

Status set_log(Settings& settings, std::string_view text) {
  const Result<std::size_t> value = parse_choice(text, {"error", "warn", "info", "debug"});
  TR_TRY(value.status());
  settings.log = static_cast<LogLevel>(*value);
  return {};
}

Status set_donio_errors(Settings& settings, std::string_view text) {
  const Result<std::size_t> value = parse_choice(text, {"stop", "return"});
  TR_TRY(value.status());
  settings.donio_returns = *value == 1;
  return {};
}

/// Checks the text alone: a load reads it from Settings::values once it misses a log.
Status set_lost_logs(Settings&, std::string_view text) {
  return parse_choice(text, {"fail", "go_on"}).status();
}

/// Each stream checks the name of its method or handoff, which it reads from Settings::values.
Status set_of_streams(Settings&, std::string_view) { return {}; }

Status set_target(Settings& settings, std::string_view text) {
  std::vector<std::string_view> names;
  for (const storage::TargetKind& kind : storage::target_kinds())
    if (kind.for_programs) names.push_back(kind.name);
  TR_TRY(parse_choice(text, names).status());
  settings.target = text;
  return {};
}

/// Returns the targets that programs may choose, each with its use.
std::string meaning_of_target() {
  std::string text;
  for (const storage::TargetKind& kind : storage::target_kinds()) {
    if (!kind.for_programs) continue;
    text += cat(text.empty() ? "how bytes reach storage: `" : "; `", kind.name, "`: ", kind.use);
  }
  return text;
}

// The one table of settings. Reading, `tailrace settings` and docs/settings.md all use it.
const std::array<SettingInfo, 28> kTable{{
    {"servers", "0", "servers", "",
     "which ranks become I/O servers: `n` (that many, spread over the nodes), `node:k` (k on each node), "
     "`last:n` (the last n ranks), `ranks:0,8,16-19`, `hosts:io1,io2` (all ranks there), `app:NAME` (all "
     "ranks of that "
     "executable, MPMD); 0 runs everything inside the calls",
     set_parsed<&Settings::servers, parse_servers>},
    {"memory", "auto", "size", "bytes per node",
     "memory that the library may take: staging, stripes of collective files, captures of checkpoints, "
     "portions of out-of-core arrays, pages of shared files, what streams accumulate over intervals, "
     "steps and decoding of streams that are read, coordinates of layouts and of "
     "open streams. "
     "A call that needs more fails "
     "with `TR_ERR_MEMORY` on all ranks, and "
     "says who has taken it; auto is three quarters of the memory that the node has available at `tr_init`",
     set_memory<&Settings::memory>},
    {"staging", "auto", "size", "bytes per node",
     "the part of `memory` into which streams capture data, and in which servers encode, as `512MiB`; auto "
     "is an eighth of the memory that the node has available, at most `512MiB` for each of its ranks and "
     "half of `memory`. With servers each field that a stream defines allocates room for two steps of it, "
     "and "
     "a rank allocates more while servers are behind",
     set_memory<&Settings::staging>},
    {"threads", "0", "count", "threads per server",
     "threads that encode; 0 chooses from the CPUs that the node's ranks may use and do not need, 4 at "
     "most. Beside them each file that is worked on has a thread that waits for storage, 64 at most",
     set_count<&Settings::threads, 4096>},
    {"report", "", "path", "",
     "file for the report in JSON: where the time of each process goes, and what became of each stream. It "
     "is "
     "rewritten about once a second while the job runs",
     set_text<&Settings::report>},
    {"trace", "", "path", "",
     "file for the trace of events, which Perfetto and chrome://tracing read, with field, level and lead of "
     "what is encoded and written",
     set_text<&Settings::trace>},
    {"log", "warn", "choice", "",
     "least severe message that is printed: `error`, `warn`, `info` (prints the plan too) or `debug`. A "
     "session "
     "whose streams were written or read says at its end, in one line, what happened, but for `error`",
     set_log},
    {"timeout", "off", "duration or off", "",
     "after which a collective that does not complete aborts the job, as `10m`. With servers, also the time "
     "after which a job ends in which no compute rank calls the library: longer than a model computes "
     "between two calls, or it calls `tr_progress` meanwhile",
     set_limit<&Settings::timeout_seconds>},
    {"watchdog", "60s", "duration or off", "",
     "after which the ranks that a collective still waits for are printed. With servers, also the time after "
     "which the first of them says, once, that no compute rank calls the library",
     set_limit<&Settings::watchdog_seconds>},
    {"throttle", "", "rate[,latency][,reads]", "",
     "slows storage to a stated rate, as `50MB/s` or `50MB/s,2ms`: writes and syncs, with `,reads` behind it "
     "reads, too; "
     "for tests and benchmarks",
     set_text<&Settings::throttle>},
    {"fault", "", "fault plan", "",
     "fails storage calls on purpose, for tests: `rank=2 nth=3 fault=enospc calls=write,sync for=good` "
     "(rank of the world, all without it; faults eio, enospc, edquot, eintr, short)",
     set_text<&Settings::fault>},
    {"target", storage::target_kinds().front().name, "choice", "", meaning_of_target(), set_target},
    {"huge_pages", "on", "switch", "", "asks for huge pages for the staging memory",
     set_parsed<&Settings::huge_pages, parse_boolean>},
    {"io_buffer", "100MiB", "size", "bytes per aggregator",
     "memory that holds what asynchronous calls of collective files have captured; calls that wait for "
     "storage go through 16 MiB, at most half of it. If it is not given, all of a node's aggregators take a "
     "quarter of `memory` at most",
     set_io_buffer},
    {"io_threads", "5", "count", "threads per rank",
     "threads that work for collective files, each for one file at a time; a save behind the program has "
     "one more, and so has a call that waits for its file; 0: the calls do the work themselves",
     set_count<&Settings::io_threads, 1024>},
    {"aggregators", "0", "count", "per node",
     "ranks of each node that read and write files of the parallel mode; 0: one",
     set_count<&Settings::aggregators, 1024>},
    {"parallel_threshold", "1MiB", "size", "bytes",
     "arrays of fewer bytes go through the I/O rank alone, also in files of the parallel mode",
     set_parsed<&Settings::parallel_threshold, parse_bytes>},
    {"check_conflicts", "off", "switch", "",
     "for debugging: each sync of a shared file or global array compares what the ranks have read and "
     "written since the last one, and prints which bytes or elements one rank wrote while another used "
     "them. Each rank notes at most 16 MiB of places for each file",
     set_parsed<&Settings::check_conflicts, parse_boolean>},
    {"check_world", "off", "switch", "",
     "for debugging, with servers: a compute rank that has not called the library for the time of `watchdog` "
     "(60 s if that is off), and is in a call of MPI, prints which one, and from where in the program. "
     "Servers take part in no call with `MPI_COMM_WORLD`",
     set_parsed<&Settings::check_world, parse_boolean>},
    {"donio_errors", "stop", "choice", "",
     "what becomes of a call that fails among those that Fortran programs for DONIO may make as subroutines "
     "(all but `doopen` and `dolseek`): `stop` prints why and ends all ranks; `return` prints why and "
     "returns "
     "-1, for programs that take the results",
     set_donio_errors},
    {"time_limit", "auto", "duration or time", "",
     "when the program is to have ended, for `tr_should_stop`: from `tr_init` on, as `2h30m`, or a time in "
     "UTC, as `2026-11-22T12:00Z`; auto is Slurm's end of job (`SLURM_JOB_END_TIME`), if there is one; off "
     "is none",
     set_parsed<&Settings::time_limit, parse_time_limit>},
    {"stop_margin", "auto", "duration", "",
     "how long before the time limit `tr_should_stop` says so; auto is the longest step so far, twice the "
     "longest save and 5 s",
     set_stop_margin},
    {"stop_signals", "TERM,USR1", "signals or none", "",
     "signals that make `tr_should_stop` say so instead of ending the program: of `TERM INT HUP USR1 USR2 "
     "XCPU`",
     set_parsed<&Settings::stop_signals, parse_signals>},
    {"halt_file", "", "path", "", "file whose existence makes `tr_should_stop` say so",
     set_text<&Settings::halt_file>},
    {"cache", "auto", "path, auto or none", "",
     "directory in which inventories of files that are read are kept, at most 1,000; auto is "
     "`$XDG_CACHE_HOME/tailrace`, or `$HOME/.cache/tailrace` without that variable; none keeps nothing",
     set_text<&Settings::cache>},
    {"method", "scan", "name", "",
     "how servers write the records of streams that say nothing themselves (`method=`): one of the "
     "[methods](methods.md), or `auto`",
     set_of_streams},
    {"handoff", "auto", "name", "",
     "how the data of streams that say nothing themselves (`handoff=`) reaches the servers: "
     "[`auto`, `shared`, `messages` or `onesided`](methods.md#handoff)",
     set_of_streams},
    {"lost_logs", "fail", "choice", "",
     "what a run does that goes on from a checkpoint which covers a file (`tr_checkpoint_covers`) that is "
     "gone "
     "or was replaced: `fail`, or `go_on` with a warning and leave the file as it is",
     set_lost_logs},
}};

const SettingInfo* find_row(std::string_view name) {
  for (const SettingInfo& row : kTable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Status apply(Settings& settings, const SettingInfo& row, std::string_view value, std::string_view origin) {
  const std::string where =
      cat(origin == "environment" ? environment_name(row.name) : std::string(row.name), "=", value);
  if (value.empty() && !row.default_value.empty()) {
    return {Code::settings, cat(where, ": the value is empty; the default is ", row.default_value)};
  }
  TR_TRY(row.set(settings, value).in(where));
  SettingValue& entry = settings.values[static_cast<std::size_t>(&row - kTable.data())];
  entry = {std::string(row.name), std::string(value), std::string(origin)};
  return {};
}

Status apply_options(Settings& settings, std::string_view text) {
  const Result<Options> options = Options::parse(text);
  TR_TRY(options.status());
  for (const Option& option : options->entries()) {
    const SettingInfo* row = find_row(option.key);
    if (!row) {
      return {Code::settings,
              cat("unknown setting \"", option.key, "\"",
                  did_you_mean(option.key, names_of(kTable), "`tailrace settings` lists them all"))};
    }
    TR_TRY(apply(settings, *row, option.value, "options"));
  }
  return {};
}

Status apply_environment(Settings& settings, std::span<const std::string> environment) {
  for (const std::string& entry : environment) {
    if (!entry.starts_with(kPrefix)) continue;
    const std::size_t equals = entry.find('=');
    const std::string variable = entry.substr(0, equals);
    const std::string name = lower_case(std::string_view(variable).substr(kPrefix.size()));
    const SettingInfo* row = find_row(name);
    // A variable whose name is not all in capitals is refused: it would be set in one shell, and the next
    // program would not see it.
    if (!row || environment_name(name) != variable) {
      const std::string near = nearest(name, names_of(kTable));
      return {Code::settings,
              cat("unknown environment variable ", variable, "; ",
                  near.empty() ? "" : cat("did you mean ", environment_name(near), "? "),
                  "`tailrace settings` lists them all; unset it if it is not meant for Tailrace")};
    }
    const std::string value = equals == std::string::npos ? "" : entry.substr(equals + 1);
    TR_TRY(apply(settings, *row, value, "environment"));
  }
  return {};
}

Status bad_servers(std::string_view text, std::string_view reason) {
  return {Code::settings, cat("\"", text, "\" does not say which ranks are servers: ", reason,
                              "; it may be n, node:k, last:n, ranks:0,8,16-19, hosts:NAME,NAME or app:NAME")};
}

Status read_rank_list(std::string_view text, std::string_view list, std::vector<int>& ranks) {
  const Result<std::vector<double>> numbers = parse_number_list(list);
  if (!numbers.is_ok()) return bad_servers(text, numbers.status().text());
  for (const double number : *numbers) {
    const bool whole = number >= 0 && number <= std::numeric_limits<int>::max() &&
                       number == static_cast<double>(static_cast<int>(number));
    if (!whole) return bad_servers(text, cat(number, " is no rank"));
    ranks.push_back(static_cast<int>(number));
  }
  std::ranges::sort(ranks);
  const auto twice = std::ranges::adjacent_find(ranks);
  if (twice != ranks.end()) return bad_servers(text, cat("rank ", *twice, " is named twice"));
  return {};
}

Status read_count(std::string_view text, std::string_view number, std::int64_t least, Index& count) {
  const Result<std::int64_t> value = parse_integer(number, least, std::numeric_limits<int>::max());
  if (!value.is_ok()) return bad_servers(text, value.status().text());
  count = *value;
  return {};
}

}  // namespace

Result<ServerChoice> parse_servers(std::string_view text) {
  using Kind = ServerChoice::Kind;
  ServerChoice choice;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    TR_TRY(read_count(text, text, 0, choice.count));
    return choice;
  }
  const std::string_view form = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  const std::vector<std::string_view> forms{"node", "last", "ranks", "hosts", "app"};
  const auto found = std::ranges::find(forms, form);
  if (found == forms.end()) {
    const std::string near = nearest(form, forms);
    return bad_servers(
        text, near.empty() ? cat("there is no \"", form, ":\"") : cat("did you mean \"", near, ":\"?"));
  }
  choice.kind = static_cast<Kind>(static_cast<int>(Kind::per_node) + static_cast<int>(found - forms.begin()));
  if (rest.empty()) return bad_servers(text, "nothing follows the colon");
  switch (choice.kind) {
    case Kind::count:
    case Kind::per_node:
    case Kind::last:
      TR_TRY(read_count(text, rest, 1, choice.count));
      break;
    case Kind::ranks:
      TR_TRY(read_rank_list(text, rest, choice.ranks));
      break;
    case Kind::app:
      choice.app = rest;
      break;
    case Kind::hosts:
      choice.hosts = split(rest, ',');
      for (const std::string& host : choice.hosts) {
        if (host.empty()) return bad_servers(text, "a host name is empty");
        if (std::ranges::count(choice.hosts, host) > 1) {
          return bad_servers(text, cat("host ", host, " is named twice"));
        }
      }
      break;
  }
  return choice;
}

Result<Settings> Settings::read(std::string_view options, std::span<const std::string> environment) {
  Settings settings;
  settings.values.resize(kTable.size());
  for (const SettingInfo& row : kTable) TR_TRY(apply(settings, row, row.default_value, "default"));
  TR_TRY(apply_options(settings, options));
  TR_TRY(apply_environment(settings, environment));
  return settings;
}

bool Settings::is_default(std::string_view name) const {
  return std::ranges::any_of(
      values, [&](const SettingValue& value) { return value.name == name && value.origin == "default"; });
}

std::vector<SettingValue> Settings::common() const {
  constexpr std::array<std::string_view, 7> names{
      "servers", "io_buffer", "aggregators", "parallel_threshold", "check_conflicts", "method", "handoff"};
  std::vector<SettingValue> found;
  for (const SettingValue& value : values) {
    if (std::ranges::find(names, value.name) != names.end()) found.push_back(value);
  }
  return found;
}

Status Settings::take(const SettingValue& value) {
  const SettingInfo* row = find_row(value.name);
  if (!row) return {Code::settings, cat("unknown setting \"", value.name, "\"")};
  return apply(*this, *row, value.value, value.origin);
}

std::span<const SettingInfo> all_settings() { return kTable; }

std::string environment_name(std::string_view setting) { return cat(kPrefix, upper_case(setting)); }

std::string settings_text() {
  std::string out;
  for (const SettingInfo& info : kTable) {
    const std::string unit = info.unit.empty() ? "" : cat(", ", info.unit);
    out +=
        cat(info.name, " (", environment_name(info.name), ")\n    ", info.meaning, "\n    type: ", info.type,
            unit, "; default: ", info.default_value.empty() ? std::string_view("none") : info.default_value,
            "\n");
  }
  return out;
}

std::string settings_markdown() {
  std::string out =
      "# Settings\n\n"
      "<!-- Written by `tailrace settings --markdown` from the table in src/ground/settings/settings.cpp: "
      "change "
      "that, "
      "not this. -->\n\n"
      "A setting is given in the environment (`TAILRACE_STAGING=512MiB`) or in the options of `tr_init`\n"
      "(`\"staging=512MiB\"`). The environment wins. An unknown key, an unknown `TAILRACE_*` variable and a "
      "bad value are\n"
      "errors (`TR_ERR_SETTINGS`) that name a similar valid one. Sizes take `kB MB GB TB` (powers of 1000) "
      "and\n"
      "`KiB MiB GiB TiB` (powers of 1024), durations `d h m s` (`1h30m`) or `hh:mm[:ss]`, switches `on` "
      "and `off`.\n\n"
      "Each rank reads an environment of its own, which not every launcher passes on to other nodes. "
      "`servers`, `io_buffer`,\n"
      "`aggregators`, `parallel_threshold` and `check_conflicts` are those of rank 0 on every rank; where "
      "another rank was\n"
      "given something else, a warning says so.\n\n"
      "Most programs set at most three: `servers`, to have ranks that write while the others compute; "
      "`memory`, where the\n"
      "program itself will need more than a quarter of what its node has left at `tr_init`; and `report`, to "
      "[see where time goes](reports.md).\n"
      "The others are for\n\n"
      "- jobs that have to end in time: `time_limit`, `stop_margin`, `stop_signals` and `halt_file` "
      "([stopping](stopping.md));\n"
      "- programs that hang, or may be wrong: `log`, `trace`, `timeout`, `watchdog`, `check_conflicts` and "
      "`check_world`;\n"
      "- machines on which another value is faster, as `report` shows: `staging`, `threads`, `target`, "
      "`huge_pages`, `cache`, `method` and\n"
      "  `handoff`, and\n"
      "  for collective files `io_buffer`, `io_threads`, `aggregators` and `parallel_threshold`;\n"
      "- Fortran programs for DONIO: `donio_errors`;\n"
      "- runs whose logs were removed or rotated since their last checkpoint: `lost_logs`;\n"
      "- tests and benchmarks: `throttle` and `fault`.\n\n"
      "| setting | environment | default | type | unit | meaning |\n"
      "|---|---|---|---|---|---|\n";
  for (const SettingInfo& info : kTable) {
    const std::string value = info.default_value.empty() ? "none" : cat("`", info.default_value, "`");
    out += cat("| `", info.name, "` | `", environment_name(info.name), "` | ", value, " | ", info.type, " | ",
               info.unit, " | ", info.meaning, " |\n");
  }
  return out;
}

}  // namespace tailrace
