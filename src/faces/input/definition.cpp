// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/definition.hpp"

#include <algorithm>

#include "ground/base/text.hpp"
#include "ground/layout/rows.hpp"
#include "ground/storage/paths.hpp"

namespace tailrace::input {

namespace {

template <typename T>
void put_optional(Packer& out, const std::optional<T>& value) {
  out.put(value.has_value()).put(value.value_or(T()));
}
template <typename T>
std::optional<T> get_optional(Unpacker& in) {
  const bool is_there = in.get<bool>();
  const T value = in.get<T>();
  return is_there ? std::optional(value) : std::nullopt;
}

/// Returns the file name of a step in brackets, " (fc_009.grib2)", or "" if both steps are in one file.
std::string name_text(const FilesDefinition& files, std::int64_t lead, std::int64_t before) {
  const Result<streams::Pattern> pattern = streams::Pattern::parse(files.pattern);
  if (!pattern.is_ok()) return "";
  const Result<std::string> name = pattern->expand(lead, files.context());
  const Result<std::string> other = pattern->expand(before, files.context());
  return name.is_ok() && other.is_ok() && *name != *other ? cat(" (", *name, ")") : "";
}

/// Returns the text of the time between two leads.
std::string length_text(const TimeAxis& time, std::int64_t from, std::int64_t to) {
  if (!time.is_model()) return time.text(to - from);
  const Result<std::int64_t> length = TimeAxis::code_of(TimeAxis::time_of(to) - TimeAxis::time_of(from));
  return length.is_ok() ? time.text(*length) : "";
}

/// Returns the first lead that seems to be missing between those before and behind a gap. Leads are numbers
/// of type T: the codes of a model's times have no differences.
template <typename T>
std::optional<T> missing_between(std::optional<T> first, T before, T behind, std::optional<T> last) {
  const T distance_before = first ? before - *first : T();
  const T distance_behind = last ? *last - behind : T();
  // Months differ by a tenth of their length, and a missing step doubles the distance: draw the line at 7/4.
  const T usual = std::max(distance_before, distance_behind);
  // Leads in nanoseconds leave no room for products.
  const bool is_far = usual > 0 && static_cast<double>(behind - before) >= 1.75 * static_cast<double>(usual);
  // Steps may be rarer behind the gap, so the distance before it says where the missing step would be.
  if (!is_far) return std::nullopt;
  return before + (distance_before > 0 ? distance_before : distance_behind);
}

/// True if the stream counts the file's times in whole seconds though they lie between them.
bool rounds(const FilesDefinition& files, const sources::Inventory& inventory) {
  return inventory.is_rounded && !files.is_told && !inventory.time.is_model();
}

Status check_gap(const FilesDefinition& files, std::span<const std::int64_t> there, std::int64_t lead) {
  const std::optional<std::int64_t> missing = files.missing_step(there, lead);
  if (!missing) return {};
  const TimeAxis& time = files.time;
  const auto behind = std::ranges::upper_bound(there, lead);
  const std::int64_t before = *std::prev(behind);
  return {Code::argument,
          cat("the step at ", time.at(*missing), name_text(files, *missing, before),
              " is missing: expected one each ", length_text(time, before, *missing), ", got none between ",
              time.is_model() ? "times " : "leads ", time.text(before), " and ", time.text(*behind),
              ", from which ", time.at(lead),
              " would be interpolated; get it, or give between=bridge to interpolate over it")};
}

}  // namespace

std::string leads_text(std::span<const std::int64_t> leads, const TimeAxis& time) {
  if (leads.empty()) return "no steps";
  if (leads.size() == 1) return cat("1 step, at ", time.at(leads.front()));
  return cat(leads.size(), " steps, from ", time.at(leads.front()), " to ", time.text(leads.back()));
}

std::optional<std::int64_t> FilesDefinition::lead_of(const TimeAxis& from, std::int64_t from_base,
                                                     std::int64_t lead) const {
  const std::int64_t ahead = from_base - to_seconds(base, calendar);
  if (time.is_model() || from.is_model()) {
    const bool fits = time.is_model() && from.is_model() && time.has_base() == from.has_base() &&
                      (!time.has_base() || (ahead == 0 && time.nanoseconds() == from.nanoseconds()));
    return fits ? std::optional(lead) : std::nullopt;
  }
  // The base times of both may be many years apart, so that their distance in nanoseconds needs 128 bits.
  __extension__ using Wide = __int128;
  const Wide since = Wide{lead} * from.nanoseconds() + Wide{ahead} * TimeAxis().nanoseconds();
  const Wide count = since / time.nanoseconds();
  const auto narrow = static_cast<std::int64_t>(count);
  return count * time.nanoseconds() == since && narrow == count ? std::optional(narrow) : std::nullopt;
}

std::optional<std::int64_t> FilesDefinition::lead_of(const sources::Inventory& inventory,
                                                     std::int64_t valid) const {
  if (valid == sources::any_time) return std::nullopt;
  if (rounds(*this, inventory)) return lead_of(TimeAxis(), seconds_of(inventory, valid), 0);
  return lead_of(inventory.time, inventory.base, valid);
}

std::int64_t FilesDefinition::seconds_of(const sources::Inventory& inventory, std::int64_t time) const {
  if (time == sources::any_time) return time;
  // Half a second is rounded up, as std::llround does with the numbers of all later times.
  const std::int64_t second = TimeAxis().nanoseconds() / inventory.time.nanoseconds();
  return inventory.seconds(rounds(*this, inventory) ? time + second / 2 : time);
}

Result<std::vector<std::int64_t>> FilesDefinition::around(std::span<const std::int64_t> there,
                                                          std::int64_t lead) const {
  const auto next = std::ranges::lower_bound(there, lead);
  if (next != there.end() && *next == lead) return std::vector{lead};
  if (follows && next == there.end()) return std::vector<std::int64_t>();
  const bool is_between = next != there.begin() && next != there.end();
  if (is_linear && is_between) {
    // Behind the last known step, a long distance proves nothing: steps may be rarer from there on.
    const bool is_open = follows && std::next(next) == there.end();
    if (!bridges && !is_open) TR_TRY(check_gap(*this, there, lead));
    return std::vector{*std::prev(next), *next};
  }
  std::string near = cat("the files have ", leads_text(there, time));
  if (is_between)
    near += cat("; the nearest are at ", time.text(*std::prev(next)), " and ", time.text(*next),
                ", and between=linear interpolates");
  return Status(Code::argument, cat("there is no step at ", time.at(lead), ": ", near));
}

std::optional<std::int64_t> FilesDefinition::missing_step(std::span<const std::int64_t> there,
                                                          std::int64_t lead) const {
  const auto behind = std::ranges::upper_bound(there, lead);
  if (behind == there.begin() || behind == there.end()) return std::nullopt;
  const auto before = std::prev(behind);
  std::optional<std::int64_t> first, last;
  if (before != there.begin()) first = *std::prev(before);
  if (std::next(behind) != there.end()) last = *std::next(behind);
  if (!time.is_model()) return missing_between(first, *before, *behind, last);
  const auto number = [](std::optional<std::int64_t> each) {
    return each ? std::optional(TimeAxis::time_of(*each)) : std::nullopt;
  };
  const std::optional<double> missing =
      missing_between(number(first), *number(*before), *number(*behind), number(last));
  if (!missing) return std::nullopt;
  const Result<std::int64_t> code = TimeAxis::code_of(*missing);
  return code.is_ok() ? std::optional(*code) : std::nullopt;
}

double FilesDefinition::weight(std::int64_t before, std::int64_t lead, std::int64_t behind) const {
  if (!time.is_model()) return static_cast<double>(lead - before) / static_cast<double>(behind - before);
  const double from = TimeAxis::time_of(before);
  return (TimeAxis::time_of(lead) - from) / (TimeAxis::time_of(behind) - from);
}

std::vector<std::int64_t> FilesDefinition::wanted(std::span<const std::int64_t> there,
                                                  std::vector<std::int64_t> now, std::int64_t lead,
                                                  bool backward) const {
  std::vector<std::int64_t> wanted = std::move(now);
  // The step to come will be interpolated from the last known step, so that is needed, too.
  if (wanted.empty() && is_linear && !there.empty()) wanted.push_back(there.back());
  if (backward && !wanted.empty()) {
    const auto before = std::ranges::lower_bound(there, wanted.front());
    for (auto each = before; each != there.begin() && std::ssize(wanted) < slots();)
      wanted.push_back(*--each);
    return wanted;
  }
  for (auto each = std::ranges::upper_bound(there, wanted.empty() ? lead : wanted.back());
       each != there.end() && std::ssize(wanted) < slots(); ++each)
    wanted.push_back(*each);
  return wanted;
}

FilesDefinition FilesDefinition::from_root() const {
  FilesDefinition files = *this;
  if (!pattern.starts_with('/') && storage::prefix_length(pattern) == 0) {
    files.pattern.clear();
    for (const char letter : directory) files.pattern.append(letter == '{' || letter == '}' ? 2 : 1, letter);
    files.pattern += pattern;
  }
  if (!cache.empty() && !cache.starts_with('/')) files.cache = directory + cache;
  return files;
}

void FilesDefinition::pack(Packer& out) const {
  out.put_text(pattern).put(base).put(calendar);
  put_optional(out, member);
  out.put(follows).put(is_linear).put(bridges).put(prefetch).put_text(cache);
  out.put_list(std::span<const std::int64_t>(leads)).put_text(directory);
  time.pack(out);
  out.put(is_told);
}

FilesDefinition FilesDefinition::unpack(Unpacker& in) {
  FilesDefinition files;
  files.pattern = in.get_text();
  files.base = in.get<DateTime>();
  files.calendar = in.get<Calendar>();
  files.member = get_optional<int>(in);
  files.follows = in.get<bool>();
  files.is_linear = in.get<bool>();
  files.bridges = in.get<bool>();
  files.prefetch = in.get<Index>();
  files.cache = in.get_text();
  files.leads = in.get_list<std::int64_t>();
  files.directory = in.get_text();
  // Only ranks of one job pack and unpack it.
  if (const Result<TimeAxis> time = TimeAxis::unpack(in); time.is_ok()) files.time = *time;
  files.is_told = in.get<bool>();
  return files;
}

void Choice::pack(Packer& out) const {
  out.put_text(statistic);
  put_optional(out, interval);
  put_optional(out, since);
  put_optional(out, percentile);
  out.put(std::ssize(keys));
  for (const auto& [key, value] : keys) out.put_text(key).put_text(value);
}

Choice Choice::unpack(Unpacker& in) {
  Choice choice;
  choice.statistic = in.get_text();
  choice.interval = get_optional<operations::IntervalLength>(in);
  choice.since = get_optional<codec::Statistic>(in);
  choice.percentile = get_optional<double>(in);
  for (auto keys = in.get<std::int64_t>(); keys > 0 && in.ok(); --keys) {
    std::string key = in.get_text();
    choice.keys.emplace_back(std::move(key), in.get_text());
  }
  return choice;
}

Index FieldDefinition::elements() const { return layout::box_count(cut); }

void FieldDefinition::pack(Packer& out) const {
  out.put_text(name).put_text(levels.type).put_list(std::span<const double>(levels.values));
  out.put_list(std::span<const double>(levels.bottoms)).put(takes_any_level);
  out.put_list(std::span<const Index>(shape)).put(type);
  out.put_list(std::span<const Index>(cut.lower)).put_list(std::span<const Index>(cut.upper));
  put_optional(out, missing);
  out.put_bytes(georeference.sample).put(std::ssize(georeference.keys));
  for (const auto& [key, value] : georeference.keys) out.put_text(key).put_text(value);
  choice.pack(out);
}

FieldDefinition FieldDefinition::unpack(Unpacker& in) {
  FieldDefinition field;
  field.name = in.get_text();
  field.levels.type = in.get_text();
  field.levels.values = in.get_list<double>();
  field.levels.bottoms = in.get_list<double>();
  field.takes_any_level = in.get<bool>();
  field.shape = in.get_list<Index>();
  field.type = in.get<ElementType>();
  field.cut.lower = in.get_list<Index>();
  field.cut.upper = in.get_list<Index>();
  field.missing = get_optional<double>(in);
  const auto sample = in.get_bytes();
  field.georeference.sample.assign(sample.begin(), sample.end());
  for (auto keys = in.get<std::int64_t>(); keys > 0 && in.ok(); --keys) {
    std::string key = in.get_text();
    field.georeference.keys.emplace_back(std::move(key), in.get_text());
  }
  field.choice = Choice::unpack(in);
  return field;
}

}  // namespace tailrace::input
