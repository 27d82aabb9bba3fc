// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/leads.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <map>
#include <ranges>

#include "faces/input/files.hpp"
#include "faces/streams/files/existing_files.hpp"
#include "formats/index/index.hpp"
#include "ground/base/text.hpp"

namespace tailrace::input {

namespace {

constexpr std::int64_t settles_after = 2'000'000'000;  // nanoseconds
constexpr std::array<std::string_view, 3> short_units{"ns", "us", "ms"};

using Names = std::map<std::int64_t, std::string>;  // by the least lead of the file

Result<Names> find_names(storage::Target& target, const OpenRequest& request,
                         const streams::PatternContext& context) {
  Result<Names> files = streams::find_files(target, request.pattern, context);
  // Times of a model may begin below zero.
  if (!files.is_ok() || !request.pattern.depends_on_lead() || context.time.is_model()) return files;
  Names& found = *files;
  // Earlier runs may have left any number of files. Of those before the base time only the last is kept, for
  // interpolation.
  if (const auto from_base = found.lower_bound(0); from_base != found.begin())
    found.erase(found.begin(), std::prev(from_base));
  return files;
}

/// Returns a file of the pattern. The program does not know yet what its leads count, so the function tries
/// each kind of axis on the names.
Result<std::optional<std::string>> find_any(storage::Target& target, const OpenRequest& request,
                                            streams::PatternContext context) {
  for (const TimeAxis& axis :
       {request.time, TimeAxis::of_leads(*find_time_unit("ns")), TimeAxis::of_model()}) {
    context.time = axis;
    if (!request.pattern.check(axis).is_ok()) continue;
    const Result<Names> names = find_names(target, request, context);
    TR_TRY(names.status());
    if (names->empty()) continue;
    const auto from_base = names->lower_bound(0);
    return std::optional((from_base == names->end() ? std::prev(from_base) : from_base)->second);
  }
  return std::optional<std::string>();
}

/// Returns Code::settings if a name tells a lead between two seconds: a stream of seconds would leave it out.
Status check_names(storage::Target& target, const OpenRequest& request, streams::PatternContext context) {
  const auto names_unit = [&](std::string_view unit) {
    return request.pattern.text().find(cat(unit, "}")) != std::string::npos;
  };
  const auto has = std::ranges::find_if(short_units, names_unit);
  if (request.time.is_model() || has == short_units.end() || !request.pattern.depends_on_lead()) return {};
  const Result<Names> ours = find_names(target, request, context);
  context.time = TimeAxis::of_leads(*find_time_unit(*has));
  const Result<Names> all = find_names(target, request, context);
  TR_TRY(ours.status());
  TR_TRY(all.status());
  if (ours->size() == all->size()) return {};
  const auto left_out = std::ranges::find_if(*all, [&](const auto& each) {
    return std::ranges::count(*ours | std::views::values, each.second) == 0;
  });
  return {Code::settings,
          cat(left_out == all->end() ? request.pattern.text() : left_out->second,
              " has a lead between two seconds, and the stream leads in s: give lead_unit=", *has)};
}

/// Returns what the stream's leads count: as the program says, or else as the index beside the first file
/// does. The program does not say which units the times of a model have, nor whether they have a base time.
Result<TimeAxis> find_axis(storage::Target& target, const OpenRequest& request,
                           const streams::PatternContext& context) {
  if (request.is_told && !request.time.is_model()) return request.time;
  const Result<std::optional<std::string>> path = find_any(target, request, context);
  TR_TRY(path.status());
  if (!*path) return request.time;
  const Result<std::string> index = streams::find_index(target, **path);
  TR_TRY(index.status());
  const Result<bool> is_there = target.exists(*index);
  TR_TRY(is_there.status());
  if (!*is_there) {
    if (!request.is_told) TR_TRY(check_names(target, request, context));
    return request.time;
  }
  // This function reports no damaged index and no option that contradicts the file: opening the file does.
  const Result<streams::IndexContents> contents = streams::load_index(target, *index);
  if (!contents.is_ok()) return request.time;
  const TimeAxis& its = contents->header.time;
  const bool agrees = its.is_model() && its.has_base() == request.base.has_value();
  return !request.is_told || agrees ? its : request.time;
}

/// True if the file of this lead also holds later leads.
bool is_coarse(const OpenRequest& request, const streams::PatternContext& context, std::int64_t lead) {
  const Result<std::string> here = request.pattern.expand(lead, context);
  const Result<std::string> behind = request.pattern.expand(lead + 1, context);
  return here.is_ok() && behind.is_ok() && *here == *behind;
}

/// Returns what check_times() returns. A file whose times count from no date but that has fields without time
/// is read for these: a get of another field then returns the error.
Status check_steps(const std::string& path, const sources::Inventory& inventory,
                   const FilesDefinition& files) {
  const bool has_dates = !inventory.time.is_model() || inventory.time.has_base();
  const bool is_for_fixed =
      !files.time.is_model() && !has_dates &&
      std::ranges::count(inventory.records, sources::any_time, &sources::Record::valid) > 0;
  return is_for_fixed ? Status() : check_times(path, inventory, files);
}

Status no_files(const OpenRequest& request, const streams::PatternContext& context) {
  const streams::Pattern::Split split = request.pattern.split(context);
  return {Code::io,
          cat("no file has a name of the pattern \"", split.fixed, split.rest,
              "\": check the name, base= and member=; follow=on waits for files that come later"),
          ENOENT};
}

}  // namespace

std::vector<std::int64_t> leads_in(const sources::Inventory& inventory, const FilesDefinition& files,
                                   const streams::Pattern& pattern, const std::string& path,
                                   std::int64_t lead) {
  std::vector<std::int64_t> leads;
  bool fits_any = false;
  for (const sources::Record& record : inventory.records) {
    if (files.member && record.member >= 0 && record.member != *files.member) continue;
    if (record.valid == sources::any_time) {
      fits_any = true;
      continue;
    }
    const std::optional<std::int64_t> own = files.lead_of(inventory, record.valid);
    if (own && (leads.empty() || leads.back() != *own)) leads.push_back(*own);
  }
  std::ranges::sort(leads);
  leads.erase(std::ranges::unique(leads).begin(), leads.end());
  if (leads.empty() && fits_any) return {lead};
  if (pattern.depends_on_lead())
    std::erase_if(leads, [&](std::int64_t each) {
      const Result<std::string> name = pattern.expand(each, files.context());
      return !name.is_ok() || *name != path;
    });
  return leads;
}

Result<FilesDefinition> find_steps(storage::Target& target, const OpenRequest& request,
                                   const std::string& cache, const Opener& open) {
  FilesDefinition files;
  files.pattern = request.pattern.text();
  files.calendar = request.calendar;
  files.base = request.base.value_or(DateTime());
  files.member = request.member;
  files.follows = request.follows;
  files.is_linear = request.is_linear;
  files.bridges = request.bridges;
  files.prefetch = request.prefetch;
  files.cache = cache;
  files.is_told = request.is_told;
  Result<TimeAxis> axis = find_axis(target, request, files.context());
  TR_TRY(axis.status());
  files.time = std::move(*axis);
  files.is_told = files.is_told || files.time.nanoseconds() < TimeAxis().nanoseconds();
  TR_TRY(request.pattern.check(files.time));
  if (request.follows) {
    Follower follower(files);
    Result<std::vector<std::int64_t>> there = follower.look(target, open, 0);
    TR_TRY(there.status());
    files.leads = std::move(*there);
    return files;
  }
  const Result<Names> names = find_names(target, request, files.context());
  TR_TRY(names.status());
  if (names->empty()) return no_files(request, files.context());
  if (!request.base) {
    const auto first = open(names->begin()->second);
    TR_TRY(first.status());
    const sources::Inventory& inventory = (*first)->inventory();
    if (inventory.records.empty())
      return Status(Code::settings,
                    cat("base= is missing, and ", names->begin()->second, " has no record that tells it"));
    const auto told = std::ranges::find_if(
        inventory.records, [](const auto& each) { return each.reference != sources::any_time; });
    // A file without any times has one step, at lead 0, whatever the base time.
    if (told != inventory.records.end() && inventory.time.has_base()) {
      files.calendar = inventory.calendar;
      files.base = from_seconds(files.seconds_of(inventory, told->reference), files.calendar);
    }
  }
  for (const auto& [lead, path] : *names) {
    if (request.pattern.depends_on_lead() && !is_coarse(request, files.context(), lead)) {
      files.leads.push_back(lead);
      continue;
    }
    const auto source = open(path);
    const Status fits = source.is_ok() ? check_steps(path, (*source)->inventory(), files) : source.status();
    // The file before the base time may be of an earlier run, so its error does not count. If a step is
    // missing because of it, that error lists the steps that there are.
    if (lead < 0 && !files.time.is_model() && !fits.is_ok()) continue;
    TR_TRY(fits);
    std::ranges::copy(leads_in((*source)->inventory(), files, request.pattern, path, lead),
                      std::back_inserter(files.leads));
  }
  std::ranges::sort(files.leads);
  files.leads.erase(std::ranges::unique(files.leads).begin(), files.leads.end());
  return files;
}

Follower::Follower(const FilesDefinition& files) : files_(files) {
  Result<streams::Pattern> pattern = streams::Pattern::parse(files.pattern);
  if (pattern.is_ok()) request_.pattern = std::move(*pattern);
}

Result<std::vector<std::int64_t>> Follower::look(storage::Target& target, const Opener& open,
                                                 std::int64_t now) {
  failure_ = Status();
  looked_at_.clear();
  Result<std::vector<std::int64_t>> there = look_once(target, open, now);
  if (!there.is_ok()) failure_ = there.status();
  return there;
}

Result<std::vector<std::int64_t>> Follower::look_once(storage::Target& target, const Opener& open,
                                                      std::int64_t now) {
  const Result<Names> names = find_names(target, request_, files_.context());
  TR_TRY(names.status());
  std::vector<std::int64_t> all;
  for (const auto& [lead, path] : *names) {
    Seen& seen = seen_[path];
    const Result<bool> ready = is_ready(target, path, seen, now);
    if (!ready.is_ok()) failure_ = ready.status();
    if (ready.is_ok() && *ready && !seen.is_read) {
      const Status read = read_leads(open, path, lead, seen);
      // Wrong settings stay wrong, so opening fails, unless the file may be of an earlier run.
      if (read.code() == Code::settings && !may_be_earlier(lead)) return read;
      if (!read.is_ok()) failure_ = read;
    }
    if (seen.is_read && seen.index) looked_at_.insert(path);
    all.insert(all.end(), seen.leads.begin(), seen.leads.end());
    // Stop at a file that cannot be read yet: with later steps known, this file would seem to have no more of
    // its own.
    if (!seen.is_read && !may_be_earlier(lead)) break;
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

std::vector<std::int64_t> Follower::taken_back(std::span<const std::int64_t> known) const {
  std::vector<std::int64_t> gone;
  for (const std::int64_t lead : known) {
    const Result<std::string> path = request_.pattern.expand(lead, files_.context());
    if (!path.is_ok() || !looked_at_.contains(*path)) continue;
    const std::vector<std::int64_t>& there = seen_.at(*path).leads;
    if (!std::ranges::binary_search(there, lead)) gone.push_back(lead);
  }
  return gone;
}

Status Follower::read_leads(const Opener& open, const std::string& path, std::int64_t lead,
                            Seen& seen) const {
  const auto source = open(path);
  TR_TRY(source.status());
  const sources::Inventory& inventory = (*source)->inventory();
  TR_TRY(check_steps(path, inventory, files_));
  seen.is_read = true;
  seen.leads = leads_in(inventory, files_, request_.pattern, path, lead);
  if (seen.leads.empty() && !inventory.records.empty())
    return {Code::argument, cat(path, " has no record of the time that its name tells: check base=")};
  return {};
}

/// True if the file may be read now.
Result<bool> Follower::is_ready(storage::Target& target, const std::string& path, Seen& seen,
                                std::int64_t now) {
  const Result<std::string> index = streams::find_index(target, path);
  TR_TRY(index.status());
  const Result<std::optional<Bytes>> of_index = storage::size_if_there(target, *index);
  TR_TRY(of_index.status());
  const Result<std::optional<storage::Identity>> stamp = stamp_of(target, *index);
  TR_TRY(stamp.status());
  // With an index, its size counts: it grows with each commit, and is cut when steps are taken back.
  const Result<std::optional<Bytes>> size = *of_index ? of_index : storage::size_if_there(target, path);
  // Targets that present stores as files answer Code::state for a store of another program.
  const bool is_directory = size.status().error_number() == EISDIR || size.status().code() == Code::state;
  if (!is_directory) TR_TRY(size.status());
  const Bytes bytes = is_directory ? 0 : size->value_or(0);
  if (bytes != seen.size || *stamp != seen.index) seen = {bytes, now, *stamp, false, std::move(seen.leads)};
  if (*of_index) return true;
  const Result<bool> marked = target.exists(path + ".ready");
  TR_TRY(marked.status());
  return *marked || (!is_directory && now - seen.since >= settles_after);
}

}  // namespace tailrace::input
