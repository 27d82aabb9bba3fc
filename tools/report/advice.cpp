// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "advice.hpp"

#include <algorithm>
#include <cmath>

#include "figures.hpp"
#include "ground/base/text.hpp"
#include "words.hpp"

namespace tailrace::reports {

namespace {

constexpr Rule kStaging{"staging", 1, "%", "of the compute ranks' time they waited for room in staging",
                        "a larger `TAILRACE_STAGING`, if it holds fewer steps than `staging_steps`; "
                        "otherwise the servers are behind"};
constexpr Rule kStagingSteps{"staging_steps", 1.5, "steps",
                             "fit into the part of staging that captures use: enough",
                             "the value that `staging` names holds that many"};
constexpr Rule kEncoder{"encoder", 70, "%",
                        "of their time the servers' threads that encode did so, and assembled",
                        "more `TAILRACE_THREADS` or servers, `packing=simple`, fewer bits"};
constexpr Rule kStorage{
    "storage", 50, "%", "of their time the servers, or their threads, waited for storage",
    "fewer bytes (`accuracy=`, `packing=ccsds`), a faster file system; more servers do not help, unless "
    "`encoder` or `one_writer` says so"};
constexpr Rule kOneWriter{"one_writer", 50, "%",
                          "of the run the only server that writes a stream was busy with it",
                          "`method=scan`, where the file system bears several writers of a file"};
constexpr Rule kIdle{"idle_servers", 50, "%",
                     "of their time the servers were idle after 5 s or 2 durable steps, and fewer would be "
                     "busy for 70 % at most",
                     "fewer servers: the others compute"};
constexpr Rule kBalance{"server_balance", 2, "times",
                        "the mean of the servers is what the busiest did, and it was busy for 50 %",
                        "streams with several fields or levels to deal out; `method=scan`"};
constexpr Rule kInline{"no_server", 10, "%", "of their time ranks without a server encoded and wrote",
                       "a server on each node: `TAILRACE_SERVERS=node:1`"};
constexpr Rule kGets{"late_gets", 10, "%",
                     "of the gets of a stream had to wait, for 1 % of the ranks' time or more",
                     "a larger `prefetch=`, more `TAILRACE_IO_THREADS`"};
constexpr Rule kSkew{"skew", 5, "%", "of their time ranks waited for slower ranks",
                     "the balance of the model, not its output"};
constexpr Rule kMessages{"messages", 5, "%",
                         "of the compute ranks' time went into messages and barriers of the library",
                         "a server on each node: `TAILRACE_SERVERS=node:1`"};
constexpr Rule kServerMessages{"server_messages", 30, "%",
                               "of their time servers waited for messages of other servers",
                               "fewer servers, or one on each node; another `method=`"};
constexpr Rule kDurableWaits{
    "durable_waits", 5, "%", "of their time ranks with servers waited until steps were durable",
    "fewer and later `tr_stream_wait` and `tr_stream_close`, unless the servers are behind"};
constexpr Rule kStalls{"stalls", 10, "times",
                       "the median time to durable is that of the slowest steps (p99), which is 1 s or more",
                       "a look at the file system: others use it"};
constexpr Rule kBehind{"behind", 3, "steps",
                       "passed until the slowest steps (p99) were durable, after 1 s or more",
                       "fewer bytes; more servers or threads, unless `storage` speaks"};
constexpr Rule kFullDisk{"full_disk", 1, "waits", "for room on a full disk", "room; fewer bytes"};
constexpr Rule kNoNews{
    "no_news", 35, "s",
    "have passed since a running job wrote its report; without servers, since rank 0 called the library",
    "a look whether the job is alive"};
constexpr Rule kRules[] = {kStaging,      kStagingSteps, kEncoder, kStorage,  kOneWriter, kIdle,
                           kBalance,      kInline,       kGets,    kSkew,     kMessages,  kServerMessages,
                           kDurableWaits, kStalls,       kBehind,  kFullDisk, kNoNews};

/// The busiest that fewer servers should be, and the least that the busiest of several is for a rule.
constexpr double kBusyEnough = 0.7, kBusyForBalance = 0.5;
/// The least seconds that a slow step takes, for the rules of time to durable.
constexpr double kSlowStep = 1;
/// The least share of the ranks' time that late gets take.
constexpr double kLateTime = 0.01;
/// A running job tells of its servers after so many seconds, or so many durable steps.
constexpr double kWarmSeconds = 5, kWarmSteps = 2;

/// True if a value reaches the threshold of a rule. Sums of decimal fractions fall short by their last bits.
bool reaches(double value, const Rule& rule) {
  const double threshold = rule.unit == "%" ? rule.threshold / 100 : rule.threshold;
  return std::isfinite(value) && value >= threshold * (1 - 1e-12);
}

std::string servers_text(double servers) { return count_of(servers, "server"); }
std::string quoted(const Stream& stream) { return cat("\"", shortened(plain(stream.name), 60), "\""); }
bool has_server(const Run& run) { return run.servers > 0; }

bool is_slow(const Stream& stream) {
  return stream.durable.count >= 1 && reaches(stream.durable.p99, {"", kSlowStep, "s", "", ""});
}
/// Returns how many steps have passed until the slowest were durable.
double steps_behind(const Run& run, const Stream& stream) {
  const double step = stream.steps > 1 ? run.elapsed.value_or(0) / stream.steps : 0;
  return step > 0 ? stream.durable.p99 / step : 0;
}
bool is_behind(const Run& run, const Stream& stream) {
  return is_slow(stream) && reaches(steps_behind(run, stream), kBehind);
}

/// Returns the share of the run in which the only server that writes a stream was busy with it, or 0 if there
/// are several. With `serial` it encodes, too.
double share_of_writer(const Run& run, const Stream& stream, double encoders) {
  const bool is_one = stream.method == "serial" || stream.method == "writer" || stream.method == "writer_aio";
  if (!is_one || run.servers < 2 || run.elapsed.value_or(0) <= 0) return 0;
  double busy = stream.write.most + stream.fsync.most + stream.commit.most;
  if (stream.method == "serial") busy += (stream.encode.most + stream.assemble.most) / encoders;
  return busy / *run.elapsed;
}

/// Figures that several rules look at.
struct Seen {
  explicit Seen(const Run& run) : totals(totals_of(run)) {
    staging_full = share_of(run, computes, false, {"staging_full"});
    Share threads, written;
    for (const Process& process : run.processes) {
      if (!serves(process)) continue;
      loads.push_back(load_of(process));
      load_in_all += loads.back();
      encoders = std::max(encoders, process.encoders);
      add(encoding_of(process), threads);
      add(storing_of(process), written);
    }
    encode = threads.of > 0 ? threads : share_of(run, serves, false, {"encode", "assemble"});
    const Share waited =
        share_of(run, serves, false, {"wait_for_storage", "write", "fsync", "commit", "wait"});
    storage = written.value() > waited.value() ? written : waited;
    for (const Stream& stream : run.streams) {
      behind = behind || is_behind(run, stream);
      one_writer = one_writer || reaches(share_of_writer(run, stream, encoders), kOneWriter);
    }
  }
  static void add(const Share& share, Share& all) {
    all.seconds += share.seconds;
    all.of += share.of;
    ++all.processes;
  }
  [[nodiscard]] bool ranks_waited() const { return reaches(staging_full.value(), kStaging); }
  [[nodiscard]] bool encoder_is_limit() const { return reaches(encode.value(), kEncoder); }
  [[nodiscard]] bool storage_is_limit() const { return reaches(storage.value(), kStorage); }

  Totals totals;
  Share staging_full;
  Share encode;             // of the servers' threads that encode
  Share storage;            // of the servers or of their threads that write, whichever is more
  double encoders = 1;      // of a server
  bool behind = false;      // a stream is
  bool one_writer = false;  // and is busy
  std::vector<double> loads;
  double load_in_all = 0;
};

/// Returns "0.6 steps", "1 step" or "12 steps".
std::string steps_text(double steps) {
  const double tenths = std::round(steps * 10) / 10;
  return cat(tenths, tenths == 1 ? " step" : " steps");
}

/// Returns a size that people choose, as 1, 1.5, 2, 3 or 4 GiB, that is not below `bytes`.
double round_size(double bytes) {
  double size = 1 << 20;
  while (size < bytes && size < 1e18) size *= 2;
  return size * 0.75 >= bytes ? size * 0.75 : size;
}

/// Returns the steps of all streams that the staging of the nodes holds; 0 if that is not known.
double steps_in_staging(const Run& run, const Totals& totals) {
  const double for_captures = has_server(run) ? 0.75 : 1;
  if (!run.staging_bytes || totals.staged_per_step <= 0) return 0;
  return *run.staging_bytes * run.nodes * for_captures / totals.staged_per_step;
}

void advise_staging(const Run& run, const Seen& seen, std::vector<Advice>& all) {
  if (!seen.ranks_waited()) return;
  Advice advice{kStaging.name, "", "", seen.staging_full.value()};
  advice.text = cat("Ranks waited ", seconds_text(seen.staging_full.mean()), " each (",
                    percent_text(seen.staging_full.value()), " of their time) for room in staging: ");
  const double steps = steps_in_staging(run, seen.totals);
  if (steps <= 0) {
    advice.text += "set a larger TAILRACE_STAGING, or more servers if every step waits.";
  } else if (!reaches(steps, kStagingSteps)) {
    const double wanted = round_size(*run.staging_bytes * kStagingSteps.threshold / steps);
    advice.set = cat("TAILRACE_STAGING=", size_text(static_cast<Bytes>(wanted)));
    advice.text += cat(size_text(static_cast<Bytes>(*run.staging_bytes)), " on a node hold ",
                       steps_text(steps), "; set ", advice.set, ".");
  } else {
    advice.text += cat(size_text(static_cast<Bytes>(*run.staging_bytes)), " on a node hold ",
                       steps_text(steps), ", which is enough; the servers do not keep up.");
  }
  all.push_back(std::move(advice));
}

void advise_limits(const Run& run, const Seen& seen, std::vector<Advice>& all) {
  if (!has_server(run)) return;
  const std::string waited =
      seen.ranks_waited() ? " is the limit: " : " is close to the limit, though ranks hardly waited so far: ";
  if (seen.encoder_is_limit()) {
    const double more = std::max(std::ceil(run.servers * seen.encode.value() / kBusyEnough), run.servers + 1);
    all.push_back(
        {kEncoder.name,
         cat("The encoder", waited, "the threads that encode spent ", percent_text(seen.encode.value()),
             " of their time on records. More servers (", count_text(more), " in place of ",
             count_text(run.servers),
             ") or TAILRACE_THREADS, where cores are free; packing=simple or fewer bits cost less."),
         "", seen.encode.value()});
  }
  if (seen.storage_is_limit()) {
    const std::string rate =
        run.elapsed && *run.elapsed > 0
            ? cat(", at ", bytes_text(seen.totals.bytes_durable / *run.elapsed), "/s over the run")
            : "";
    all.push_back({kStorage.name,
                   cat("Storage", waited, "servers waited ", percent_text(seen.storage.value()),
                       " of their time for it", rate,
                       ". Write fewer bytes (accuracy=, packing=ccsds) or to a faster file system",
                       seen.one_writer || seen.encoder_is_limit() ? "." : "; more servers do not help."),
                   "", seen.storage.value()});
  }
}

void advise_writer(const Run& run, const Seen& seen, std::vector<Advice>& all) {
  for (const Stream& stream : run.streams) {
    const double share = share_of_writer(run, stream, seen.encoders);
    if (!reaches(share, kOneWriter)) continue;
    const std::string instead =
        stream.method_chosen.empty()
            ? "method=scan lets all servers write, where the file system bears several "
              "writers of a file; otherwise cut the stream into several files."
            : "The file system does not bear several writers of a file: cut the stream into several files.";
    all.push_back({kOneWriter.name,
                   cat("One writer (method=", stream.method, ") saturates: of ", servers_text(run.servers),
                       " one alone writes ", quoted(stream), ", and was busy with it for ",
                       percent_text(share), " of the run. ", instead),
                   stream.method_chosen.empty() ? "method=scan" : "", share});
  }
}

/// Returns the value of TAILRACE_SERVERS for so many servers.
std::string setting_of_servers(double servers, double nodes) {
  if (nodes > 1 && std::fmod(servers, nodes) == 0)
    return cat("TAILRACE_SERVERS=node:", std::llround(servers / nodes));
  return cat("TAILRACE_SERVERS=", std::llround(servers));
}

/// True if the run tells enough of its servers: of all of them, and of more than its beginning.
bool tells_of_servers(const Run& run, const Seen& seen) {
  if (static_cast<double>(seen.loads.size()) != run.servers || run.state == State::failed) return false;
  if (seen.totals.bytes_written <= 0) return false;
  return run.state != State::running || run.elapsed.value_or(0) >= kWarmSeconds ||
         seen.totals.durable_steps.value_or(0) >= kWarmSteps;
}

void advise_servers(const Run& run, const Seen& seen, std::vector<Advice>& all) {
  const double servers = run.servers;
  if (servers < 2 || !tells_of_servers(run, seen)) return;
  const double idle = 1 - seen.load_in_all / servers, busiest = std::ranges::max(seen.loads);
  // A node that has a server keeps one: its ranks capture by one copy.
  const double least = servers >= run.nodes ? run.nodes : 1;
  const double enough = std::max(least, std::ceil(seen.load_in_all / kBusyEnough - 1e-9));
  if (reaches(idle, kIdle) && enough < servers && !seen.ranks_waited()) {
    const std::string setting = setting_of_servers(enough, run.nodes);
    all.push_back({kIdle.name,
                   cat(servers_text(servers), " were idle ", percent_text(idle), " of the time: ",
                       count_text(enough), enough == 1 ? " is" : " are", " enough; set ", setting, "."),
                   setting, idle * (servers - enough) / (servers + run.compute_ranks)});
  } else if (reaches(busiest, {"", kBusyForBalance * 100, "%", "", ""}) &&
             reaches(busiest / (seen.load_in_all / servers), kBalance)) {
    all.push_back({kBalance.name,
                   cat("One server was busy ", percent_text(busiest), " of the time, and all ",
                       count_text(servers), " in the mean ", percent_text(seen.load_in_all / servers),
                       ": records are dealt out one by one, so streams with several fields or levels and "
                       "method=scan share the work."),
                   "", busiest - seen.load_in_all / servers});
  }
}

void advise_no_server(const Run& run, const Seen& seen, std::vector<Advice>& all) {
  if (has_server(run) || seen.totals.streams == 0) return;
  const Share jobs = share_of(run, computes, false,
                              {"encode", "assemble", "write", "fsync", "commit", "wait", "wait_for_storage"});
  const double share = jobs.value();
  if (!reaches(share, kInline)) return;
  const std::string setting = run.nodes > 1 ? "TAILRACE_SERVERS=node:1" : "TAILRACE_SERVERS=1";
  all.push_back({kInline.name,
                 cat("Ranks encoded and wrote themselves for ", percent_text(share), " of their time (",
                     seconds_text(jobs.mean()),
                     " each). A server on each node does that while they compute; "
                     "set ",
                     setting, ", with one rank more on each node."),
                 setting, share});
}

void advise_ranks(const Run& run, const Seen& seen, std::vector<Advice>& all) {
  const Share skew = share_of(run, computes, false, {"skew"});
  if (reaches(skew.value(), kSkew)) {
    all.push_back(
        {kSkew.name,
         cat("Skew: ranks waited ", seconds_text(skew.mean()), " each (", percent_text(skew.value()),
             " of their time) in tr_stream_end for slower ranks. It is the balance of the model, not its "
             "output."),
         "", skew.value()});
  }
  const Share messages = share_of(run, computes, false, {"message", "barrier"});
  if (reaches(messages.value(), kMessages)) {
    const bool spread_out = has_server(run) && run.servers < run.nodes;
    all.push_back(
        {kMessages.name,
         cat("Ranks spent ", seconds_text(messages.mean()), " each (", percent_text(messages.value()),
             " of their time) in messages and barriers of the library. ",
             spread_out
                 ? "Not every node has a server: set TAILRACE_SERVERS=node:1."
                 : "Call tr_progress in long stretches without a call, and define and open less often."),
         spread_out ? "TAILRACE_SERVERS=node:1" : "", messages.value()});
  }
  const Share durable = share_of(run, computes, false, {"wait_for_storage"});
  if (has_server(run) && reaches(durable.value(), kDurableWaits)) {
    all.push_back(
        {kDurableWaits.name,
         cat("Ranks waited ", seconds_text(durable.mean()), " each (", percent_text(durable.value()),
             " of their time) until steps were durable",
             seen.ranks_waited() || seen.behind
                 ? ": the servers do not keep up, so waiting later does not help."
                 : ". Call tr_stream_wait and tr_stream_close later and less often: servers write while the "
                   "program computes."),
         "", durable.value()});
  }
  const Share servers = share_of(run, serves, false, {"wait_for_messages"});
  if (has_server(run) && reaches(servers.value(), kServerMessages)) {
    all.push_back(
        {kServerMessages.name,
         cat("Servers waited ", percent_text(servers.value()),
             " of their time for messages of other servers. Fewer servers, or one on each node, have less to "
             "tell each other; another method= may need fewer messages."),
         "", servers.value() / 2});
  }
}

void advise_durable(const Run& run, const Seen& seen, const Stream& stream, std::vector<Advice>& all) {
  const Spread& durable = stream.durable;
  if (is_slow(stream) && durable.median > 0 && reaches(durable.p99 / durable.median, kStalls)) {
    all.push_back(
        {kStalls.name,
         cat("Storage stalls: steps of ", quoted(stream), " are durable after ", seconds_text(durable.median),
             " (median), but the slowest take ", seconds_text(durable.p99), " (p99) and ",
             seconds_text(durable.most), " (max). Who else uses the file system?"),
         "", 0.01});
  }
  if (is_behind(run, stream)) {
    const bool by_storage = seen.storage_is_limit();
    all.push_back(
        {kBehind.name,
         cat("Steps of ", quoted(stream), " are durable late: the slowest after ", seconds_text(durable.p99),
             " (p99), while ", count_text(std::floor(steps_behind(run, stream))), " more steps of ",
             seconds_text(*run.elapsed / stream.steps), " passed; so many are lost if the job is killed. ",
             by_storage ? "Faster storage or fewer bytes help."
                        : "More servers or threads, or fewer bytes, help."),
         "", 0.02});
  }
}

void advise_stream(const Run& run, const Seen& seen, const Stream& stream, std::vector<Advice>& all) {
  const double gets = stream.gets_in_memory + stream.gets_late;
  const double time = run.elapsed.value_or(0) * run.compute_ranks;
  if (gets > 0 && reaches(stream.gets_late / gets, kGets) &&
      stream.get_wait.sum >= kLateTime * time * (1 - 1e-12) && time > 0) {
    all.push_back(
        {kGets.name,
         cat("Late gets: of ", count_text(gets), " gets of ", quoted(stream), ", ",
             count_text(stream.gets_late), " (", percent_text(stream.gets_late / gets), ") had to wait, ",
             seconds_text(stream.get_wait.sum),
             " in all. Read further ahead (prefetch=, TAILRACE_IO_THREADS), or start the first step later."),
         "", stream.get_wait.sum / time});
  }
  if (reaches(stream.waits_for_space, kFullDisk)) {
    all.push_back({kFullDisk.name,
                   cat("The disk was full: ", quoted(stream), " waited ",
                       count_of(stream.waits_for_space, "time"), " for room."),
                   "", 1});
  }
  advise_durable(run, seen, stream, all);
}

}  // namespace

std::span<const Rule> rules() { return kRules; }

bool can_advise(const Run& run) { return !run.processes.empty() && run.elapsed.value_or(0) > 0; }

std::vector<Advice> advise(const Run& run) {
  const Seen seen(run);
  std::vector<Advice> all;
  advise_staging(run, seen, all);
  advise_limits(run, seen, all);
  advise_writer(run, seen, all);
  advise_servers(run, seen, all);
  advise_no_server(run, seen, all);
  advise_ranks(run, seen, all);
  for (const Stream& stream : run.streams) advise_stream(run, seen, stream, all);
  std::ranges::stable_sort(all, std::greater<>(), &Advice::at_stake);
  return all;
}

std::string no_advice(const Run& run) {
  if (!can_advise(run))
    return cat("Too little is known of this run for advice: ",
               run.processes.empty() ? "the report has no times of processes." : "no time has passed.");
  return "Nothing to advise: no rule reaches its threshold (tailrace report --rules lists them). Collective "
         "files, checkpoints and shared files are in model.";
}

std::string no_news(const Run& run, double age_seconds) {
  if (!reaches(age_seconds, kNoNews)) return "";
  if (!has_server(run))
    return cat("rank 0 has not called the library for ", whole_seconds_text(age_seconds), ".");
  return cat("no news for ", whole_seconds_text(age_seconds), ": is the job alive?");
}

}  // namespace tailrace::reports
