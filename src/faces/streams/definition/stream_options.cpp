// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The options of tr_stream_create.
#include <limits>

#include "engine/pipeline/handoff.hpp"
#include "engine/pipeline/method_choice.hpp"
#include "faces/streams/definition/parse.hpp"
#include "faces/streams/definition/values.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

Result<TimeAxis> parse_lead_unit(const std::string& text, const TimeAxis& time) {
  if (time.is_model())
    return settings_error("a stream with time=model has no leads: time_units= says what its times count");
  const TimeUnit* const unit = find_time_unit(text);
  if (unit == nullptr)
    return settings_error(cat("\"", text, "\" is no unit of leads; expected one of ", time_unit_list()));
  return TimeAxis::of_leads(*unit);
}

namespace {

constexpr std::int64_t kMostMembers = std::numeric_limits<int>::max();

Status take_duration(const std::string& text, std::int64_t& seconds) {
  const Result<std::int64_t> value = as_setting(parse_duration(text));
  TR_TRY(value.status());
  if (*value == 0) return settings_error("a duration of 0 s does nothing here");
  seconds = *value;
  return {};
}

Status take_on_full(StreamRequest& request, const std::string& text) {
  if (text == "fail") return {};
  if (text.starts_with("wait:"))
    return take_duration(text.substr(5), request.options.policy.wait_for_space_seconds);
  return settings_error(cat("\"", text, "\" is neither fail nor wait:DURATION, as wait:10m"));
}

Status take_ready(StreamRequest& request, const std::string& text) {
  if (text.empty() || text.find('/') != std::string::npos) {
    return settings_error(cat("\"", text, "\" is no suffix for a file name; give one such as .ready"));
  }
  request.options.ready_suffix = text;
  return {};
}

Status take_hook(StreamRequest& request, const std::string& text) {
  if (trim(text).empty()) return settings_error("the command is empty");
  request.options.hook = text;
  return {};
}

Status settings_status(const Status& status) {
  return status.is_ok() ? status : settings_error(status.text());
}

Status take_time(StreamRequest& request, const std::string& text) {
  const Result<std::size_t> word = parse_choice(text, {"leads", "model"});
  TR_TRY(word.status());
  request.definition.time = *word == 1 ? TimeAxis::of_model() : TimeAxis();
  return {};
}

Status take_lead_unit(StreamRequest& request, const std::string& text) {
  return take(parse_lead_unit(text, request.definition.time), request.definition.time);
}

Status take_time_name(StreamRequest& request, const std::string& text) {
  if (trim(text).empty()) return settings_error("the name is empty");
  request.definition.time.set_name(text);
  return {};
}

/// Without conventions=weather a name tells nothing about its field. In GRIB each name does.
Status take_conventions(StreamRequest& request, const std::string& text) {
  const Result<std::size_t> word = parse_choice(text, {"none", codec::weather_conventions});
  TR_TRY(word.status());
  const Result<const formats::Format*> format = formats::find(request.definition.format);
  TR_TRY(format.status());
  if (*word == 0 || (*format)->options.has_short_names) return {};
  return add_key(request.definition.keys, {std::string(codec::conventions_key), text});
}

Status take_method(StreamRequest& request, const std::string& text) {
  if (text.empty()) return settings_error("the name is empty");
  if (text == pipeline::chosen_method) {
    request.options.method = text;
    return {};
  }
  const Result<const pipeline::Method*> method = pipeline::find_method(text);
  TR_TRY(method.status());
  request.options.method = (*method)->name;
  return {};
}

Status take_handoff(StreamRequest& request, const std::string& text) {
  if (text.empty()) return settings_error("the name is empty");
  request.options.handoff = text;
  return pipeline::find_handoff(text).status();
}

Status take_hints(StreamRequest& request, const std::string& text) {
  if (trim(text).empty()) return settings_error("there is no hint");
  request.options.hints = text;
  return pipeline::parse_hints(text).status();
}

// take() stores the values in this order, because the base time depends on the calendar.
constexpr OptionRow<StreamRequest> kStreamRows[] = {
    {{"format", "`grib2`", "", "format=cdf5", "" /* about_format() */},
     [](auto&, auto&) { return Status(); }},  // taken before all others
    {{"calendar", "`proleptic_gregorian`", "", "format=raw calendar=360_day",
      "also `360_day`, `noleap` (`365_day`), `julian` and `all_leap` (`366_day`); GRIB has the default only"},
     [](auto& r, auto& t) { return take(parse_calendar(t), r.definition.calendar); }},
    {{"time", "`leads`", "", "time=model format=cdf5",
      "`leads`: a step is at a whole number of units after the base time. `model`: a step is at a time of "
      "the model's "
      "own, a float64 given to `tr_stream_begin_at`, which may count from no date: [below](#time)"},
     take_time},
    {{"lead_unit", "`s`", "", "lead_unit=ms format=cdf5",
      "the unit of leads: `ns`, `us`, `ms`, `s`, `min`, `h` or `d`. GRIB takes leads that are whole seconds"},
     take_lead_unit},
    {{"time_units", "the unit of leads", "", "time=model time_units=days format=cdf5",
      "the units of the variable of time in NetCDF and Zarr: a unit of leads, or with `time=model` and no "
      "base time "
      "any text, but for one with `since`, behind which readers look for a date; there `s` if it is not "
      "given"},
     [](auto& r, auto& t) { return settings_status(r.definition.time.set_units(t)); }},
    {{"time_name", "`time`", "", "time_name=Times format=cdf5",
      "the name of the variable of time in NetCDF and Zarr"},
     take_time_name},
    {{"base", "", "time, UTC", "base=2026-03-01T00:00Z",
      "the base time, from which leads count; required but for `time=model`"},
     [](auto& r, auto& t) {
       TR_TRY(take(as_setting(parse_time(t, r.definition.calendar)), r.definition.base));
       return settings_status(r.definition.time.set_base());
     }},
    {{"packing", "`simple`", "", "packing=ccsds",
      "GRIB alone: how it packs numbers. GRIB2: `ccsds` makes smooth fields smaller, and takes about 2 ns a "
      "point instead of 0.6. [GRIB1](#grib1): `second_order` does, too; ecCodes packs it"},
     [](auto& r, auto& t) {
       r.definition.packing = t;  // one of the format's words
       return Status();
     }},
    {{"member", "", "number", "member=7",
      "ensemble member; chooses GRIB's ensemble templates, and is the coordinate `realization` in NetCDF"},
     [](auto& r, auto& t) { return take(parse_integer(t, 0, kMostMembers), r.definition.member); }},
    {{"members", "", "number", "member=7 members=51", "size of the ensemble; NetCDF has no place for it"},
     [](auto& r, auto& t) { return take(parse_integer(t, 1, kMostMembers), r.definition.members); }},
    {{"keys", "", "", "keys=\"centre=98, subCentre=3\"",
      "GRIB alone: [keys](#grib-keys) of all records. Keys that are no option may also stand by themselves: "
      "`centre=98`"},
     [](auto& r, auto& t) { return take_keys(t, r.definition.keys); }},
    {{"attributes", "", "", "format=cdf5 attributes=\"title='Forecast for the Alps', institution=KNMI\"",
      "NetCDF and Zarr alone: [attributes](#attributes) of each file"},
     [](auto& r, auto& t) { return take_keys(t, r.definition.attributes); }},
    {{"conventions", "`none`", "", "format=cdf5 conventions=weather",
      "with `weather` the name of a field tells its `standard_name` and `units`, by [this "
      "table](formats/weather-names.md), in NetCDF, Zarr and references. Without it a name tells nothing. In "
      "GRIB a name is a `shortName`, and tells what it does with either word"},
     take_conventions},
    {{"existing", "`replace`", "", "existing=continue",
      "what happens if the file of a step is there already: [below](#what-a-rerun-does)"},
     [](auto& r, auto& t) {
       return take(parse_choice(t, {"replace", "continue", "fail", "overwrite"}), r.options.existing);
     }},
    {{"on_full", "`fail`", "duration", "on_full=wait:10m",
      "a full disk fails the step at once, or after waiting this long for room"},
     take_on_full},
    {{"deadline", "", "duration", "deadline=90s",
      "a warning if a step is not durable this long after its end"},
     [](auto& r, auto& t) { return take_duration(t, r.options.policy.deadline_seconds); }},
    {{"ready", "", "suffix", "ready=.ready",
      "an empty file `NAME.ready`, made once `NAME` is finished and durable"},
     take_ready},
    {{"hook", "", "shell", "hook=\"echo $1 >> finished.txt\"",
      "a command that is run with each finished file as `$1`"},
     take_hook},
    {{"manifest", "`on`", "", "manifest=off",
      "a line for each finished file in [`manifest.jsonl`](#manifest-ready-markers-hooks); needs a build "
      "with JSON"},
     [](auto& r, auto& t) { return take(parse_boolean(t), r.options.manifest); }},
    {{"references", "`off`", "", "references=on",
      "a file `NAME.refs.json` that lets xarray open all steps of `NAME` at once, also while the model runs: "
      "[below](#references-for-xarray)"},
     [](auto& r, auto& t) { return take(parse_boolean(t), r.options.references); }},
    {{"index", "", "words", "index=wgrib2,ecmwf,cfgrib",
      "GRIB alone: a file `NAME.idx` as `wgrib2 -s` prints it, `NAME.index` as ECMWF's open data have it, "
      "and `NAME.5b7b6.idx`, by which cfgrib 0.9.15.1 opens `NAME` without reading it first: "
      "[formats/other-indexes.md](formats/other-indexes.md). They grow with each committed step"},
     [](auto&, auto&) { return Status(); }},  // parse_stream() takes the format's words
    {{"same_lead", "`fail`", "", "same_lead=keep",
      "a field that an earlier step at the same lead has is an error, unless that step has failed; `keep` "
      "writes it once more, in NetCDF as one more record with the same time"},
     [](auto& r, auto& t) {
       return take(parse_choice(t, {"fail", "keep"}), r.options.keeps_same_lead);
     }},
    {{"empty_step", "`fail`", "", "empty_step=keep",
      "a step in which nothing was put is an error; `keep` lets it pass"},
     [](auto& r, auto& t) {
       return take(parse_choice(t, {"fail", "keep"}), r.options.keeps_empty_steps);
     }},
    {{"method", "`scan`", "", "method=serial", "" /* about_methods() */}, take_method},
    {{"handoff", "`auto`", "", "handoff=messages", "" /* about_handoffs() */}, take_handoff},
    {{"mpiio_hints", "", "hints", "method=mpiio mpiio_hints=\"cb_nodes=2,romio_cb_write=enable\"",
      "`method=mpiio` and `mpiio_shared` alone: [hints](methods.md#mpiio) for the MPI (`MPI_Info`) with "
      "which the servers open "
      "each file; the MPI "
      "ignores those that it does not know"},
     take_hints},
    {{"interval", "", "duration, months", "interval=1h",
      "the file gets one step for each [interval](#values-of-an-interval) of this length, counted from the "
      "base time, and not each step of the model. Also `1mo`, `3mo`, `1y`: months of the calendar"},
     [](auto& r, auto& t) {
       return take(operations::parse_interval(t, r.definition.time), r.options.interval);
     }},
};

/// Returns the meaning of format=, in which the registry explains its formats.
std::string about_format() {
  return cat(
      formats::about_formats(),
      "; or the name of [an encoder of your own](#an-encoder-of-your-own) ([which "
      "one](choosing-a-format.md)). Without it the end of the pattern decides: ",
      formats::about_endings(),
      ". An ending that promises a format which is called otherwise here (`.ncdf`) is refused. An option "
      "that the format does not take is an error that names the format which does");
}

// Options that only some formats have. take_others() stores their values as keys of the format.
constexpr OptionInfo kStreamOptionsOfFormats[] = {
    {"compress", "`deflate:1`, in Zarr `blosc_zstd:1`", "", "format=netcdf4 compress=deflate:4",
     "NetCDF-4 and Zarr alone: how chunks are compressed: a method, and its level behind a colon. NetCDF-4: "
     "`deflate` (levels 1 to 9) or `none`. Zarr: [one of five](#zarr)"}};

}  // namespace

constexpr OptionTable<StreamRequest> stream_options(kStreamRows);

std::vector<OptionInfo> stream_option_infos() {
  static const auto& about = *new const std::string(about_format());
  static const auto& how = *new const std::string(
      cat("[how servers write](methods.md): ", pipeline::about_methods(),
          "; `auto`: `scan` or `writer`, [as the file system needs it](methods.md#auto). "
          "`TAILRACE_METHOD` says it for all streams"));
  static const auto& handed = *new const std::string(
      cat("[how the ranks' data reaches the servers](methods.md#handoff): ", pipeline::about_handoffs(),
          ". `TAILRACE_HANDOFF` says it for all streams"));
  std::vector<OptionInfo> infos = stream_options.infos(kStreamOptionsOfFormats);
  for (OptionInfo& info : infos) {
    if (info.key == "format") info.meaning = about;
    if (info.key == "method") info.meaning = how;
    if (info.key == "handoff") info.meaning = handed;
  }
  return infos;
}

}  // namespace tailrace::streams
