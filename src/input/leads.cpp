// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "input/leads.hpp"

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/text.hpp"
#include "streams/index.hpp"

namespace tailrace::input {

namespace {

constexpr std::int64_t settles_after = 2'000'000'000;  // nanoseconds

using Names = std::map<std::int64_t, std::string>;  // by the least lead of the file

/// Looks through a directory, and through those in it while `depth` is above 0.
Status look_into(storage::Target& target, const std::string& directory, std::ptrdiff_t depth,
                 const OpenRequest& request, const streams::PatternContext& context, Names& found) {
  const Result<std::vector<std::string>> names = target.list(directory.empty() ? "." : directory);
  // Beside directories of the pattern there may be files.
  if (names.status().error_number() == ENOTDIR || names.status().error_number() == ENOENT) return {};
  TR_TRY(names.status());
  for (const std::string& name : *names) {
    const std::string path = directory + name;
    if (depth > 0) {
      TR_TRY(look_into(target, path + "/", depth - 1, request, context, found));
    } else if (const std::optional<std::int64_t> lead = request.pattern.match(path, context)) {
      found.emplace(*lead, path);
    }
  }
  return {};
}

Result<Names> find_names(storage::Target& target, const OpenRequest& request,
                         const streams::PatternContext& context) {
  Names found;
  if (!request.pattern.depends_on_lead()) {
    const Result<std::string> path = request.pattern.expand(0, context);
    TR_TRY(path.status());
    const Result<bool> exists = target.exists(*path);
    TR_TRY(exists.status());
    if (*exists) found.emplace(0, *path);
    return found;
  }
  const streams::Pattern::Split split = request.pattern.split(context);
  const std::size_t slash = split.fixed.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : split.fixed.substr(0, slash + 1);
  const std::string rest = split.fixed.substr(directory.size()) + split.rest;
  TR_TRY(look_into(target, directory, std::ranges::count(rest, '/'), request, context, found));
  return found;
}

/// Returns true if the name of the file with this lead is that of later leads, too.
bool is_coarse(const OpenRequest& request, const streams::PatternContext& context, std::int64_t lead) {
  const Result<std::string> here = request.pattern.expand(lead, context);
  const Result<std::string> behind = request.pattern.expand(lead + 1, context);
  return here.is_ok() && behind.is_ok() && *here == *behind;
}

Status no_files(const OpenRequest& request, const streams::PatternContext& context) {
  const streams::Pattern::Split split = request.pattern.split(context);
  return {Code::io,
          cat("no file has a name of the pattern \"", split.fixed, split.rest,
              "\": check the name, base= and member=; follow=on waits for files that come later"),
          ENOENT};
}

}  // namespace

std::vector<std::int64_t> leads_in(const sources::Inventory& inventory, const FilesDefinition& files) {
  std::vector<std::int64_t> leads;
  const std::int64_t base = files.valid(0);
  for (const sources::Record& record : inventory.records) {
    const bool is_other = files.member && record.member >= 0 && record.member != *files.member;
    if (!is_other && (leads.empty() || leads.back() != record.valid - base))
      leads.push_back(record.valid - base);
  }
  std::ranges::sort(leads);
  leads.erase(std::ranges::unique(leads).begin(), leads.end());
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
  files.prefetch = request.prefetch;
  files.cache = cache;
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
    files.calendar = inventory.calendar;
    files.base = from_seconds(inventory.records.front().reference, files.calendar);
  }
  for (const auto& [lead, path] : *names) {
    if (request.pattern.depends_on_lead() && !is_coarse(request, files.context(), lead)) {
      files.leads.push_back(lead);
      continue;
    }
    const auto source = open(path);
    TR_TRY(source.status());
    for (const std::int64_t each : leads_in((*source)->inventory(), files)) {
      const Result<std::string> name = request.pattern.expand(each, files.context());
      if (!request.pattern.depends_on_lead() || (name.is_ok() && *name == path)) files.leads.push_back(each);
    }
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
  const Result<Names> names = find_names(target, request_, files_.context());
  TR_TRY(names.status());
  std::vector<std::int64_t> all;
  for (const auto& [lead, path] : *names) {
    Seen& seen = seen_[path];
    const Result<bool> ready = is_ready(target, path, seen, now);
    if (!ready.is_ok()) failure_ = ready.status();
    if (ready.is_ok() && *ready && !seen.is_read) {
      const auto source = open(path);
      seen.is_read = source.is_ok();
      failure_ = source.status();
      if (source.is_ok()) seen.leads = leads_in((*source)->inventory(), files_);
    }
    all.insert(all.end(), seen.leads.begin(), seen.leads.end());
    // Steps come in their order: a later one would say that this file has no more.
    if (!seen.is_read) break;
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

/// Returns true if the file may be read.
Result<bool> Follower::is_ready(storage::Target& target, const std::string& path, Seen& seen,
                                std::int64_t now) {
  const Result<std::string> index = streams::find_index(target, path);
  TR_TRY(index.status());
  const Result<std::optional<Bytes>> of_index = storage::size_if_there(target, *index);
  TR_TRY(of_index.status());
  // An index grows with each commit.
  const Result<std::optional<Bytes>> size = *of_index ? of_index : storage::size_if_there(target, path);
  TR_TRY(size.status());
  if (size->value_or(0) != seen.size) seen = {size->value_or(0), now, false, std::move(seen.leads)};
  if (*of_index) return true;
  const Result<bool> marked = target.exists(path + ".ready");
  TR_TRY(marked.status());
  return *marked || now - seen.since >= settles_after;
}

}  // namespace tailrace::input
