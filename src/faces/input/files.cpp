// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/files.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>

#include "faces/input/choice.hpp"
#include "formats/opening/open.hpp"
#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

/// The most files that stay open. Steps that are read ahead lie in several files, but seldom in more than
/// these.
constexpr std::size_t most_open = 8;

/// The most tries to open a file whose writer commits meanwhile. Writers commit seldom enough.
constexpr int most_tries = 10;

/// The most names that the text of an error lists.
constexpr std::size_t most_named = 12;

/// True if the levels are equal as float32: a file may hold rounded levels, while the program gives decimal
/// numbers.
bool is_rounded_level(double a, double b) { return static_cast<float>(a) == static_cast<float>(b); }

/// A level and its type. Types of one kind of surface are turned into one type with one unit.
struct Surface {
  std::string_view type;
  double level;
};

/// Turns a level into its common type and unit. ecCodes has two types for pressures (whole hPa or not), and a
/// type of its own for the surface of the sea.
Surface in_common_unit(std::string_view type, double level) {
  if (type == "isobaricInPa") return {"isobaricInhPa", level / 100};
  if (type == "oceanSurface") return {"depthBelowSea", 0};
  return {type, level};
}

/// Returns the records of this level.
std::vector<const sources::Record*> at_level(const std::vector<const sources::Record*>& records,
                                             const FieldDefinition& field, double level) {
  const Surface wanted = in_common_unit(field.levels.type, level);
  const auto level_of = [](const sources::Record* each) {
    return in_common_unit(each->level_type, each->level).level;
  };
  std::vector<const sources::Record*> of_type;
  for (const sources::Record* record : records)
    if (record->level_type.empty() || in_common_unit(record->level_type, 0).type == wanted.type)
      of_type.push_back(record);
  // A record without a type of level is taken whatever its level, if it and the wanted level are the only
  // ones. Otherwise its level must agree.
  if (of_type.size() == 1 && of_type.front()->level_type.empty() && field.levels.values.size() == 1)
    return of_type;
  const auto is_it = [&](const sources::Record* each) { return is_same_level(level_of(each), wanted.level); };
  const bool is_rounded = std::ranges::none_of(of_type, is_it);
  std::erase_if(of_type, [&](const sources::Record* each) {
    return is_rounded ? !is_rounded_level(level_of(each), wanted.level) : !is_it(each);
  });
  const auto same = [&](const sources::Record* each) {
    return each->level_type == records.front()->level_type && each->level == records.front()->level;
  };
  // The program has named no level: a file's only level is meant.
  if (of_type.empty() && field.takes_any_level && std::ranges::all_of(records, same)) return records;
  return of_type;
}

std::optional<double> bottom_of(const codec::Levels& levels, double level) {
  const auto number = std::ranges::find(levels.values, level) - levels.values.begin();
  if (number >= std::ssize(levels.bottoms)) return std::nullopt;
  return levels.bottoms[static_cast<std::size_t>(number)];
}

bool tells_time(const sources::Record& record) { return record.valid != sources::any_time; }

/// Keeps the records that fit; keeps all if none fits.
template <typename Fits>
void keep_some(Candidates& records, const Fits& fits) {
  if (records.size() == 1) return;
  Candidates left;
  for (const sources::Record* const each : records)
    if (fits(*each)) left.push_back(each);
  if (!left.empty()) records = std::move(left);
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

Status check_times(const std::string& path, const sources::Inventory& inventory,
                   const FilesDefinition& files) {
  if (std::ranges::none_of(inventory.records, tells_time)) return {};
  const TimeAxis &ours = files.time, &its = inventory.time;
  if (its.is_model() != ours.is_model())
    return {Code::settings,
            ours.is_model()
                ? cat(path, " counts its times from a date, and the stream has time=model: leave it out")
                : cat(path, " has times of a model, in ", its.unit(), its.has_base() ? "" : " from no date",
                      ", and the stream leads in ", ours.unit(), ": give time=model")};
  if (ours.is_model() && ours.has_base() != its.has_base())
    return {Code::settings, its.has_base() ? cat(path, " counts its times from a date: give base=")
                                           : cat(path, " counts its times from no date: leave base= out")};
  if (its.has_base() && inventory.calendar != files.calendar)
    return {Code::settings, cat(path, " counts its times in the calendar ", name_of(inventory.calendar),
                                ", and the stream in ", name_of(files.calendar),
                                ": give calendar=", name_of(inventory.calendar))};
  if (files.is_told && !ours.is_model() && ours.nanoseconds() < TimeAxis().nanoseconds() &&
      !inventory.inexact.is_ok())
    return {Code::settings, cat(path, ": ", inventory.inexact.text())};
  const auto odd = std::ranges::find_if(inventory.records, [&](const sources::Record& each) {
    return tells_time(each) && !files.lead_of(inventory, each.valid);
  });
  if (odd == inventory.records.end()) return {};
  if (ours.is_model())
    return {Code::settings, cat(path, " counts its times in ", its.unit(), " since ",
                                format_time(from_seconds(inventory.base, inventory.calendar)),
                                ", and the stream in ", ours.unit(), " since ", format_time(files.base),
                                ": give that base time; times of a model are not converted")};
  return {Code::settings,
          cat(path, " has a step at ", its.at(odd->valid), " after ",
              format_time(from_seconds(inventory.base, inventory.calendar)),
              ", and the stream counts leads in ", ours.unit(), " after ", format_time(files.base),
              ", of which that is no whole number: give a finer lead_unit=",
              its.nanoseconds() < ours.nanoseconds() ? cat(", as lead_unit=", its.unit()) : "")};
}

OpenFile::OpenFile(const FilesDefinition& files, std::string path,
                   std::shared_ptr<const sources::Source> source,
                   std::shared_ptr<const CommittedSteps> commits)
    : path_(std::move(path)), source_(std::move(source)), commits_(std::move(commits)) {
  const sources::Inventory& inventory = source_->inventory();
  times_ = check_times(path_, inventory, files);
  for (const sources::Record& record : inventory.records) {
    const std::optional<std::int64_t> lead =
        tells_time(record) ? files.lead_of(inventory, record.valid) : sources::any_time;
    if (lead) fields_[record.field][*lead].push_back(&record);
  }
}

Result<const sources::Record*> OpenFile::find(const FilesDefinition& files, const FieldDefinition& field,
                                              std::int64_t lead, double level) const {
  const auto times = fields_.find(field.name);
  const auto is_on_times = [&](const sources::Record& each) {
    return each.field == field.name && tells_time(each);
  };
  if (!times_.is_ok() && std::ranges::any_of(source_->inventory().records, is_on_times)) return times_;
  if (times == fields_.end()) return no_field(field.name);
  auto records = times->second.find(lead);
  if (records == times->second.end()) records = times->second.find(sources::any_time);
  if (records == times->second.end())
    return with_unread(field.name, no_time(files, field.name, times->second, lead));
  std::vector<const sources::Record*> ours;
  for (const sources::Record* record : records->second)
    if (!files.member || record->member < 0 || record->member == *files.member) ours.push_back(record);
  const std::vector<const sources::Record*> fitting = at_level(ours, field, level);
  if (fitting.empty()) return with_unread(field.name, no_level(field, records->second, level));
  return the_one(fitting, files, field, lead, level);
}

/// Returns the record, among those of one level, that fits the stream's member and base time and the field's
/// choice.
Result<const sources::Record*> OpenFile::the_one(Candidates records, const FilesDefinition& files,
                                                 const FieldDefinition& field, std::int64_t lead,
                                                 double level) const {
  const std::string what = cat(path_, " has '", records.front()->field, "' at ", files.time.at(lead));
  const sources::Inventory& inventory = source_->inventory();
  keep_some(records, [&](const sources::Record& each) {
    return files.lead_of(inventory, each.reference) == std::optional<std::int64_t>(0);
  });
  if (files.member)
    keep_some(records, [&](const sources::Record& each) { return each.member == *files.member; });
  TR_TRY(keep_chosen(*source_, field.choice, bottom_of(field.levels, level), what, records));
  std::set<int> members;
  std::set<std::int64_t> runs;
  for (const sources::Record* record : records) {
    members.insert(record->member);
    runs.insert(inventory.time.has_base() ? files.seconds_of(inventory, record->reference) : 0);
  }
  if (!files.member && members.size() > 1)
    return Status(Code::argument, cat(what, " of the members ", list_text(members),
                                      ": say which one, as member=", *members.rbegin()));
  if (runs.size() > 1) {
    std::vector<std::string> times;
    for (const std::int64_t run : runs) times.push_back(format_time(from_seconds(run, files.calendar)));
    return Status(Code::argument,
                  cat(what, " of the runs of ", list_text(times), ", and none begins at the base time ",
                      format_time(files.base), ": give base= as one of them"));
  }
  const auto has_first_grid = [&](const sources::Record* each) {
    return each->grid == records.front()->grid;
  };
  if (!std::ranges::all_of(records, has_first_grid)) {
    // If the records have several grids, the layout chooses.
    keep_some(records, [&](const sources::Record& each) {
      const sources::Grid& grid = source_->inventory().grids[static_cast<std::size_t>(each.grid)];
      return sources::check_grid(grid, field.shape, field.georeference).is_ok();
    });
  }
  return the_last_of_equals(*source_, what, records);
}

/// Adds to an error that the file has parts that were not read, if one of them may be the field.
Status OpenFile::with_unread(const std::string& name, const Status& status) const {
  const std::vector<sources::Unread>& unread = source_->inventory().unread;
  auto found = std::ranges::find(unread, name, &sources::Unread::field);
  if (found == unread.end()) found = std::ranges::find(unread, "", &sources::Unread::field);
  if (found == unread.end()) return status;
  return {status.code(), cat(status.text(), ". Not all of ", found->field.empty() ? "the file" : "it",
                             " is read: ", found->why.text())};
}

Status OpenFile::no_field(const std::string& name) const {
  const std::vector<sources::Unread>& unread = source_->inventory().unread;
  const auto found = std::ranges::find(unread, name, &sources::Unread::field);
  if (found != unread.end()) return found->why.in(cat(path_, ": '", name, "' is not read"));
  if (fields_.empty()) return {Code::argument, cat(path_, " has no field '", name, "': it has no records")};
  const auto names = std::views::keys(fields_);
  const std::string near = nearest(name, names);
  return with_unread(
      name, {Code::argument, cat(path_, " has no field '", name, "'; ",
                                 near.empty() ? "" : cat("the nearest is '", near, "', and "), "it has ",
                                 list_text(names), ". If the file's name is another one, give it as name=")});
}

Status OpenFile::no_time(const FilesDefinition& files, const std::string& name, const Times& times,
                         std::int64_t lead) const {
  std::vector<std::int64_t> leads;
  for (const auto& [each, records] : times)
    if (each != sources::any_time) leads.push_back(each);
  const TimeAxis& time = files.time;
  std::string text = cat(path_, " has no '", name, "' at ", time.at(lead));
  const std::int64_t base = to_seconds(files.base, files.calendar);
  if (time.has_base() && !time.is_model() && time.seconds(lead))
    text += cat(", valid ", format_time(from_seconds(base + *time.seconds(lead), files.calendar)));
  text += ": it has ";
  if (leads.size() > most_named) {
    text += leads_text(leads, time);
  } else if (time.is_model()) {
    std::vector<double> numbers;
    for (const std::int64_t each : leads) numbers.push_back(TimeAxis::time_of(each));
    text += cat("it at ", list_text(numbers), time.unit() == "1" ? "" : " ",
                time.unit() == "1" ? "" : time.unit());
  } else {
    text += cat("it at ", list_text(leads), " ", time.unit());
  }
  return {Code::argument, time.has_base() ? text + " after the base time " + format_time(files.base) : text};
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

Files::Files(const FilesDefinition& definition, Opener open, storage::Target* target)
    : definition_(definition),
      open_(std::move(open)),
      target_(definition.follows ? target : nullptr),
      pattern_(streams::Pattern::parse(definition.pattern)) {}

Result<std::string> Files::path_of(std::int64_t lead) const {
  TR_TRY(pattern_.status());
  return pattern_->expand(lead, definition_.context());
}

std::shared_ptr<Files::KeptFile> Files::kept(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(entries_, [&](const auto& each) { return each.first == path; });
  if (found != entries_.end())
    entries_.splice(entries_.begin(), entries_, found);
  else
    entries_.emplace_front(path, std::make_shared<KeptFile>());
  std::shared_ptr<KeptFile> entry = entries_.front().second;
  if (entries_.size() > most_open) entries_.pop_back();
  return entry;
}

/// Reads the index beside the file if it has changed.
Result<std::shared_ptr<const CommittedSteps>> Files::look_at_index(KeptFile& entry,
                                                                   const std::string& path) const {
  if (target_ == nullptr) return std::shared_ptr<const CommittedSteps>();
  const std::lock_guard lock(entry.looking);
  if (entry.commits != nullptr) {
    const Result<bool> is_current = entry.commits->is_current(*target_);
    TR_TRY(is_current.status());
    if (*is_current) return entry.commits;
  }
  Result<CommittedSteps> commits = CommittedSteps::read(*target_, path, definition_);
  TR_TRY(commits.status());
  entry.commits = std::make_shared<const CommittedSteps>(std::move(*commits));
  return entry.commits;
}

/// True if both have the same version of the step at `lead`, whatever was committed behind it.
bool Files::are_same(const std::shared_ptr<const CommittedSteps>& a,
                     const std::shared_ptr<const CommittedSteps>& b, std::int64_t lead) const {
  if (a == b) return true;
  return a != nullptr && b != nullptr && a->has_index() == b->has_index() &&
         a->version(lead) == b->version(lead);
}

Result<std::shared_ptr<const OpenFile>> Files::at(std::int64_t lead) {
  const Result<std::string> path = path_of(lead);
  TR_TRY(path.status());
  const std::shared_ptr<KeptFile> entry = kept(*path);
  const std::lock_guard lock(entry->opening);
  for (int tries = 1;; ++tries) {
    const Result<std::shared_ptr<const CommittedSteps>> before = look_at_index(*entry, *path);
    TR_TRY(before.status());
    if (entry->file != nullptr && are_same(entry->file->commits(), *before, lead)) return entry->file;
    const Result<std::shared_ptr<const sources::Source>> source = open_(*path);
    // The source has read the index, too. If the step has the same version before and after, the source has
    // that version.
    const Result<std::shared_ptr<const CommittedSteps>> behind = look_at_index(*entry, *path);
    TR_TRY(behind.status());
    if (!are_same(*before, *behind, lead) && tries < most_tries) continue;
    TR_TRY(source.status());
    entry->file = std::make_shared<const OpenFile>(definition_, *path, *source, *before);
    return entry->file;
  }
}

Result<std::shared_ptr<const CommittedSteps>> Files::commits(std::int64_t lead) {
  const Result<std::string> path = path_of(lead);
  TR_TRY(path.status());
  const std::shared_ptr<KeptFile> entry = kept(*path);
  return look_at_index(*entry, *path);
}

std::vector<std::int64_t> Files::taken_back(std::int64_t lead, const CommittedSteps& commits,
                                            std::span<const std::int64_t> known) const {
  std::vector<std::int64_t> gone;
  const Result<std::string> path = path_of(lead);
  if (!path.is_ok() || !commits.has_index()) return gone;
  for (const std::int64_t each : known) {
    const Result<std::string> its = path_of(each);
    if (its.is_ok() && *its == *path && !commits.version(each)) gone.push_back(each);
  }
  return gone;
}

void Files::forget(std::int64_t lead) {
  const Result<std::string> path = path_of(lead);
  if (!path.is_ok()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& each) { return each.first == *path; });
}

}  // namespace tailrace::input
