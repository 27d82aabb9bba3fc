// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "commands.hpp"
#include "faces/streams/definition/pattern.hpp"
#include "formats/index/head.hpp"
#include "formats/index/index.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/base/waiting.hpp"

namespace tailrace::cli {
namespace {

using Clock = std::chrono::steady_clock;
using storage::File;
using storage::OpenMode;
using storage::Target;

struct WaitArguments {
  std::string pattern;
  std::string base;
  std::string lead, time, time_units;
  std::string timeout;
  std::string calendar = "proleptic_gregorian";
  std::string member;
  std::string run;
  bool quiet = false;
};

/// The step for which the command waits, as read from the arguments.
struct Wanted {
  std::string path;
  std::string time;  // of the model, as it was given
  TimeAxis times;
  std::int64_t lead = 0;
  std::optional<std::int64_t> timeout_seconds;
  std::optional<Uuid> run;
  std::optional<DateTime> base;  // as it was given
};

enum class Seen { nothing, durable, ended };

Result<streams::PatternContext> context_of(const WaitArguments& arguments) {
  streams::PatternContext context;
  const Result<Calendar> calendar = parse_calendar(arguments.calendar);
  TR_TRY(calendar.status().in("--calendar"));
  context.calendar = *calendar;
  if (!arguments.base.empty()) {
    const Result<DateTime> base = parse_time(arguments.base, context.calendar);
    TR_TRY(base.status().in("--base"));
    context.base = *base;
  }
  if (!arguments.member.empty()) {
    const Result<std::int64_t> member = parse_integer(arguments.member, 0, 1'000'000'000);
    TR_TRY(member.status().in("--member"));
    context.member = static_cast<int>(*member);
  }
  return context;
}

/// Takes a date: the time at which the step is valid.
Status take_date(const WaitArguments& arguments, const streams::PatternContext& context, Wanted& wanted) {
  const Result<DateTime> date = parse_time(arguments.time, context.calendar);
  TR_TRY(date.status().in("--time"));
  if (arguments.base.empty())
    return {Code::settings, "--time is a date: give the stream's base time, too, as --base 2026-03-01"};
  wanted.lead = to_seconds(*date, context.calendar) - to_seconds(context.base, context.calendar);
  if (wanted.lead >= 0) return {};
  return {Code::settings, cat("--time ", arguments.time, " is before --base ", arguments.base)};
}

bool is_date(std::string_view text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  return text.find('T') != std::string_view::npos || (digits == 4 && text[digits] == '-');
}

/// Takes the lead, in a unit that tells it, the date, or the time of the model.
Status take_time(const WaitArguments& arguments, const streams::PatternContext& context, Wanted& wanted) {
  if (is_date(arguments.time)) return take_date(arguments, context, wanted);
  if (!arguments.time.empty()) {
    wanted.time = arguments.time;
    const Result<double> time = parse_real(arguments.time);
    TR_TRY(time.status().in("--time"));
    const Result<std::int64_t> code = TimeAxis::code_of(*time);
    TR_TRY(code.status().in("--time"));
    wanted.times = TimeAxis::of_model();
    wanted.lead = *code;
    if (!arguments.time_units.empty())
      TR_TRY(wanted.times.set_units(arguments.time_units).in("--time-units"));
    return arguments.base.empty() ? Status() : wanted.times.set_base().in("--base");
  }
  const std::string& text = arguments.lead;
  if (text.empty())
    return {Code::settings,
            "give the step's time: --lead 6h, --time 2026-03-01T06, or --time 0.667 in a stream with "
            "time=model"};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const TimeUnit* const unit = find_time_unit(text.substr(digits));
  constexpr std::int64_t second = 1'000'000'000;
  if (unit != nullptr && unit->nanoseconds < second) wanted.times = TimeAxis::of_leads(*unit);
  const Result<std::int64_t> lead = wanted.times.parse_length(text);
  TR_TRY(lead.status().in("--lead"));
  wanted.lead = *lead;
  return {};
}

/// Returns true if `time`, with as many digits as the text has, is what the text says.
bool rounds_to(double time, const std::string& text) {
  const std::size_t exponent = std::min(text.find_first_of("eE"), text.size());
  const std::size_t point = text.find('.');
  const auto places = static_cast<int>(point < exponent ? exponent - point - 1 : 0);
  std::array<char, 512> rounded{};
  if (exponent < text.size())
    std::snprintf(rounded.data(), rounded.size(), "%.*e", places, time);
  else
    std::snprintf(rounded.data(), rounded.size(), "%.*f", places, time);
  const Result<double> near = parse_real(rounded.data()), wanted = parse_real(text);
  return near.is_ok() && wanted.is_ok() && *near >= *wanted && *near <= *wanted;
}

/// Returns true if a step of a file is the wanted one. Streams with other units name the same time. Sums of
/// time steps have digits that nobody writes: those that are given count.
bool is_wanted(const Wanted& wanted, const TimeAxis& times, std::int64_t lead) {
  if (times.is_model()) return lead == wanted.lead || rounds_to(TimeAxis::time_of(lead), wanted.time);
  return times.lead_of(wanted.lead, wanted.times.nanoseconds()) == lead;
}

Result<Wanted> wanted_by(const WaitArguments& arguments) {
  Wanted wanted;
  Result<streams::PatternContext> context = context_of(arguments);
  TR_TRY(context.status());
  const Result<streams::Pattern> pattern = streams::Pattern::parse(arguments.pattern);
  TR_TRY(pattern.status());
  if (arguments.base.empty() && pattern->uses_time()) {
    return Status(Code::settings,
                  cat("file pattern \"", arguments.pattern, "\" names times; give --base 2026-03-01T00:00Z"));
  }
  TR_TRY(take_time(arguments, *context, wanted));
  if (!arguments.base.empty()) wanted.base = context->base;
  context->time = wanted.times;
  TR_TRY(pattern->check(wanted.times));
  Result<std::string> path = pattern->expand(wanted.lead, *context);
  TR_TRY(path.status());
  wanted.path = std::move(*path);
  if (!arguments.timeout.empty()) {
    const Result<std::int64_t> timeout = parse_duration(arguments.timeout);
    TR_TRY(timeout.status().in("--timeout"));
    wanted.timeout_seconds = *timeout;
  }
  if (!arguments.run.empty()) {
    const Result<Uuid> run = Uuid::parse(arguments.run);
    TR_TRY(run.status().in("--run"));
    wanted.run = *run;
  }
  return wanted;
}

/// Looks at one index again and again. It reads the index when its size has changed, and in every 16th look.
class Watch {
 public:
  Watch(Target& target, const Wanted& wanted) : target_(target), wanted_(wanted) {}

  Result<Seen> look() {
    const Result<std::string> found = streams::find_index(target_, wanted_.path);
    TR_TRY(found.status());
    const std::string& path = *found;
    Result<std::unique_ptr<File>> file = target_.open(path, OpenMode::read);
    if (!file.is_ok()) {
      if (file.status().error_number() == ENOENT) return Seen::nothing;
      return file.status();
    }
    const Result<Bytes> size = (*file)->size();
    TR_TRY(size.status());
    // An index that was cut back and written again may have the same size, but other contents. So every 16th
    // look reads it in any case.
    if (*size == size_seen_ && ++looks_ % 16 != 0) return Seen::nothing;
    const Result<streams::IndexContents> contents = streams::load_index(target_, path);
    TR_TRY(contents.status());
    size_seen_ = *size;
    return judge(**file, path, *contents);
  }

 private:
  /// Returns the wanted step, or null. Times of the model that have more digits than are wanted may round to
  /// the same one: the nearest counts, and a later step may be nearer than the last one.
  [[nodiscard]] const streams::IndexStep* nearest(const streams::IndexContents& contents) const {
    const TimeAxis& times = contents.header.time;
    const auto distance = [&](const streams::IndexStep& step) {
      return times.is_model() ? std::fabs(TimeAxis::time_of(step.lead) - TimeAxis::time_of(wanted_.lead)) : 0;
    };
    const streams::IndexStep* found = nullptr;
    for (const streams::IndexStep& step : contents.steps) {
      if (!is_wanted(wanted_, times, step.lead)) continue;
      if (found == nullptr || distance(step) < distance(*found)) found = &step;
    }
    if (found == nullptr || contents.closed || found != &contents.steps.back()) return found;
    const double there = TimeAxis::time_of(found->lead), wanted = TimeAxis::time_of(wanted_.lead);
    const bool may_come = times.is_model() && there < wanted - 1e-9 * std::max(1.0, std::fabs(wanted));
    return may_come ? nullptr : found;
  }

  Result<Seen> judge(File& index, const std::string& path, const streams::IndexContents& contents) {
    if (wanted_.run && contents.header.run != *wanted_.run) return Seen::nothing;
    const TimeAxis& times = contents.header.time;
    if (times.is_model() != wanted_.times.is_model())
      return Status(Code::state,
                    cat(path, times.is_model() ? ": has times of the model: give --time, as --time 0.667"
                                               : ": has leads: give --lead, as --lead 6h"));
    if (wanted_.base && times.has_base() && contents.header.base != *wanted_.base)
      return Status(Code::state,
                    cat(path, ": its base time is ", format_time(contents.header.base), ", and --base is ",
                        format_time(*wanted_.base), ": leads and dates would mean other steps"));
    if (const streams::IndexStep* const step = nearest(contents); step != nullptr)
      return confirm(index, contents.header.format, *step, step - contents.steps.data() + 1);
    if (contents.tail == streams::IndexTail::damaged) {
      return Status(Code::corrupt, cat(path, ": ", contents.tail_text));
    }
    return contents.closed ? Seen::ended : Seen::nothing;
  }

  // Makes sure that a step is durable, and that its data are there. This command may have read the step's
  // entry between the writer's write and its fsync, so it calls fsync itself.
  Result<Seen> confirm(File& index, const std::string& format, const streams::IndexStep& step,
                       std::int64_t steps) {
    TR_TRY(index.sync());
    Result<std::unique_ptr<File>> data = target_.open(wanted_.path, OpenMode::read);
    TR_TRY(data.status());
    const Result<Bytes> size = (*data)->size();
    TR_TRY(size.status());
    if (*size >= step.end) {
      // In some formats readers see a step only once a part of the file tells the new number of steps. The
      // writer changes that part right after the commit, so the next look finds it.
      const Result<bool> told = streams::tells_steps(**data, format, steps);
      TR_TRY(told.status());
      if (!*told) size_seen_ = -1;
      return *told ? Seen::durable : Seen::nothing;
    }
    return Status(Code::corrupt, cat(wanted_.path, ": has ", counted(*size, "byte"),
                                     ", but its index says that ", step.end, " are committed"));
  }

  Target& target_;
  const Wanted& wanted_;
  Bytes size_seen_ = -1;
  int looks_ = 0;
};

int wait_for(const Wanted& wanted, bool quiet) {
  const std::shared_ptr<Target> target = stores::with_stores(storage::default_target());
  Watch watch(*target, wanted);
  const auto begin = Clock::now();
  GrowingPause pause(std::chrono::milliseconds(10), std::chrono::milliseconds(500));
  for (;;) {
    const Result<Seen> seen = watch.look();
    if (!seen.is_ok()) return report("wait", seen.status());
    if (*seen == Seen::durable) {
      if (!quiet) std::puts(wanted.path.c_str());
      return Exit::done;
    }
    if (*seen == Seen::ended) {
      std::fprintf(stderr, "tailrace wait: %s was closed without %s\n", wanted.path.c_str(),
                   at_text(wanted.times, wanted.lead).c_str());
      return Exit::ended;
    }
    std::chrono::nanoseconds sleep = pause.next();
    if (wanted.timeout_seconds) {
      const auto left = begin + std::chrono::seconds(*wanted.timeout_seconds) - Clock::now();
      if (left <= Clock::duration::zero()) {
        return report(
            "wait", {Code::timeout, cat(wanted.path, ": ", at_text(wanted.times, wanted.lead),
                                        " was not durable within ", duration_text(*wanted.timeout_seconds))});
      }
      sleep = std::min<std::chrono::nanoseconds>(sleep, left);
    }
    std::this_thread::sleep_for(sleep);
  }
}

int run_wait(const WaitArguments& arguments) {
  const Result<Wanted> wanted = wanted_by(arguments);
  if (!wanted.is_ok()) {
    report("wait", wanted.status());
    return Exit::usage;
  }
  return wait_for(*wanted, arguments.quiet);
}

}  // namespace

void add_wait(CLI::App& app, int& exit) {
  CLI::App* command =
      app.add_subcommand("wait", "Waits until a step is durable, and prints the name of its file");
  const auto arguments = std::make_shared<WaitArguments>();
  command->add_option("PATTERN", arguments->pattern, "the stream's file pattern, with its directory")
      ->required();
  command->add_option("--base", arguments->base, "the stream's base time, as 2026-03-01T00:00Z");
  CLI::Option* const lead =
      command->add_option("--lead", arguments->lead, "the step's lead, as 6h, 90m, 250ms or 0");
  command
      ->add_option(
          "--time", arguments->time,
          "the time at which the step is valid, as 2026-03-01T06, with --base; or the step's time, as "
          "0.667, of a stream with time=model: the digits that are given count")
      ->excludes(lead);
  command->add_option("--time-units", arguments->time_units, "what --time counts, as days (default: s)");
  command->add_option("--timeout", arguments->timeout,
                      "how long to wait, as 20m; 0 looks once (default: for ever)");
  command->add_option("--calendar", arguments->calendar,
                      "the stream's calendar (default: proleptic_gregorian)");
  command->add_option("--member", arguments->member, "the ensemble member");
  command->add_option("--run", arguments->run, "pass over what other runs than this UUID left behind");
  command->add_flag("--quiet", arguments->quiet, "do not print the name of the file");
  command->footer(
      "Reads the index beside the file, nothing else: the program that writes need not be asked.\n\n"
      "Exit codes: 0 the step is durable, 1 storage failed, 2 usage, 3 timeout, 4 the index or the file is\n"
      "corrupt, 5 the file was closed without this step\n\n"
      "Examples:\n"
      "  tailrace wait 'fc_{base:%Y%m%d%H}+{lead:03h}.grib2' --base 2026-03-01T00:00Z --lead 6h --timeout "
      "20m\n"
      "  tailrace wait out/surface.grib2 --lead 45m --timeout 0 && plot out/surface.grib2");
  command->callback([arguments, &exit] { exit = run_wait(*arguments); });
}

}  // namespace tailrace::cli
