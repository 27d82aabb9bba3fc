// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "input/files.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>

#include "base/text.hpp"

namespace tailrace::input {

namespace {

/// Steps that are read ahead lie in several files. More than these stay open for nothing.
constexpr std::size_t most_open = 8;

/// Texts of errors name so many of the things that there are.
constexpr std::size_t most_named = 12;

bool is_same_level(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

template <typename Range>
std::string list_text(const Range& names) {
  std::string text;
  std::size_t count = 0;
  for (const auto& name : names) {
    if (++count > most_named) return cat(text, ", ...");
    text += cat(text.empty() ? "" : ", ", name);
  }
  return text;
}

}  // namespace

OpenFile::OpenFile(std::string path, std::shared_ptr<const sources::Source> source)
    : path_(std::move(path)), source_(std::move(source)) {
  for (const sources::Record& record : source_->inventory().records)
    fields_[record.field][record.valid].push_back(&record);
}

Result<const sources::Record*> OpenFile::find(const FilesDefinition& files, const FieldDefinition& field,
                                              std::int64_t lead, double level) const {
  const auto times = fields_.find(field.name);
  if (times == fields_.end()) return no_field(field.name);
  const auto records = times->second.find(files.valid(lead));
  if (records == times->second.end()) return no_time(files, field.name, times->second, lead);
  std::vector<const sources::Record*> of_type;
  for (const sources::Record* record : records->second) {
    if (files.member && record->member >= 0 && record->member != *files.member) continue;
    if (record->level_type.empty() || record->level_type == field.levels.type) of_type.push_back(record);
  }
  // A file that tells no type has the values of levels all the same, unless there is one level alone.
  if (of_type.size() == 1 && of_type.front()->level_type.empty() && field.levels.values.size() == 1)
    return of_type.front();
  for (const sources::Record* record : of_type | std::views::reverse)
    if (is_same_level(record->level, level)) return record;
  return no_level(field, records->second, level);
}

Status OpenFile::no_field(const std::string& name) const {
  if (fields_.empty()) return {Code::argument, cat(path_, " has no field '", name, "': it has no records")};
  const auto names = std::views::keys(fields_);
  return {Code::argument,
          cat(path_, " has no field '", name, "'; the nearest is '", nearest(name, names), "', and it has ",
              list_text(names), ". If the file's name is another one, give it as name=")};
}

Status OpenFile::no_time(const FilesDefinition& files, const std::string& name, const Times& times,
                         std::int64_t lead) const {
  std::vector<std::int64_t> leads;
  for (const auto& [valid, records] : times) leads.push_back(valid - files.valid(0));
  std::string text = cat(path_, " has no '", name, "' at lead ", lead, " s, valid ",
                         format_time(from_seconds(files.valid(lead), files.calendar)), ": it has ");
  text += leads.size() <= most_named ? cat("it at ", list_text(leads), " s") : leads_text(leads);
  return {Code::argument, text + " after the base time " + format_time(files.base)};
}

Status OpenFile::no_level(const FieldDefinition& field, const std::vector<const sources::Record*>& records,
                          double level) const {
  std::vector<std::string> there;
  for (const sources::Record* record : records) {
    std::string text = cat(record->level_type, record->level_type.empty() ? "level " : ":", record->level);
    if (std::ranges::count(there, text) == 0) there.push_back(std::move(text));
  }
  return {Code::argument, cat(path_, " has no '", field.name, "' at level ", level, " of type ",
                              field.levels.type, "; it has ", list_text(there))};
}

Files::Files(const FilesDefinition& definition, Opener open)
    : definition_(definition),
      open_(std::move(open)),
      pattern_(streams::Pattern::parse(definition.pattern)) {}

Result<std::shared_ptr<const OpenFile>> Files::at(std::int64_t lead) {
  TR_TRY(pattern_.status());
  const Result<std::string> path = pattern_->expand(lead, definition_.context());
  TR_TRY(path.status());
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(entries_, [&](const auto& each) { return each.first == *path; });
    if (found != entries_.end())
      entries_.splice(entries_.begin(), entries_, found);
    else
      entries_.emplace_front(*path, std::make_shared<Entry>());
    entry = entries_.front().second;
    if (entries_.size() > most_open) entries_.pop_back();
  }
  const std::lock_guard lock(entry->opening);
  if (entry->file == nullptr) {
    const Result<std::shared_ptr<const sources::Source>> source = open_(*path);
    TR_TRY(source.status());
    entry->file = std::make_shared<const OpenFile>(*path, *source);
  }
  return entry->file;
}

void Files::forget(std::int64_t lead) {
  if (!pattern_.is_ok()) return;
  const Result<std::string> path = pattern_->expand(lead, definition_.context());
  if (!path.is_ok()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& each) { return each.first == *path; });
}

}  // namespace tailrace::input
