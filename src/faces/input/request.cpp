// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/request.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "faces/streams/definition/parse.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

constexpr std::int64_t most_prefetch = 1000;
/// In seconds; the same time in nanoseconds fits into 64 bits.
constexpr std::int64_t longest_timeout = 100'000 * std::int64_t{86'400};

/// An option of tr_stream_open, and the function that sets it.
struct KeyRow {
  std::string_view key;
  Status (*set)(OpenRequest&, const std::string&);
};

template <typename T, typename To>
Status take(const Result<T>& value, To& to) {
  TR_TRY(value.status());
  to = static_cast<To>(*value);
  return {};
}

Status settings_error(std::string text) { return {Code::settings, std::move(text)}; }

Status take_base(OpenRequest& request, const std::string& text) {
  const Result<DateTime> base = parse_time(text, request.calendar);
  if (!base.is_ok()) return settings_error(base.status().text());
  request.base = *base;
  return {};
}

Status take_between(OpenRequest& request, const std::string& text) {
  const Result<std::size_t> word = parse_choice(text, {"fail", "linear", "bridge"});
  TR_TRY(word.status());
  request.is_linear = *word >= 1;
  request.bridges = *word == 2;
  return {};
}

Status take_timeout(OpenRequest& request, const std::string& text) {
  const Result<std::int64_t> value = parse_duration(text);
  if (!value.is_ok()) return settings_error(value.status().text());
  if (*value > longest_timeout)
    return settings_error(
        cat("is longer than ", longest_timeout / 86'400, " days: leave it out to wait for ever"));
  request.timeout_seconds = *value;
  return {};
}

// The options are set in this order: the base time depends on the calendar.
constexpr std::array<KeyRow, 7> open_keys{{
    {"calendar", [](auto& r, auto& t) { return take(parse_calendar(t), r.calendar); }},
    {"base", take_base},
    {"member",
     [](auto& r, auto& t) { return take(parse_integer(t, 0, std::numeric_limits<int>::max()), r.member); }},
    {"prefetch", [](auto& r, auto& t) { return take(parse_integer(t, 0, most_prefetch), r.prefetch); }},
    {"between", take_between},
    {"follow", [](auto& r, auto& t) { return take(parse_boolean(t), r.follows); }},
    {"timeout", take_timeout},
}};

/// Options of tr_stream_define that mean the same for input and output.
constexpr std::array<std::string_view, 5> both_keys{"levels", "bottom", "missing", "level_axis", "nproma"};
/// Options that only matter for output.
constexpr std::array<std::string_view, 8> output_keys{"coefficients",      "vertical",  "accuracy",
                                                      "relative_accuracy", "bits",      "operation",
                                                      "at_zero",           "attributes"};

/// An option that chooses among the records of a file, and the function that sets it.
struct ChoiceRow {
  std::string_view key;
  Status (*set)(Choice&, const std::string&);
};

Status take_statistic(Choice& choice, const std::string& text) {
  const std::vector<std::string_view> words{"instant", "accum", "average", "maximum", "minimum"};
  const Result<std::size_t> word = parse_choice(text, words);
  TR_TRY(word.status());
  choice.statistic = words[*word];
  return {};
}

Status take_interval(Choice& choice, const std::string& text) {
  // The interval of a statistic may be empty, as at lead 0.
  if (const Result<std::int64_t> seconds = parse_duration(text); seconds.is_ok() && *seconds == 0) {
    choice.interval = operations::IntervalLength();
    return {};
  }
  return take(operations::parse_interval(text), choice.interval);
}

Status take_since(Choice& choice, const std::string& text) {
  using Since = codec::Statistic::Since;
  // Only the writer knows when its last output was, so since=last chooses nothing.
  if (text == "last") return {};
  if (text == "start") {
    choice.since.emplace().since = Since::start;
    return {};
  }
  const Result<std::int64_t> value = parse_duration(text);
  if (!value.is_ok() || *value == 0)
    return settings_error(cat("\"", text, "\" is neither start nor last nor a duration such as 6h"));
  choice.since.emplace().since = Since::duration;
  choice.since->duration_seconds = *value;
  return {};
}

Status take_percentile(Choice& choice, const std::string& text) {
  const Result<double> value = parse_real(text);
  TR_TRY(value.status());
  if (!(*value >= 0 && *value <= 100)) return settings_error("a percentile lies between 0 and 100");
  choice.percentile = *value;
  return {};
}

Status take_keys(Choice& choice, const std::string& text) {
  const Result<Options> list = Options::parse_list(text);
  TR_TRY(list.status());
  for (const Option& option : list->entries()) choice.keys.emplace_back(option.key, option.value);
  return {};
}

constexpr std::array<ChoiceRow, 5> choice_keys{{{"statistic", take_statistic},
                                                {"interval", take_interval},
                                                {"since", take_since},
                                                {"percentile", take_percentile},
                                                {"keys", take_keys}}};

bool is_output_key(const std::string& key) {
  if (std::ranges::count(output_keys, key) > 0) return true;
  return std::ranges::any_of(formats::all(), [&](const formats::Format& format) {
    return std::ranges::any_of(format.options.field,
                               [&](const codec::FormatOption& option) { return option.key == key; });
  });
}

/// True if the option is a key of a format that takes keys of any name, as GRIB does. Misspelt known options
/// do not count.
bool is_open_key(const Option& option, std::span<const std::string_view> known,
                 const std::vector<Index>& shape) {
  if (std::ranges::any_of(known, [&](std::string_view each) { return is_slip_of(option.key, each); }))
    return false;
  const std::string text = cat(option.key, "=", quote_option(option.value));
  return std::ranges::any_of(formats::all(), [&](const formats::Format& format) {
    return !format.options.keys.empty() &&
           streams::parse_field("t", static_cast<int>(ElementType::f32), shape, text, format.name).is_ok();
  });
}

Status check_open(const OpenRequest& request) {
  if (request.timeout_seconds && !request.follows)
    return settings_error("timeout= is how long a step is waited for: it needs follow=on");
  if (request.follows && !request.base)
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

Result<OpenRequest> parse_open(std::string_view pattern, std::string_view options) {
  OpenRequest request;
  Result<streams::Pattern> parsed = streams::Pattern::parse(pattern);
  TR_TRY(parsed.status());
  request.pattern = std::move(*parsed);
  const Result<Options> given = Options::parse(options);
  TR_TRY(given.status());
  for (const Option& option : given->entries()) {
    if (std::ranges::count(open_keys, option.key, &KeyRow::key) > 0) continue;
    std::vector<std::string_view> known;
    std::string list = "it may be ";
    for (const KeyRow& row : open_keys) {
      list += cat(known.empty() ? "" : ", ", row.key);
      known.push_back(row.key);
    }
    return settings_error(cat("unknown key \"", option.key, "\"", did_you_mean(option.key, known, list)));
  }
  for (const KeyRow& row : open_keys) {
    const std::string* const value = given->find(row.key);
    if (value != nullptr) TR_TRY(row.set(request, *value).in(cat(row.key, "=", quote_option(*value))));
  }
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
  if (request.type != ElementType::f32 && request.type != ElementType::f64) {
    return Status(Code::argument, cat(context, ": an input stream gives TR_F32 or TR_F64, not type ",
                                      element_type, " (", name_of(request.type), ")"));
  }
  const Result<Options> given = Options::parse(options);
  TR_TRY(given.status().in(context));
  std::string shared;
  for (const Option& option : given->entries()) {
    if (option.key == "name") {
      if (option.value.empty()) return settings_error(cat(context, ": name= is empty"));
      request.in_file = option.value;
    } else if (std::ranges::count(both_keys, option.key) > 0) {
      shared += cat(option.key, "=", quote_option(option.value), " ");
    } else if (const auto row = std::ranges::find(choice_keys, option.key, &ChoiceRow::key);
               row != choice_keys.end()) {
      TR_TRY(row->set(request.choice, option.value)
                 .in(cat(context, ": ", option.key, "=", quote_option(option.value))));
    } else if (!is_output_key(option.key)) {
      std::vector<std::string_view> known(both_keys.begin(), both_keys.end());
      known.emplace_back("name");
      for (const ChoiceRow& each : choice_keys) known.push_back(each.key);
      known.insert(known.end(), output_keys.begin(), output_keys.end());
      if (is_open_key(option, known, shape)) {
        request.choice.keys.emplace_back(option.key, option.value);
        continue;
      }
      return settings_error(cat(context, ": unknown key \"", option.key, "\"",
                                did_you_mean(option.key, known, "it is no option of fields that are read")));
    }
  }
  Result<streams::FieldRequest> parsed = streams::parse_field(name, element_type, shape, shared, "raw");
  TR_TRY(parsed.status());
  request.levels = std::move(parsed->definition.levels);
  request.takes_any_level = given->find("levels") == nullptr;
  request.missing = parsed->definition.missing;
  request.allocation = std::move(parsed->allocation);
  return request;
}

}  // namespace tailrace::input
