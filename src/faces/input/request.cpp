// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/request.hpp"

#include <algorithm>
#include <limits>

#include "faces/streams/definition/parse.hpp"
#include "formats/cf/found.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

constexpr std::int64_t most_member = std::numeric_limits<int>::max();
constexpr std::int64_t most_prefetch = 1000;
/// In seconds; the same time in nanoseconds fits into 64 bits.
constexpr std::int64_t longest_timeout = 100'000 * std::int64_t{86'400};

Status take_between(OpenRequest& request, const std::string& text) {
  const Result<std::size_t> word = parse_choice(text, {"fail", "linear", "bridge"});
  TR_TRY(word.status());
  request.is_linear = *word >= 1;
  request.bridges = *word == 2;
  return {};
}

Status take_timeout(OpenRequest& request, const std::string& text) {
  const Result<std::int64_t> value = as_setting(parse_duration(text));
  TR_TRY(value.status());
  if (*value > longest_timeout)
    return settings_error(
        cat("is longer than ", longest_timeout / 86'400, " days: leave it out to wait for ever"));
  request.timeout_seconds = *value;
  return {};
}

Status take_time(OpenRequest& request, const std::string& text) {
  const Result<std::size_t> word = parse_choice(text, {"leads", "model"});
  TR_TRY(word.status());
  request.time = *word == 1 ? TimeAxis::of_model() : TimeAxis();
  request.is_told = *word == 1;
  return {};
}

Status take_lead_unit(OpenRequest& request, const std::string& text) {
  const Result<TimeAxis> axis = streams::parse_lead_unit(text, request.time);
  TR_TRY(axis.status());
  request.time = *axis;
  request.is_told = true;
  return {};
}

Status take_base(OpenRequest& request, const std::string& text) {
  TR_TRY(take(as_setting(parse_time(text, request.calendar)), request.base));
  return request.time.is_model() ? request.time.set_base() : Status();
}

// read() stores the values in this order, because the base time depends on the calendar.
constexpr OptionRow<OpenRequest> open_rows[] = {
    {{"calendar", "`proleptic_gregorian`", "", "base=2026-03-01 calendar=360_day",
      "the calendar of `base=`; without `base=` that of the files counts"},
     [](auto& r, auto& t) { return take(parse_calendar(t), r.calendar); }},
    {{"time", "that of the files' index, or `leads`", "", "time=model",
      "`model`: steps are at the times of a model, given to `tr_stream_begin_at`: [below](#time)"},
     take_time},
    {{"lead_unit", "that of the files' index, or `s`", "", "lead_unit=ms",
      "the unit of leads: `ns`, `us`, `ms`, `s`, `min`, `h` or `d`"},
     take_lead_unit},
    {{"base", "the files' reference time", "", "base=2026-03-01T00:00Z",
      "the time from which leads count. Needed if the pattern has times, and with `follow=on`"},
     take_base},
    {{"member", "", "", "member=3", "of an ensemble. Needed if the pattern has `{member}`"},
     [](auto& r, auto& t) { return take(parse_integer(t, 0, most_member), r.member); }},
    {{"prefetch", "`2`", "", "prefetch=4", "steps that are read ahead of the one that is open; 0: none"},
     [](auto& r, auto& t) { return take(parse_integer(t, 0, most_prefetch), r.prefetch); }},
    {{"between", "`fail`", "", "between=linear",
      "a lead between two steps of the files: an error, interpolated between them (`linear`), or so also "
      "over a missing file (`bridge`)"},
     take_between},
    {{"follow", "`off`", "", "follow=on timeout=10m", "a step that is not there yet is waited for"},
     [](auto& r, auto& t) { return take(parse_boolean(t), r.follows); }},
    {{"timeout", "for ever", "", "follow=on timeout=90s",
      "how long such a step is waited for; needs `follow=on`"},
     take_timeout},
};

/// Nobody calls it: parse_field() collects the options whose rows have it, since they mean the same for input
/// and output, and hands them to streams::parse_field().
Status as_in_output(FieldRequest& /*request*/, const std::string& /*text*/) { return {}; }

Status take_statistic(FieldRequest& request, const std::string& text) {
  const auto& words = streams::statistic_words;
  const Result<std::size_t> word = parse_choice(text, {words.begin(), words.end()});
  TR_TRY(word.status());
  request.choice.statistic = words[*word];
  return {};
}

Status take_interval(FieldRequest& request, const std::string& text) {
  // The interval of a statistic may be empty, as at lead 0.
  if (const Result<std::int64_t> seconds = parse_duration(text); seconds.is_ok() && *seconds == 0) {
    request.choice.interval = operations::IntervalLength();
    return {};
  }
  return take(operations::parse_interval(text), request.choice.interval);
}

Status take_since(FieldRequest& request, const std::string& text) {
  // Only the writer knows when its last output was, so since=last chooses nothing.
  if (text == "last") return {};
  return streams::take_since(request.choice.since.emplace(), text);
}

Status take_percentile(FieldRequest& request, const std::string& text) {
  const Result<double> value = parse_real(text);
  TR_TRY(value.status());
  if (!(*value >= 0 && *value <= 100)) return settings_error("a percentile lies between 0 and 100");
  request.choice.percentile = *value;
  return {};
}

Status take_keys(FieldRequest& request, const std::string& text) {
  const Result<Options> list = Options::parse_list(text);
  TR_TRY(list.status());
  for (const Option& option : list->entries()) request.choice.keys.emplace_back(option.key, option.value);
  return {};
}

constexpr OptionRow<FieldRequest> field_rows[] = {
    {{"levels", "surface; or the one level that the file has, whatever it is", "",
      "levels=pressure:850,500,1000",
      "the levels of the array, in its order: [all types](streams.md#levels). A level that the file has as a "
      "`float` (`depth:0.494025`) is found by its decimal number"},
     as_in_output},
    {{"bottom", "any", "", "levels=depthBelowLandLayer:0,0.1 bottom=0.1,0.4",
      "the bottoms of layers, one for each level or one for all; `levels=` has their tops"},
     as_in_output},
    {{"missing", "", "", "levels=surface missing=-9999",
      "stored where the file has no value, and taken for none where `between=` finds it in a file. `float` "
      "in a file holds the nearest one to it, which counts as `missing`, too. Without it such a place that a "
      "rank needs is an error. A field of integers takes an integer of its type"},
     as_in_output},
    {{"level_axis", "`0`", "", "levels=pressure:850,500 level_axis=2",
      "the dimension of the array that counts the levels, in C order"},
     as_in_output},
    {{"nproma", "", "", "levels=surface nproma=16", "arrays in blocks of so many points"}, as_in_output},
    {{"name", "the field's", "", "levels=surface name=tp",
      "the name of the field in the file; in Fortran the argument `name_in_file`"},
     [](auto& r, auto& t) {
       r.in_file = t;
       return Status();
     }},
    {{"statistic", "any", "", "levels=surface statistic=accum",
      "`instant`, `accum`, `average`, `maximum`, `minimum`"},
     take_statistic},
    {{"interval", "any", "", "levels=surface interval=6h",
      "the length of the statistic's interval, which ends at the step: a duration, or `1mo`, `1y`"},
     take_interval},
    {{"since", "any", "", "levels=surface since=start",
      "where the interval begins: `start`, at the base time, or a duration before the step. `last` says "
      "nothing"},
     take_since},
    {{"percentile", "any", "", "levels=surface percentile=90", "from 0 to 100"}, take_percentile},
    {{"keys", "any", "", "levels=surface keys=\"typeOfGeneratingProcess=2\"",
      "values of GRIB keys, as ecCodes prints or takes them. A key that is not reserved may also stand by "
      "itself"},
     take_keys},
};

/// True for options that only matter for output.
bool is_output_key(const std::string& key) {
  if (streams::field_options.find(key) != nullptr) return true;
  return std::ranges::any_of(formats::all(), [&](const formats::Format& format) {
    return std::ranges::any_of(format.options.field,
                               [&](const codec::FormatOption& option) { return option.key == key; });
  });
}

/// True if the option is a key of a format that takes keys of any name, as GRIB does. Misspelt known options
/// do not count.
bool is_open_key(const Option& option, const std::vector<std::string_view>& known,
                 const std::vector<Index>& shape) {
  if (std::ranges::any_of(known, [&](std::string_view each) { return is_slip_of(option.key, each); }))
    return false;
  const std::string text = text_of(option);
  return std::ranges::any_of(formats::all(), [&](const formats::Format& format) {
    return !format.options.keys.empty() &&
           streams::parse_field("t", static_cast<int>(ElementType::f32), shape, text, format.name).is_ok();
  });
}

/// Takes an option that is not in the table of input: one of output, or a key of a format.
Status take_other(FieldRequest& request, const Option& option) {
  // It says what the file has, and would be missed here.
  if (option.key == "section")
    return settings_error(
        "section= is for streams that are written: what a stream reads has the shape of its layout; read the "
        "whole grid, on a layout with its shape");
  if (is_output_key(option.key)) return {};
  std::vector<std::string_view> known = field_options.keys();
  const std::vector<std::string_view> of_output = streams::field_options.keys();
  known.insert(known.end(), of_output.begin(), of_output.end());
  if (!is_open_key(option, known, request.shape)) {
    return settings_error(cat("unknown key \"", option.key, "\"",
                              did_you_mean(option.key, known, "it is no option of fields that are read")));
  }
  request.choice.keys.emplace_back(option.key, option.value);
  return {};
}

Status check_open(const OpenRequest& request) {
  if (request.timeout_seconds && !request.follows)
    return settings_error("timeout= is how long a step is waited for: it needs follow=on");
  if (request.follows && !request.base && !request.time.is_model())
    return settings_error(
        "follow=on needs the base time: there may be no file yet that could tell it; give it as "
        "base=2026-03-01T00:00Z");
  if (request.pattern.uses_member() && !request.member)
    return settings_error("the pattern has {member}: say which one, as member=3");
  if (request.pattern.uses_time() && !request.base)
    return settings_error(
        "base= is missing: the pattern names files by their times; give the base time, as "
        "base=2026-03-01T00:00Z");
  return {};
}

}  // namespace

constexpr OptionTable<OpenRequest> open_options(open_rows);
constexpr OptionTable<FieldRequest> field_options(field_rows);

Result<OpenRequest> parse_open(std::string_view pattern, std::string_view options) {
  OpenRequest request;
  Result<streams::Pattern> parsed = streams::Pattern::parse(pattern);
  TR_TRY(parsed.status());
  request.pattern = std::move(*parsed);
  TR_TRY(open_options.read(options, request));
  TR_TRY(check_open(request));
  return request;
}

Result<FieldRequest> parse_field(std::string_view name, int element_type, const std::vector<Index>& shape,
                                 std::string_view options) {
  const std::string context = cat("field \"", name, "\"");
  FieldRequest request;
  request.name = name;
  request.in_file = name;
  request.type = static_cast<ElementType>(element_type);
  request.shape = shape;
  if (size_of(request.type) == 0 || is_complex(request.type)) {
    return Status(Code::argument,
                  cat(context, ": an input stream gives integers, TR_F32, TR_F64 or texts, not type ",
                      element_type, " (", name_of(request.type), ")"));
  }
  const Result<Options> given = Options::parse(options);
  TR_TRY(given.status().in(context));
  std::string shared;
  for (const Option& option : given->entries()) {
    if (option.key == "name" && option.value.empty()) return settings_error(cat(context, ": name= is empty"));
    const OptionRow<FieldRequest>* const row = field_options.find(option.key);
    if (row == nullptr) {
      TR_TRY(take_other(request, option).in(context));
    } else if (row->set == as_in_output) {
      shared += cat(text_of(option), " ");
    } else {
      TR_TRY(field_options.set(option, request).in(context));
    }
  }
  Result<streams::FieldRequest> parsed = streams::parse_field(name, element_type, shape, shared, "raw");
  TR_TRY(parsed.status());
  request.levels = std::move(parsed->definition.levels);
  request.takes_any_level = given->find("levels") == nullptr;
  request.missing = parsed->definition.missing;
  if (ByteVector element; request.missing && is_integer(request.type) &&
                          !cf::append(element, cf::number_of(request.type), *request.missing))
    return settings_error(cat(context, ": missing=", *request.missing, " is no ", name_of(request.type)));
  request.allocation = std::move(parsed->allocation);
  return request;
}

}  // namespace tailrace::input
