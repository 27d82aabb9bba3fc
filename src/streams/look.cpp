// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/look.hpp"

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "listings/listings.hpp"
#include "streams/index.hpp"
#include "streams/manifest.hpp"

namespace tailrace::streams {
namespace {

using storage::Target;

/// A directory that no lead changes, with its slash, and the rest of the name. In the rest, leads stand as
/// the pattern writes them.
struct NameOfAll {
  std::string directory;
  std::string rest;
};

NameOfAll name_of_all(const StreamRequest& request) {
  const Pattern::Split split = request.pattern.split(request.context());
  const std::size_t slash = split.fixed.rfind('/');
  const std::size_t length = slash == std::string::npos ? 0 : slash + 1;
  return {split.fixed.substr(0, length), split.fixed.substr(length) + split.rest};
}

/// existing=fail is about all files of the stream: nobody knows yet which leads will come.
Status look_for_files(Target& target, const StreamRequest& request) {
  if (!request.pattern.depends_on_lead()) {
    const Result<std::string> path = request.pattern.expand(0, request.context());
    TR_TRY(path.status());
    const Result<bool> exists = target.exists(*path);
    TR_TRY(exists.status());
    return *exists ? exists_already(*path) : Status();
  }
  const NameOfAll name = name_of_all(request);
  // Directories that change with the lead are looked into when their first step comes.
  if (name.rest.find('/') != std::string::npos) return {};
  const Result<std::vector<std::string>> names = target.list(name.directory.empty() ? "." : name.directory);
  TR_TRY(names.status());
  for (const std::string& each : *names) {
    const std::string path = name.directory + each;
    if (request.pattern.match(path, request.context())) return exists_already(path);
  }
  return {};
}

/// Refuses a listing of somebody else's. Files whose names change with the lead are looked at when their
/// first step comes.
Status look_for_listings(Target& target, const StreamRequest& request) {
  const bool any = !request.options.listings.empty() && request.options.existing != Existing::overwrite;
  if (!any || request.pattern.depends_on_lead()) return {};
  const Result<std::string> path = request.pattern.expand(0, request.context());
  TR_TRY(path.status());
  // An index under the old name gets today's name when the file is begun.
  const Result<bool> is_old = is_index(target, old_index_path(*path));
  const bool has_index = is_old.is_ok() && *is_old;
  return has_index ? Status() : listings::check_ours(target, *path, request.options.listings);
}

Status look_for_lost(Target& target, const Resuming& resuming) {
  const std::string& path = resuming.path;
  if (path.empty()) return {};
  // The ledger finds out which of two pairs has the steps.
  const Result<std::string> second = find_index(target, again_path(path));
  TR_TRY(second.status());
  for (const std::string& each : {again_path(path), *second}) {
    const Result<bool> again = target.exists(each);
    TR_TRY(again.status());
    if (*again) return {};
  }
  const Result<bool> taken = was_taken_away(target, resuming);
  TR_TRY(taken.status());
  if (*taken) return {};
  return check_first_pair(target, path, resuming);
}

}  // namespace

Result<std::shared_ptr<void>> lock_stream(Target& target, const StreamRequest& request) {
  NameOfAll name = name_of_all(request);
  std::replace(name.rest.begin(), name.rest.end(), '/', '_');
  const std::string path = cat(name.directory, name.rest, ".stream.lock");
  Result<std::shared_ptr<void>> lock = target.lock(path);
  if (lock.status().error_number() == ENOENT && !name.directory.empty()) {
    TR_TRY(target.make_directories(name.directory));
    lock = target.lock(path);
  }
  if (lock.status().code() == Code::state) {
    return lock.status().in("another stream writes files of the same names");
  }
  return lock;
}

Status look_ahead(Target& target, const StreamRequest& request, const std::optional<Position>& resume) {
  TR_TRY(look_for_listings(target, request));
  if (!resume) return request.options.existing == Existing::fail ? look_for_files(target, request) : Status();
  const Result<Resuming> resuming = resuming_from(*resume, request);
  TR_TRY(resuming.status());
  return look_for_lost(target, *resuming);
}

Status exists_already(const std::string& path) {
  return {Code::state, cat(path,
                           " exists already (existing=fail): remove it, or say existing=replace "
                           "or existing=continue")};
}

Result<Resuming> resuming_from(Position position, const StreamRequest& request) {
  Resuming resuming;
  resuming.position = std::move(position);
  const Position& from = resuming.position;
  if (!from.lead) return resuming;
  Result<std::string> path = request.pattern.expand(*from.lead, request.context());
  // A lead that has no name failed its step, so there is no file of it.
  if (!path.is_ok()) return resuming;
  resuming.path = *path;
  if (!from.put_lead) return resuming;
  const bool lost = std::ranges::count(from.failed, *from.put_lead, &FailedStep::lead) > 0;
  Result<std::string> put_path = request.pattern.expand(*from.put_lead, request.context());
  if (lost || !put_path.is_ok()) return resuming;
  if (*put_path == *path)
    resuming.needs = from.put_lead;
  else
    resuming.before = *put_path;
  return resuming;
}

Result<bool> was_taken_away(Target& target, const Resuming& resuming) {
  const std::string& path = resuming.path;
  Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  Result<bool> listed = target.exists(manifest_path(path));
  TR_TRY(listed.status());
  if (*exists || !*listed || !resuming.needs) return false;
  Result<std::vector<ManifestEntry>> manifest = read_manifest(target, manifest_path(path));
  TR_TRY(manifest.status());
  const std::string name = manifest_entry(path, {}).path;
  return std::ranges::any_of(*manifest, [&](const ManifestEntry& entry) {
    return entry.path == name && entry.run == resuming.position.run &&
           std::ranges::count(entry.leads, *resuming.needs) > 0;
  });
}

}  // namespace tailrace::streams
