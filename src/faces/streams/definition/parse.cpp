// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/definition/parse.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "faces/streams/definition/values.hpp"
#include "formats/registry/registry.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/options.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::streams {
namespace {

bool contains(const std::vector<std::string_view>& names, std::string_view key) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

constexpr OptionRow<GeoreferenceRequest> kGeoreferenceRows[] = {
    {{"sample", "", "", "sample=c_2026030100+006.grib2",
      "a file whose first GRIB message has the grid. Where keys are given, too, they win"},
     [](auto& r, auto& t) { return take_file(t, r.sample_file); }},
    {{"keys", "", "", "keys=\"gridType=regular_gg, N=48\"",
      "GRIB keys that tell the grid. Keys that are no option may also stand by themselves: `Ni=468`"},
     [](auto& r, auto& t) { return take_keys(t, r.keys); }},
};

Status add_attribute(codec::Keys& attributes, std::string_view name, const std::string& text) {
  return add_key(attributes, {std::string(name), text});
}

Status take_axis(codec::Keys& attributes, const std::string& text) {
  TR_TRY(parse_choice(text, {"X", "Y", "Z", "T"}).status());
  return add_attribute(attributes, "axis", text);
}

Status take_positive(codec::Keys& attributes, const std::string& text) {
  TR_TRY(parse_choice(text, {"up", "down"}).status());
  return add_attribute(attributes, "positive", text);
}

constexpr OptionRow<codec::Keys> kAxisRows[] = {
    {{"units", "", "", "units=m", "the units of the values, as UDUNITS writes them"},
     [](auto& r, auto& t) { return add_attribute(r, "units", t); }},
    {{"axis", "", "", "axis=X", "the direction in space or time: `X`, `Y`, `Z` or `T`"}, take_axis},
    {{"standard_name", "", "", "standard_name=projection_x_coordinate",
      "the name of the quantity in the CF conventions"},
     [](auto& r, auto& t) { return add_attribute(r, "standard_name", t); }},
    {{"long_name", "", "", "long_name=\"distance from the left wall\"", "a name for people"},
     [](auto& r, auto& t) { return add_attribute(r, "long_name", t); }},
    {{"positive", "", "", "positive=up", "for a vertical axis: where the values grow, `up` or `down`"},
     take_positive},
    {{"attributes", "", "", "attributes=\"source=mesh.txt\"", "other attributes of the variable"},
     [](auto& r, auto& t) { return take_keys(t, r); }},
};

using FormatTable = std::vector<codec::FormatOption> codec::FormatOptions::*;

/// The keys that one call reserves, and its table of options that only some formats have.
struct Call {
  std::vector<std::string_view> reserved, other;
  std::string_view other_call;  // the call that takes the `other` keys
  FormatTable table = nullptr;  // null = every format has all of it
};

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

/// Returns "KIND keys are taken with format=NAME, NAME": the kind of keys of the first format that has any.
std::string about_keys() {
  const std::string_view kind = format_with_keys().options.keys;
  std::string names;
  for (const formats::Format& each : formats::all()) {
    if (each.options.keys == kind) names += cat(names.empty() ? "" : ", ", each.name);
  }
  return cat(kind, " keys are taken with format=", names);
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
constexpr std::array<std::string_view, 2> kAttributes{"comment", "valid_min"};

/// Returns the error of a key that the format has no place for.
Status unknown_key(std::string_view key, std::string_view value, const formats::Format& format,
                   const Call& call) {
  std::string near = meant(key, candidates(format, call), false);
  if (near.empty() && std::ranges::find(kAttributes, key) != kAttributes.end() &&
      option_of(format, call.table, "attributes") != nullptr)
    near = cat("; attributes of files and variables are given as attributes=\"", key, "=", value, "\"");
  if (near.empty()) near = cat(" (", about_keys(), " only)");
  return settings_error(cat("unknown key \"", key, "\"", near));
}

// Checks an unreserved key: it is a key of the format, or the error tells what the user probably meant.
Status check_extra(std::string_view key, std::string_view value, const formats::Format& format,
                   const Call& call) {
  if (contains(call.other, key))
    return settings_error(cat("\"", key, "\" belongs to ", call.other_call, ", not here"));
  const std::string_view kind = format.options.keys;
  if (kind.empty()) return unknown_key(key, value, format, call);
  std::vector<Candidate> all = candidates(format, call);
  // Formats with keys may well have keys of their own near to these, as `unit`.
  std::erase_if(all,
                [](const Candidate& each) { return std::ranges::count(usual_attributes, each.key) > 0; });
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
    const Status known = parse_choice(given.value, own->words).status();
    if (known.is_ok()) return known;
    std::string words;
    for (const std::string_view each : own->words) words += cat(words.empty() ? "" : " or ", each);
    for (const formats::Format& other : formats::all()) {
      const codec::FormatOption* const theirs = option_of(other, table, given.key);
      if (theirs != nullptr && std::ranges::count(theirs->words, std::string_view(given.value)) > 0)
        return settings_error(cat(text_of(given), " belongs to format=", other.name, "; format=", format.name,
                                  " takes ", given.key, "=", words));
    }
    return known.in(text_of(given));
  }
  std::string owners;
  for (const formats::Format& owner : formats::all())
    if (option_of(owner, table, given.key)) owners += cat(owners.empty() ? "format=" : ", ", owner.name);
  if (!owners.empty())
    return settings_error(
        cat(given.key, "= belongs to ", owners, "; format=", format.name, " does not take it"));
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
  const codec::StreamDefinition& stream = request.definition;
  if (!given.find("base") && !stream.time.is_model())
    return settings_error(
        "base= is missing; give the base time, as base=2026-03-01T00:00Z, or time=model for times that count "
        "from no "
        "date");
  if (given.find("calendar") && !stream.time.has_base())
    return settings_error(
        "calendar= says what dates mean, and times without base= have none: leave it out, or give base=");
  TR_TRY(request.pattern.check(stream.time));
  if (stream.members && !stream.member)
    return settings_error("members= without member=; say which member this is");
  if (stream.members && *stream.member > *stream.members) {
    return settings_error(cat("member=", *stream.member, " of members=", *stream.members, " does not exist"));
  }
  if (request.options.interval) {
    if (request.options.keeps_same_lead)
      return settings_error(
          "interval= and same_lead=keep exclude each other: a step within an interval has a lead of its own");
    TR_TRY(operations::Intervals(*request.options.interval, stream.base, stream.calendar, stream.time)
               .check()
               .in("interval="));
  }
  // Finds a {member} without member=. Each step checks its own lead.
  if (request.pattern.uses_member() && !stream.member)
    return request.pattern.expand(0, request.context()).status();
  return {};
}

/// Refuses an integer behind missing= that no float64 has, as which the number is kept.
Status check_exact(ElementType type, const std::string* missing) {
  if (missing == nullptr || !is_integer(type)) return {};
  std::string_view digits = *missing;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc{} || end != digits.data() + digits.size()) return {};
  const auto kept = static_cast<double>(size);
  if (kept < 0x1p64 && static_cast<std::uint64_t>(kept) == size) return {};
  return settings_error(
      cat("missing=", *missing, " is no float64, as which it is kept: give another number"));
}

/// Checks what over= needs of the rest of the definition.
Status check_over(const codec::FieldDefinition& field) {
  if (!field.has_time)
    return settings_error("over= is for fields of steps: one with time=none is stored as it is put");
  if (is_text(field.type))
    return settings_error("over= needs numbers, and the elements are texts: leave it out");
  if (is_complex(field.type))
    return settings_error(cat("over= needs integers or real numbers, and the elements are ",
                              name_of(field.type), "; write the parts as two fields"));
  return {};
}

/// Checks what weights= needs of the rest of the definition.
Status check_weights(const codec::FieldDefinition& field) {
  using Over = codec::Reduction::Operation;
  const Over operation = field.reduction.operation;
  if (operation == Over::mean || operation == Over::sum) return {};
  if (operation == Over::none)
    return settings_error("weights= are those of a mean or a sum over dimensions: give over=, too");
  return settings_error(
      cat("weights= change no ", name_of(operation), ": leave them out, or give over=mean"));
}

/// Returns an error if an option of numbers is given for texts.
Status check_texts(const FieldRequest& request) {
  const codec::FieldDefinition& field = request.definition;
  if (!is_text(field.type)) return {};
  const bool is_over_time = request.operation && *request.operation != operations::Operation::instant;
  if (field.accuracy || field.information || field.relative_accuracy || field.bits || field.missing ||
      request.has_statistic || is_over_time)
    return settings_error(
        "its elements are texts, of which files hold all bytes, and which have neither missing values nor "
        "means: leave out accuracy=, relative_accuracy=, bits=, missing=, statistic= and operation=");
  return {};
}

Status check_field(FieldRequest& request, bool axis_given) {
  codec::FieldDefinition& field = request.definition;
  TR_TRY(check_texts(request));
  const int precisions = static_cast<int>(field.accuracy.has_value() || field.information.has_value()) +
                         static_cast<int>(field.relative_accuracy.has_value()) +
                         static_cast<int>(field.bits.has_value());
  if (precisions > 1)
    return settings_error("accuracy=, relative_accuracy= and bits= exclude each other; keep one");
  const bool is_packed = precisions > 0 || codec::find_key(field.keys, "compress") != nullptr ||
                         codec::find_key(field.keys, "chunks") != nullptr;
  if (!field.has_time && (is_packed || request.has_statistic || request.operation))
    return settings_error(
        "a field with time=none is stored as it is, and over no time: leave out accuracy=, "
        "relative_accuracy=, bits=, compress=, chunks=, statistic= and operation=");
  if (!request.lost.empty()) TR_TRY(check_over(field));
  if (!request.weights.empty()) TR_TRY(check_weights(field));
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

bool has_ending_of(const formats::Format& format, std::string_view pattern) {
  const std::string name = lower_case(pattern);
  return std::ranges::any_of(format.endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Checks that the name has the ending of stores if the format writes these, and only then: readers, and
/// commands that see the name alone, rely on it.
Status check_kind(const formats::Format& format, std::string_view pattern) {
  const formats::Format* const promised = stores::format_of(pattern);
  const std::string_view ending = format.store == nullptr ? "" : format.endings.front();
  if (!pattern.ends_with(ending)) {
    const std::string_view begin =
        pattern.substr(0, pattern.size() - std::min(pattern.size(), ending.size()));
    if (lower_case(pattern).ends_with(ending))
      return {Code::settings,
              cat("format=", format.name, " writes a directory, whose name ends in ", ending,
                  " in small letters, since other readers look for these: name it \"", begin, ending, "\"")};
    return {Code::settings, cat("format=", format.name, " writes a directory, whose name ends in ", ending)};
  }
  if (format.store == nullptr && promised != nullptr)
    return {Code::settings,
            cat("a name that ends in ", promised->endings.front(),
                " promises a directory, and format=", format.name, " writes a file: choose another ending")};
  if (format.store == nullptr && !storage::is_of_files(pattern)) {
    std::string possible;
    for (const formats::Format& each : formats::all()) {
      if (each.store != nullptr) possible += cat(possible.empty() ? "" : " or ", "format=", each.name);
    }
    return {Code::settings,
            cat("format=", format.name, " writes files piece by piece, and a place of whole objects ('",
                storage::place_kind_of(pattern).name, "') has none: choose ", possible,
                ", or a name in a file system")};
  }
  return {};
}

}  // namespace

constexpr OptionTable<GeoreferenceRequest> georeference_options(kGeoreferenceRows);

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
  TR_TRY(stream_options.take(*given, request).in(context));
  const Call call{stream_options.keys(), field_options.keys(), "tr_stream_define",
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
                                 std::string_view options, std::string_view format, const TimeAxis& time) {
  if (name.empty()) return Status(Code::argument, "the field's name is empty");
  const Result<const formats::Format*> found = formats::find(format);
  TR_TRY(found.status());
  const auto context = cat("field \"", name, "\"");
  FieldRequest request;
  request.definition.name = name;
  request.definition.type = static_cast<ElementType>(element_type);
  if (size_of(request.definition.type) == 0) {
    return Status(
        Code::argument,
        cat(context, ": ", element_type,
            " is no element type; give TR_F32, TR_F64, ..., or TR_TEXT(1) to TR_TEXT(", most_text, ")"));
  }
  request.definition.shape = shape;
  request.time = time;
  const Result<Options> given = Options::parse(options);
  TR_TRY(given.status().in(context));
  TR_TRY(field_options.take(*given, request).in(context));
  TR_TRY(check_exact(request.definition.type, given->find("missing")).in(context));
  request.has_statistic = given->find("statistic") != nullptr;
  const Call call{field_options.keys(), stream_options.keys(), "tr_stream_create",
                  &codec::FormatOptions::field};
  TR_TRY(take_others(*given, **found, call, request.definition.keys).in(context));
  // A format without attributes= leaves out what units=, standard_name= and long_name= have given, so that a
  // program can write the same fields to any format.
  if (option_of(**found, call.table, "attributes") == nullptr) request.definition.attributes.clear();
  TR_TRY(check_field(request, given->find("level_axis") != nullptr).in(context));
  return request;
}

bool takes_field_option(std::string_view format, std::string_view key) {
  const Result<const formats::Format*> found = formats::find(format);
  if (!found.is_ok()) return false;
  if (key == "keys") return !(*found)->options.keys.empty();
  const FormatTable table = &codec::FormatOptions::field;
  return option_of(**found, table, key) != nullptr ||
         std::ranges::none_of(formats::all(), [&](const formats::Format& each) {
           return option_of(each, table, key) != nullptr;
         });
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

Result<std::vector<std::string>> parse_dimensions(std::string_view text, const std::vector<Index>& shape) {
  if (shape.empty()) return Status(Code::argument, "a scalar has no dimensions: leave the call out");
  std::vector<std::string> names;
  for (const std::string& each : split(text, ',')) {
    names.emplace_back(trim(each));
    if (names.back().empty()) return Status(Code::argument, "a name is empty");
    if (std::ranges::count(names, names.back()) > 1)
      return Status(Code::argument, cat("\"", names.back(), "\" names two dimensions of one layout"));
  }
  if (names.size() == shape.size()) return names;
  return Status(Code::argument, cat("there are ", counted(names.size(), "name"), ", and the layout, ",
                                    extents(shape), ", has ", counted(shape.size(), "dimension")));
}

constexpr OptionTable<codec::Keys> axis_options(kAxisRows);

Result<codec::Keys> parse_axis(std::string_view options) {
  codec::Keys attributes;
  TR_TRY(axis_options.read(options, attributes));
  return attributes;
}

Result<GeoreferenceRequest> parse_georeference(std::string_view options) {
  GeoreferenceRequest request;
  const Result<Options> given = Options::parse(options);
  TR_TRY(given.status().in("georeference"));
  TR_TRY(georeference_options.take(*given, request).in("georeference"));
  TR_TRY(take_others(*given, format_with_keys(), {georeference_options.keys(), {}, "", nullptr}, request.keys)
             .in("georeference"));
  if (request.sample_file.empty() && request.keys.empty()) {
    return settings_error("georeference: give sample=FILE, or keys=\"gridType=..., Ni=..., ...\"");
  }
  return request;
}

}  // namespace tailrace::streams
