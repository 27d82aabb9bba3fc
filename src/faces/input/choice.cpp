// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/choice.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

using sources::Record;
using sources::Traits;

/// The most records that the text of an error lists.
constexpr std::size_t most_told = 12;

/// Longer values of keys are left out of error texts: they help nobody.
constexpr std::size_t longest_value = 40;

/// Returns the length of an interval as interval= takes it: "6h".
std::string interval_text(std::int64_t begin, std::int64_t end) {
  const std::int64_t seconds = end - begin;
  if (seconds % 3600 == 0) return cat(seconds / 3600, "h");
  return seconds % 60 == 0 ? cat(seconds / 60, "m") : cat(seconds, "s");
}

bool has_length(std::int64_t begin, std::int64_t end, const operations::IntervalLength& length) {
  if (length.months == 0) return end - begin == length.leads;
  // GRIB, the only format with such intervals, has this calendar.
  DateTime at = from_seconds(begin, Calendar::proleptic_gregorian);
  const std::int64_t month = at.month - 1 + length.months;
  at.year += month / 12;
  at.month = static_cast<int>(month % 12) + 1;
  return is_valid(at, Calendar::proleptic_gregorian) && to_seconds(at, Calendar::proleptic_gregorian) == end;
}

bool has_since(const Record& record, std::int64_t begin, const codec::Statistic& since) {
  if (since.since == codec::Statistic::Since::start) return begin == record.reference;
  // An interval that would begin before the base time begins at the base time.
  return begin == std::max(record.reference, record.valid - since.duration);
}

/// One trait that a definition asks for: the option, the same option with the record's own value, and whether
/// the two agree.
struct Asked {
  std::string wanted;
  std::string got;
  bool fits = false;
};

std::string option_text(std::string_view key, const std::string& value) {
  return cat(key, "=", value.empty() ? "none" : value);
}

/// Returns a list of keys as the user writes it in keys="...".
std::string keys_text(const std::string& list) {
  return cat("keys=", list.find('"') == std::string::npos ? cat('"', list, '"') : quote_option(list));
}

std::string key_text(const std::string& key, const std::string& value) {
  return keys_text(cat(key, "=", quote_option(value)));
}

std::vector<Asked> asked_of(const Record& record, const Traits& traits, const Choice& choice,
                            std::optional<double> bottom) {
  std::vector<Asked> all;
  const std::string interval = traits.begin ? interval_text(*traits.begin, record.valid) : "";
  if (!choice.statistic.empty())
    all.push_back({option_text("statistic", choice.statistic), option_text("statistic", traits.statistic),
                   choice.statistic == traits.statistic});
  if (choice.interval)
    all.push_back({choice.interval->months > 0 ? cat("interval=", choice.interval->months, "mo")
                                               : cat("interval=", interval_text(0, choice.interval->leads)),
                   option_text("interval", interval),
                   traits.begin && has_length(*traits.begin, record.valid, *choice.interval)});
  if (choice.since)
    all.push_back({choice.since->since == codec::Statistic::Since::start
                       ? "since=start"
                       : cat("since=", interval_text(0, choice.since->duration)),
                   option_text("interval", interval),
                   traits.begin && has_since(record, *traits.begin, *choice.since)});
  if (bottom)
    all.push_back({cat("bottom=", *bottom), traits.bottom ? cat("bottom=", *traits.bottom) : "no bottom",
                   traits.bottom && is_same_level(*traits.bottom, *bottom)});
  if (choice.percentile)
    all.push_back({cat("percentile=", *choice.percentile),
                   traits.percentile ? cat("percentile=", *traits.percentile) : "no percentile",
                   traits.percentile == choice.percentile});
  for (std::size_t i = 0; i < choice.keys.size(); ++i) {
    const auto& [key, value] = choice.keys[i];
    const Traits::Answer& answer = traits.answers.at(i);
    all.push_back({key_text(key, value),
                   answer.text.empty() ? cat("no key ", key) : key_text(key, answer.text), answer.fits});
  }
  return all;
}

bool is_open(const Choice& choice) {
  return choice.statistic.empty() && !choice.interval && !choice.since && !choice.percentile &&
         choice.keys.empty();
}

/// A record, and the options and keys in which it may differ from others.
struct Told {
  const Record* record = nullptr;
  std::uint64_t checksum = 0;
  codec::Keys options;  // options of tr_stream_define
  codec::Keys keys;     // of the format
};

Told told_of(const Record& record, const Traits& traits) {
  Told told{&record, traits.checksum, {}, {}};
  if (!traits.statistic.empty()) told.options.emplace_back("statistic", traits.statistic);
  if (traits.begin) told.options.emplace_back("interval", interval_text(*traits.begin, record.valid));
  if (traits.bottom) told.options.emplace_back("bottom", cat(*traits.bottom));
  if (traits.percentile) told.options.emplace_back("percentile", cat(*traits.percentile));
  for (const auto& each : traits.keys)
    if (each.second.size() <= longest_value) told.keys.push_back(each);
  return told;
}

/// Describes the differences of records, by as few options and keys as tell them apart.
class Differences {
 public:
  explicit Differences(const std::vector<Told>& all) : all_(all) {
    for (const std::string& name : names_in(&Told::options))
      if (classes(&Told::options, {name}) > 1) options_.push_back(name);
    std::size_t count = classes(&Told::options, options_);
    for (const std::string& name : names_in(&Told::keys)) {
      if (count == all_.size()) break;
      keys_.push_back(name);
      const std::size_t more = classes_of_both();
      if (more == count) keys_.pop_back();
      count = more;
    }
    are_all_told_ = count == all_.size();
  }

  /// True if options and keys tell all records apart; false if some differ only in octets without a key.
  [[nodiscard]] bool are_all_told() const { return are_all_told_; }
  /// Returns the options that choose a record: statistic=accum keys="typeOfSizeInterval=1".
  [[nodiscard]] std::string text(const Told& told) const {
    std::string text, keys;
    for (const std::string& name : options_)
      if (const std::string* const value = codec::find_key(told.options, name))
        text += cat(text.empty() ? "" : " ", name, "=", *value);
    for (const std::string& name : keys_)
      if (const std::string* const value = codec::find_key(told.keys, name))
        keys += cat(keys.empty() ? "" : ", ", name, "=", quote_option(*value));
    if (!keys.empty()) text += cat(text.empty() ? "" : " ", keys_text(keys));
    return text.empty() ? "none of these" : text;
  }

 private:
  using Part = codec::Keys Told::*;

  [[nodiscard]] std::vector<std::string> names_in(Part part) const {
    std::vector<std::string> names;
    for (const Told& told : all_)
      for (const auto& [name, value] : told.*part)
        if (std::ranges::count(names, name) == 0) names.push_back(name);
    return names;
  }
  static void add_values(std::vector<std::string>& values, const codec::Keys& keys,
                         const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const std::string* const value = codec::find_key(keys, name);
      values.push_back(value == nullptr ? "" : *value);
    }
  }
  /// Returns the number of different combinations of values of these names.
  [[nodiscard]] std::size_t classes(Part part, const std::vector<std::string>& names) const {
    std::set<std::vector<std::string>> found;
    for (const Told& told : all_) {
      std::vector<std::string> values;
      add_values(values, told.*part, names);
      found.insert(std::move(values));
    }
    return found.size();
  }
  [[nodiscard]] std::size_t classes_of_both() const {
    std::set<std::vector<std::string>> found;
    for (const Told& told : all_) {
      std::vector<std::string> values;
      add_values(values, told.options, options_);
      add_values(values, told.keys, keys_);
      found.insert(std::move(values));
    }
    return found.size();
  }

  const std::vector<Told>& all_;
  std::vector<std::string> options_, keys_;
  bool are_all_told_ = false;
};

std::string list_of(const std::vector<std::string>& texts) {
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i == most_told) return all + "; ...";
    all += cat(i == 0 ? "" : "; ", texts[i]);
  }
  return all;
}

}  // namespace

bool is_same_level(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

Status keep_chosen(const sources::Source& source, const Choice& choice, std::optional<double> bottom,
                   const std::string& what, Candidates& records) {
  if (is_open(choice) && !bottom) return {};
  Candidates left;
  std::string wanted;
  std::vector<std::string> there;
  for (const Record* const record : records) {
    const Result<std::optional<Traits>> traits = source.traits(*record, choice.keys);
    TR_TRY(traits.status());
    // The format has no traits, so the name of the variable alone has chosen the records.
    if (!*traits) return {};
    std::string got;
    bool fits = true;
    wanted.clear();
    for (const Asked& each : asked_of(*record, **traits, choice, bottom)) {
      wanted += cat(wanted.empty() ? "" : " ", each.wanted);
      got += cat(got.empty() ? "" : " ", each.got);
      fits = fits && each.fits;
    }
    if (fits) left.push_back(record);
    if (std::ranges::count(there, got) == 0) there.push_back(std::move(got));
  }
  if (left.empty())
    return {Code::argument, cat(what, ", but not with ", wanted, ": it has it with ", list_of(there))};
  records = std::move(left);
  return {};
}

Result<const Record*> the_last_of_equals(const sources::Source& source, const std::string& what,
                                         const Candidates& records) {
  if (records.size() == 1) return records.front();
  std::vector<Told> all;
  for (const Record* const record : records) {
    const Result<std::optional<Traits>> traits = source.traits(*record, {});
    TR_TRY(traits.status());
    if (!*traits) return records.back();
    // If several records have the same headers, the last one in the file replaces those before it.
    std::erase_if(all, [&](const Told& each) { return each.checksum == (*traits)->checksum; });
    all.push_back(told_of(*record, **traits));
  }
  if (all.size() == 1) return all.front().record;
  const Differences differences(all);
  std::vector<std::string> texts;
  for (const Told& each : all) texts.push_back(differences.text(each));
  std::string text = cat(what, " ", all.size(), " times: with ", list_of(texts));
  if (!differences.are_all_told())
    return Status(
        Code::argument,
        text +
            "; some of them differ in octets that ecCodes has no key for: put the one that you mean "
            "into a file of its own");
  return Status(Code::argument, cat(text, ". Say which one, as ", texts.back()));
}

}  // namespace tailrace::input
