// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/definition/parse.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

#include "formats/registry/registry.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/options.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {
namespace {

constexpr std::size_t kMostLevels = 100'000;
constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

/// One reserved key of an options string, and the function that takes it.
template <typename Target>
struct KeyRow {
  std::string_view key;
  Status (*set)(Target&, const std::string&);
};

bool contains(const std::vector<std::string_view>& names, std::string_view key) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

Status settings_error(std::string_view what) { return {Code::settings, std::string(what)}; }

/// Stores a value that was parsed.
template <typename T, typename To>
Status take(const Result<T>& value, To& to) {
  TR_TRY(value.status());
  to = static_cast<To>(*value);
  return {};
}

Status take_file(const std::string& text, std::string& file) {
  if (text.empty()) return settings_error("the file name is empty");
  file = text;
  return {};
}

Status take_duration(const std::string& text, std::optional<std::int64_t>& seconds) {
  const Result<std::int64_t> value = parse_duration(text);
  if (!value.is_ok()) return settings_error(value.status().text());
  if (*value == 0) return settings_error("a duration of 0 s does nothing here");
  seconds = *value;
  return {};
}

Status add_key(codec::Keys& keys, const Option& option) {
  for (const auto& [key, value] : keys) {
    if (key == option.key) return settings_error(cat("\"", key, "\" is given twice; keep one of them"));
  }
  keys.emplace_back(option.key, option.value);
  return {};
}

Status take_keys(const std::string& text, codec::Keys& keys) {
  const Result<Options> list = Options::parse_list(text);
  TR_TRY(list.status());
  for (const Option& option : list->entries()) TR_TRY(add_key(keys, option));
  return {};
}

Status take_on_full(StreamRequest& request, const std::string& text) {
  if (text == "fail") return {};
  if (text.starts_with("wait:")) return take_duration(text.substr(5), request.options.full_wait_seconds);
  return settings_error(cat("\"", text, "\" is neither fail nor wait:DURATION, as wait:10m"));
}

Status take_ready(StreamRequest& request, const std::string& text) {
  if (text.empty() || text.find('/') != std::string::npos) {
    return settings_error(cat("\"", text, "\" is no suffix for a file name; give one such as .ready"));
  }
  request.options.ready_suffix = text;
  return {};
}

Status take_base(StreamRequest& request, const std::string& text) {
  const Result<DateTime> value = parse_time(text, request.definition.calendar);
  if (!value.is_ok()) return settings_error(value.status().text());
  request.definition.base = *value;
  return {};
}

Status take_hook(StreamRequest& request, const std::string& text) {
  if (trim(text).empty()) return settings_error("the command is empty");
  request.options.hook = text;
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

Status take_keep(const std::string& text, bool& keep) {
  return take(parse_choice(text, {"fail", "keep"}), keep);
}

// Keys are taken in this order: the base time depends on the calendar.
constexpr std::array<KeyRow<StreamRequest>, 20> kStreamKeys{{
    {"format", [](auto&, auto&) { return Status(); }},  // taken before all others
    {"calendar", [](auto& r, auto& t) { return take(parse_calendar(t), r.definition.calendar); }},
    {"base", take_base},
    {"packing",
     [](auto& r, auto& t) {
       r.definition.packing = t;  // one of the format's words
       return Status();
     }},
    {"member", [](auto& r, auto& t) { return take(parse_integer(t, 0, kMostInt), r.definition.member); }},
    {"members", [](auto& r, auto& t) { return take(parse_integer(t, 1, kMostInt), r.definition.members); }},
    {"keys", [](auto& r, auto& t) { return take_keys(t, r.definition.keys); }},
    {"attributes", [](auto& r, auto& t) { return take_keys(t, r.definition.attributes); }},
    {"conventions", take_conventions},
    {"existing",
     [](auto& r, auto& t) {
       return take(parse_choice(t, {"replace", "continue", "fail", "overwrite"}), r.options.existing);
     }},
    {"on_full", take_on_full},
    {"deadline", [](auto& r, auto& t) { return take_duration(t, r.options.deadline_seconds); }},
    {"ready", take_ready},
    {"hook", take_hook},
    {"manifest", [](auto& r, auto& t) { return take(parse_boolean(t), r.options.manifest); }},
    {"references", [](auto& r, auto& t) { return take(parse_boolean(t), r.options.references); }},
    {"index", [](auto&, auto&) { return Status(); }},  // take_listings() takes the format's words
    {"same_lead", [](auto& r, auto& t) { return take_keep(t, r.options.keeps_same_lead); }},
    {"empty_step", [](auto& r, auto& t) { return take_keep(t, r.options.keeps_empty_steps); }},
    {"interval", [](auto& r, auto& t) { return take(operations::parse_interval(t), r.options.interval); }},
}};

struct LevelAlias {
  std::string_view alias;
  std::string_view type;
};
constexpr std::array<LevelAlias, 5> kLevelAliases{{{"pressure", "isobaricInhPa"},
                                                   {"height", "heightAboveGround"},
                                                   {"depth", "depthBelowSea"},
                                                   {"model", "hybrid"},
                                                   {"msl", "meanSea"}}};
// These types mean nothing without the values of their levels.
constexpr std::array<std::string_view, 7> kTypesWithValues{
    "hybrid",         "isobaricInhPa", "isobaricInPa", "heightAboveGround",
    "heightAboveSea", "theta",         "depthBelowSea"};

// The names that ecCodes 2.28 has for types of level in GRIB2. Formats other than GRIB take any other name,
// too.
constexpr std::array<std::string_view, 66> kLevelTypes{"adiabaticCondensation",
                                                       "atmosphere",
                                                       "cloudBase",
                                                       "cloudTop",
                                                       "depthBelowLand",
                                                       "depthBelowLandLayer",
                                                       "depthBelowSea",
                                                       "depthBelowSeaLayer",
                                                       "entireAtmosphere",
                                                       "entireLake",
                                                       "entireOcean",
                                                       "eta",
                                                       "generalVertical",
                                                       "generalVerticalLayer",
                                                       "heightAboveGround",
                                                       "heightAboveGroundLayer",
                                                       "heightAboveSea",
                                                       "heightAboveSeaLayer",
                                                       "hybrid",
                                                       "hybridHeight",
                                                       "hybridLayer",
                                                       "hybridPressure",
                                                       "iceBottomOnWater",
                                                       "iceLayerOnWater",
                                                       "iceLayerUnderSnowOnWater",
                                                       "iceTopOnWater",
                                                       "iceTopUnderSnowOnWater",
                                                       "indefiniteSoilDepth",
                                                       "isobaricInPa",
                                                       "isobaricInhPa",
                                                       "isobaricLayer",
                                                       "isothermZero",
                                                       "isothermal",
                                                       "lakeBottom",
                                                       "maxWind",
                                                       "meanSea",
                                                       "mixedLayerDepthByDensity",
                                                       "mixedLayerDepthByDiffusivity",
                                                       "mixedLayerDepthByTemperature",
                                                       "mixedLayerDepthGeneric",
                                                       "mixedLayerParcel",
                                                       "mixingLayer",
                                                       "mostUnstableParcel",
                                                       "nominalTop",
                                                       "oceanModel",
                                                       "oceanModelLayer",
                                                       "oceanSurface",
                                                       "oceanSurfaceToBottom",
                                                       "potentialVorticity",
                                                       "pressureFromGround",
                                                       "pressureFromGroundLayer",
                                                       "seaBottom",
                                                       "seaIce",
                                                       "seaIceLayer",
                                                       "sigma",
                                                       "sigmaLayer",
                                                       "snow",
                                                       "snowLayer",
                                                       "snowLayerOverIceOnWater",
                                                       "snowTopOverIceOnWater",
                                                       "soil",
                                                       "soilLayer",
                                                       "surface",
                                                       "theta",
                                                       "thetaLayer",
                                                       "tropopause"};

/// Refuses a slip of a known type of level: in formats that take any type it would become an axis of its own.
Status check_level_type(const std::string& type) {
  std::vector<std::string_view> known(kLevelTypes.begin(), kLevelTypes.end());
  for (const LevelAlias& alias : kLevelAliases) known.push_back(alias.alias);
  if (contains(known, type)) return {};
  for (const std::string_view each : known) {
    if (is_slip_of(type, each))
      return settings_error(
          cat("no type of level is called \"", type, "\"; did you mean \"", nearest(type, known), "\"?"));
  }
  return {};
}

Status take_levels(FieldRequest& request, const std::string& text) {
  codec::Levels& levels = request.definition.levels;
  const std::size_t colon = std::min(text.find(':'), text.size());
  levels.type = text.substr(0, colon);
  for (const LevelAlias& alias : kLevelAliases) {
    if (levels.type == alias.alias) levels.type = alias.type;
  }
  const bool named =
      !levels.type.empty() && std::all_of(levels.type.begin(), levels.type.end(),
                                          [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (!named) {
    return settings_error(cat("\"", text,
                              "\" names no type of level; give one as hybrid:1-40, pressure:1000,850,500, "
                              "height:2, surface or any typeOfLevel"));
  }
  TR_TRY(check_level_type(levels.type));
  if (colon == text.size()) {
    if (std::find(kTypesWithValues.begin(), kTypesWithValues.end(), levels.type) == kTypesWithValues.end())
      return {};
    return settings_error(cat(levels.type, " needs its levels, as ", text, ":1-40 or ", text, ":2"));
  }
  Result<std::vector<double>> values =
      parse_number_list(std::string_view(text).substr(colon + 1), kMostLevels);
  TR_TRY(values.status());
  std::vector<double> sorted = *values;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return settings_error(cat("level ", *twice, " is named twice"));
  levels.values = std::move(*values);
  return {};
}

Status take_bottom(FieldRequest& request, const std::string& text) {
  codec::Levels& levels = request.definition.levels;
  Result<std::vector<double>> bottoms = parse_number_list(text, kMostLevels);
  TR_TRY(bottoms.status());
  if (bottoms->size() == 1) bottoms->resize(levels.values.size(), bottoms->front());
  if (bottoms->size() != levels.values.size())
    return settings_error(cat("expected one bottom, or one for each of the ",
                              counted(levels.values.size(), "level"), " of levels=, got ", bottoms->size()));
  levels.bottoms = std::move(*bottoms);
  return {};
}

Status take_accuracy(const std::string& text, std::optional<double>& accuracy) {
  const Result<double> value = parse_real(text);
  TR_TRY(value.status());
  if (!(*value > 0) || !std::isfinite(*value))
    return settings_error(cat(text, " is no accuracy; it must be above 0"));
  accuracy = *value;
  return {};
}

Status take_statistic(FieldRequest& request, const std::string& text) {
  return take(parse_choice(text, {"instant", "accum", "average", "maximum", "minimum"}),
              request.definition.statistic.process);
}

Status take_operation(FieldRequest& request, const std::string& text) {
  const auto& names = operations::operation_names;
  const Result<std::size_t> value = parse_choice(text, {names.begin(), names.end()});
  TR_TRY(value.status());
  request.operation = static_cast<operations::Operation>(*value);
  return {};
}

/// Returns an error if the interval of a field follows from its operation.
Status check_own_interval(const FieldRequest& request) {
  if (request.operation.value_or(operations::Operation::instant) == operations::Operation::instant) return {};
  return settings_error(cat(
      "it belongs to a statistic that the program makes itself; with operation=", name_of(*request.operation),
      " each interval of the stream is one: leave it out"));
}

Status take_since(FieldRequest& request, const std::string& text) {
  TR_TRY(check_own_interval(request));
  using Since = codec::Statistic::Since;
  codec::Statistic& statistic = request.definition.statistic;
  if (statistic.process == codec::Process::instant) {
    return settings_error(
        "an instantaneous field has no interval; give statistic=accum, average, maximum or minimum too");
  }
  if (text == "start" || text == "last") {
    statistic.since = text == "start" ? Since::start : Since::last_output;
    return {};
  }
  const Result<std::int64_t> value = parse_duration(text);
  if (!value.is_ok() || *value == 0) {
    return settings_error(cat("\"", text, "\" is neither start nor last nor a duration such as 6h"));
  }
  statistic.since = Since::duration;
  statistic.duration_seconds = *value;
  return {};
}

Status take_at_zero(FieldRequest& request, const std::string& text) {
  TR_TRY(check_own_interval(request));
  if (request.definition.statistic.process == codec::Process::instant) {
    return settings_error(
        "at_zero is about the empty interval of a statistic; an instantaneous field has none");
  }
  const Result<std::size_t> value = parse_choice(text, {"write", "omit"});
  TR_TRY(value.status());
  request.definition.statistic.write_at_zero = *value == 0;
  return {};
}

Status take_level_axis(FieldRequest& request, const std::string& text) {
  const auto dimensions = static_cast<std::int64_t>(request.definition.shape.size());
  return take(parse_integer(text, 0, dimensions), request.allocation.level_axis);
}

// Keys are taken in this order: an interval needs its statistic, or its operation; bottoms need the levels.
constexpr std::array<KeyRow<FieldRequest>, 16> kFieldKeys{{
    {"levels", take_levels},
    {"bottom", take_bottom},
    {"coefficients",
     [](auto& r, auto& t) { return take(parse_number_list(t), r.definition.levels.coefficients); }},
    {"vertical", [](auto& r, auto& t) { return take_file(t, r.vertical_file); }},
    {"accuracy", [](auto& r, auto& t) { return take_accuracy(t, r.definition.accuracy); }},
    {"relative_accuracy", [](auto& r, auto& t) { return take_accuracy(t, r.definition.relative_accuracy); }},
    {"bits", [](auto& r, auto& t) { return take(parse_integer(t, 1, 32), r.definition.bits); }},
    {"missing", [](auto& r, auto& t) { return take(parse_real(t), r.definition.missing); }},
    {"operation", take_operation},
    {"statistic", take_statistic},
    {"since", take_since},
    {"at_zero", take_at_zero},
    {"level_axis", take_level_axis},
    {"nproma", [](auto& r, auto& t) { return take(parse_integer(t, 1, kMostInt), r.allocation.nproma); }},
    {"keys", [](auto& r, auto& t) { return take_keys(t, r.definition.keys); }},
    {"attributes", [](auto& r, auto& t) { return take_keys(t, r.definition.attributes); }},
}};

constexpr std::array<KeyRow<GeoreferenceRequest>, 2> kGeoreferenceKeys{{
    {"sample", [](auto& r, auto& t) { return take_file(t, r.sample_file); }},
    {"keys", [](auto& r, auto& t) { return take_keys(t, r.keys); }},
}};

using FormatTable = std::vector<codec::FormatOption> codec::FormatOptions::*;

/// The keys that one call reserves, and its table of options that only some formats have.
struct Call {
  std::vector<std::string_view> reserved, other;
  std::string_view other_call;  // the call that takes the `other` keys
  FormatTable table = nullptr;  // null = every format has all of it
};

template <typename Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.key);
  return names;
}

const codec::FormatOption* option_of(const formats::Format& format, FormatTable table, std::string_view key) {
  if (table == nullptr) return nullptr;
  for (const codec::FormatOption& option : format.options.*table) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

/// Returns the first format that takes keys of its own.
const formats::Format& format_with_keys() {
  const auto& all = formats::all();
  return *std::find_if(all.begin(), all.end(), [](const auto& each) { return !each.options.keys.empty(); });
}

bool is_key_name(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == ':' || c == '#';
  });
}

/// An option that the user may have meant, and the call or format that has it ("" = this call).
struct Candidate {
  std::string_view key;
  std::string owner;
};

/// Returns the options that the user may have meant. Those of this call in this format come first: they win
/// over equally near options of others.
std::vector<Candidate> candidates(const formats::Format& format, const Call& call) {
  std::vector<Candidate> all;
  for (const std::string_view key : call.reserved) all.push_back({key, ""});
  for (const std::string_view key : call.other) all.push_back({key, std::string(call.other_call)});
  if (call.table == nullptr) return all;
  for (const codec::FormatOption& option : format.options.*call.table) all.push_back({option.key, ""});
  for (const formats::Format& owner : formats::all()) {
    for (const codec::FormatOption& option : owner.options.*call.table) {
      if (option_of(format, call.table, option.key) == nullptr)
        all.push_back({option.key, cat("format=", owner.name)});
    }
  }
  return all;
}

/// Returns "; did you mean ...?" with the option that the user probably meant by a key, or "". With `slips`
/// only options count of which the key is a slip.
std::string meant(std::string_view key, const std::vector<Candidate>& all, bool slips) {
  const auto distance = [&](const Candidate& each) {
    const std::size_t there = distance_of_words(key, each.key);
    if (slips && !is_slip_of(key, each.key)) return not_near;
    return there == not_near ? there : 2 * there + (each.owner.empty() ? 0 : 1);
  };
  const auto best = std::ranges::min_element(all, {}, distance);
  if (best == all.end() || distance(*best) == not_near) return "";
  return cat("; did you mean \"", best->key, "\"",
             best->owner.empty() ? "" : cat(", which belongs to ", best->owner), "?");
}

/// Names of attributes of variables that programs give as options by mistake.
constexpr std::array<std::string_view, 6> kAttributes{"units",   "unit",      "long_name",
                                                      "comment", "valid_min", "standard_name"};

/// Returns the error of a key that the format has no place for.
Status unknown_key(std::string_view key, std::string_view value, const formats::Format& format,
                   const Call& call) {
  std::string near = meant(key, candidates(format, call), false);
  if (near.empty() && std::ranges::find(kAttributes, key) != kAttributes.end() &&
      option_of(format, call.table, "attributes") != nullptr)
    near = cat("; attributes of files and variables are given as attributes=\"",
               key == "unit" ? "units" : key, "=", value, "\"");
  const formats::Format& taker = format_with_keys();
  if (near.empty())
    near = cat(" (", taker.options.keys, " keys are taken with format=", taker.name, " only)");
  return settings_error(cat("unknown key \"", key, "\"", near));
}

// Checks an unreserved key: it is a key of the format, or the error tells what the user probably meant.
Status check_extra(std::string_view key, std::string_view value, const formats::Format& format,
                   const Call& call) {
  if (contains(call.other, key))
    return settings_error(cat("\"", key, "\" belongs to ", call.other_call, ", not here"));
  const std::string_view kind = format.options.keys;
  if (kind.empty()) return unknown_key(key, value, format, call);
  const std::vector<Candidate> all = candidates(format, call);
  if (const std::string near = meant(key, all, true); !near.empty())
    return settings_error(cat("unknown key \"", key, "\"", near, "; if it is meant as a ", kind,
                              " key, write keys=\"", key, "=", value, "\""));
  if (!is_key_name(key))
    return settings_error(cat("\"", key, "\" is no name of a key", meant(key, all, false)));
  return {};
}

/// Checks an option that only some formats have.
Status check_owner(const Option& given, const formats::Format& format, FormatTable table) {
  if (const codec::FormatOption* const own = option_of(format, table, given.key)) {
    if (own->words.empty()) return {};
    return parse_choice(given.value, own->words).status().in(cat(given.key, "=", quote_option(given.value)));
  }
  for (const formats::Format& owner : formats::all()) {
    if (option_of(owner, table, given.key)) {
      return settings_error(
          cat(given.key, "= belongs to format=", owner.name, "; format=", format.name, " does not take it"));
    }
  }
  return {};
}

/// Sets the reserved keys in the order of the table.
template <typename Request, typename Rows>
Status take_reserved(const Options& options, const Rows& rows, Request& request) {
  for (const auto& row : rows) {
    const std::string* value = options.find(row.key);
    if (value) TR_TRY(row.set(request, *value).in(cat(row.key, "=", quote_option(*value))));
  }
  return {};
}

/// Takes every key that is not reserved as a key of the format.
Status take_others(const Options& options, const formats::Format& format, const Call& call,
                   codec::Keys& keys) {
  for (const Option& option : options.entries()) {
    TR_TRY(check_owner(option, format, call.table));
    if (contains(call.reserved, option.key)) continue;
    if (option_of(format, call.table, option.key) == nullptr)
      TR_TRY(check_extra(option.key, option.value, format, call));
    TR_TRY(add_key(keys, option));
  }
  return {};
}

/// Takes the words of index=, each at most once.
Status take_listings(StreamRequest& request, const Options& given) {
  const std::string* const text = given.find("index");
  if (text == nullptr) return {};
  const std::string context = cat("index=", quote_option(*text));
  for (const std::string& word : split(*text, ',')) {
    const Result<codec::Listing> listing = formats::listing(request.definition.format, trim(word));
    TR_TRY(listing.status().in(context));
    const auto same = [&](const codec::Listing& each) { return each.word == listing->word; };
    if (std::ranges::any_of(request.options.listings, same))
      return settings_error(cat(context, ": \"", listing->word, "\" is given twice; keep one of them"));
    request.options.listings.push_back(*listing);
  }
  return {};
}

Status check_stream(const StreamRequest& request, const Options& given) {
  if (!given.find("base"))
    return settings_error("base= is missing; give the base time, as base=2026-03-01T00:00Z");
  const codec::StreamDefinition& stream = request.definition;
  if (stream.members && !stream.member)
    return settings_error("members= without member=; say which member this is");
  if (stream.members && *stream.member > *stream.members) {
    return settings_error(cat("member=", *stream.member, " of members=", *stream.members, " does not exist"));
  }
  if (request.options.interval) {
    if (request.options.keeps_same_lead)
      return settings_error(
          "interval= and same_lead=keep exclude each other: a step within an interval has a lead of its own");
    TR_TRY(operations::Intervals(*request.options.interval, stream.base, stream.calendar)
               .check()
               .in("interval="));
  }
  // Finds a {member} without member=. Each step checks its own lead.
  if (request.pattern.uses_member() && !stream.member)
    return request.pattern.expand(0, request.context()).status();
  return {};
}

Status check_coefficients(const codec::Levels& levels) {
  if (levels.type != "hybrid") {
    return settings_error(
        cat("vertical coordinate coefficients belong to hybrid levels; these are ", levels.type));
  }
  const double top = *std::max_element(levels.values.begin(), levels.values.end());
  const std::size_t count = levels.coefficients.size();
  // The coefficients are a and b at the half levels 0 to n: n levels need n + 1 of each.
  if (count % 2 == 0 && static_cast<double>(count / 2) >= top + 1) return {};
  return settings_error(cat("there are ", count, " vertical coordinate coefficients; levels up to ", top,
                            " need a and b at their half levels, so at least ",
                            2 * (static_cast<std::int64_t>(top) + 1)));
}

Status check_field(FieldRequest& request, bool axis_given) {
  codec::FieldDefinition& field = request.definition;
  const int precisions = static_cast<int>(field.accuracy.has_value()) +
                         static_cast<int>(field.relative_accuracy.has_value()) +
                         static_cast<int>(field.bits.has_value());
  if (precisions > 1)
    return settings_error("accuracy=, relative_accuracy= and bits= exclude each other; keep one");
  const bool coefficients = !field.levels.coefficients.empty();
  if (coefficients && !request.vertical_file.empty()) {
    return settings_error("coefficients= and vertical= say the same thing; keep one");
  }
  if (!request.vertical_file.empty() && field.levels.type != "hybrid")
    return check_coefficients(field.levels);
  if (coefficients) TR_TRY(check_coefficients(field.levels));
  layout::Allocation& allocation = request.allocation;
  allocation.levels = static_cast<Index>(field.levels.values.size());
  if (allocation.nproma > 0 && axis_given) {
    return settings_error(
        told_order() == Order::c
            ? "nproma= fixes the array as (block, level, nproma); level_axis= has no meaning with it"
            : "nproma= fixes the array as (nproma, level, block); level_dim= has no meaning with it");
  }
  if (allocation.levels == 1 && !axis_given) allocation.level_axis = -1;
  return {};
}

// Reads the numbers of one line, with blanks, tabs or commas between them.
Result<std::vector<double>> numbers_of(std::string_view line) {
  std::vector<double> numbers;
  std::string text(line);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ',' || c == '\t' || c == '\r'; }, ' ');
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const Result<double> number = parse_real(word);
    TR_TRY(number.status());
    if (!std::isfinite(*number)) return settings_error(cat(word, " is not finite"));
    numbers.push_back(*number);
  }
  return numbers;
}

bool has_ending_of(const formats::Format& format, std::string_view pattern) {
  const std::string name = lower_case(pattern);
  return std::ranges::any_of(format.endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Checks that a name ends in .zarr if the format writes a directory, and only then: readers, and commands
/// that see the name alone, rely on it.
Status check_kind(const formats::Format& format, std::string_view pattern) {
  const bool fits = format.is_store ? pattern.ends_with(stores::ending) : !stores::is_store(pattern);
  if (fits) return {};
  if (format.is_store)
    return {Code::settings, cat("format=", format.name, " writes a directory, whose name ends in .zarr")};
  return {Code::settings, cat("a name that ends in .zarr promises a directory, and format=", format.name,
                              " writes a file: choose another ending")};
}

}  // namespace

Result<StreamRequest> parse_stream(std::string_view pattern, std::string_view options) {
  StreamRequest request;
  Result<Pattern> parsed = Pattern::parse(pattern);
  TR_TRY(parsed.status());
  request.pattern = std::move(*parsed);
  const auto context = cat("stream \"", pattern, "\"");
  const Result<Options> given = Options::parse(options);
  TR_TRY(given.status().in(context));
  // The ending of a file's name promises a format to its readers. Another format is taken as meant only if it
  // is asked for.
  const std::string* const asked = given->find("format");
  const Result<const formats::Format*> format = asked ? formats::find(*asked) : formats::promised_by(pattern);
  TR_TRY(format.status().in(asked ? cat(context, ": format=", *asked) : context));
  TR_TRY(check_kind(**format, pattern).in(context));
  request.definition.format = (*format)->name;
  request.definition.name = pattern;
  TR_TRY(take_reserved(*given, kStreamKeys, request).in(context));
  const Call call{names_of(kStreamKeys), names_of(kFieldKeys), "tr_stream_define",
                  &codec::FormatOptions::stream};
  TR_TRY(take_others(*given, **format, call, request.definition.keys).in(context));
  for (const Option& option : given->entries()) {
    if (!contains(call.reserved, option.key) && option_of(**format, call.table, option.key) == nullptr)
      request.open_keys.push_back(option.key);
  }
  request.has_default_format = asked == nullptr && !has_ending_of(**format, pattern);
  TR_TRY(take_listings(request, *given).in(context));
  TR_TRY(check_stream(request, *given).in(context));
  return request;
}

Result<FieldRequest> parse_field(std::string_view name, int element_type, const std::vector<Index>& shape,
                                 std::string_view options, std::string_view format) {
  if (name.empty()) return Status(Code::argument, "the field's name is empty");
  const Result<const formats::Format*> found = formats::find(format);
  TR_TRY(found.status());
  const auto context = cat("field \"", name, "\"");
  FieldRequest request;
  request.definition.name = name;
  request.definition.type = static_cast<ElementType>(element_type);
  if (size_of(request.definition.type) == 0) {
    return Status(Code::argument,
                  cat(context, ": ", element_type, " is no element type; give TR_F32, TR_F64, ..."));
  }
  request.definition.shape = shape;
  const Result<Options> given = Options::parse(options);
  TR_TRY(given.status().in(context));
  TR_TRY(take_reserved(*given, kFieldKeys, request).in(context));
  request.has_statistic = given->find("statistic") != nullptr;
  const Call call{names_of(kFieldKeys), names_of(kStreamKeys), "tr_stream_create",
                  &codec::FormatOptions::field};
  TR_TRY(take_others(*given, **found, call, request.definition.keys).in(context));
  TR_TRY(check_field(request, given->find("level_axis") != nullptr).in(context));
  return request;
}

Status with_default_format(const StreamRequest& request, const Status& status) {
  if (status.is_ok() || !request.has_default_format) return status;
  return {status.code(),
          cat(status.text(), " (the stream writes ", request.definition.format, ", since \"",
              request.definition.name, "\" promises no format: end it in .nc for NetCDF, or say format=)")};
}

Status no_such_field(std::string_view call, std::string_view name, const std::vector<std::string>& defined) {
  if (defined.empty())
    return {Code::argument, cat(call, ": no field was defined; tr_stream_define comes first")};
  const std::string near = nearest(name, defined);
  if (!near.empty())
    return {Code::argument, cat(call, ": no such field was defined; the nearest is '", near, "'")};
  constexpr std::size_t most = 10;
  std::string list;
  for (std::size_t i = 0; i < std::min(most, defined.size()); ++i)
    list += cat(i == 0 ? "'" : ", '", defined[i], "'");
  if (defined.size() > most) list += cat(" and ", defined.size() - most, " more");
  return {Code::argument, cat(call, ": no such field was defined; there are ", list)};
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

Status set_vertical(codec::FieldDefinition& definition, std::string_view text, std::string_view path) {
  std::vector<double> a, b;
  std::optional<double> counter;
  std::int64_t line_number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++line_number;
    const std::string_view whole = take_line(rest);
    const std::string_view line = trim(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const auto where = cat("vertical=", path, ", line ", line_number);
    Result<std::vector<double>> numbers = numbers_of(line);
    TR_TRY(numbers.status().in(where));
    const bool counted = numbers->size() == 3;
    const bool same_form = a.empty() || counted == counter.has_value();
    if ((numbers->size() != 2 && !counted) || !same_form) {
      return settings_error(cat(where, ": expected ", !a.empty() && counter ? "n, a and b" : "a and b",
                                ", got ", numbers->size(), " numbers"));
    }
    if (counted && counter && numbers->front() != *counter + 1) {
      return settings_error(cat(where, ": level ", numbers->front(), " does not follow level ", *counter));
    }
    if (counted) counter = numbers->front();
    a.push_back((*numbers)[counted ? 1 : 0]);
    b.push_back((*numbers)[counted ? 2 : 1]);
  }
  definition.levels.coefficients = std::move(a);
  definition.levels.coefficients.insert(definition.levels.coefficients.end(), b.begin(), b.end());
  return check_coefficients(definition.levels).in(cat("field \"", definition.name, "\": vertical=", path));
}

Result<GeoreferenceRequest> parse_georeference(std::string_view options) {
  GeoreferenceRequest request;
  const Result<Options> given = Options::parse(options);
  TR_TRY(given.status().in("georeference"));
  TR_TRY(take_reserved(*given, kGeoreferenceKeys, request).in("georeference"));
  TR_TRY(take_others(*given, format_with_keys(), {names_of(kGeoreferenceKeys), {}, "", nullptr}, request.keys)
             .in("georeference"));
  if (request.sample_file.empty() && request.keys.empty()) {
    return settings_error("georeference: give sample=FILE, or keys=\"gridType=..., Ni=..., ...\"");
  }
  return request;
}

}  // namespace tailrace::streams
