// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/files/existing_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "faces/streams/files/manifest.hpp"
#include "formats/index/index.hpp"
#include "formats/listings/listings.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {
namespace {

using storage::Target;

/// A directory that no lead changes, with its slash, and the rest of the name. In the rest, leads stand as
/// the pattern writes them.
struct NameOfAll {
  std::string directory;
  std::string rest;
};

NameOfAll name_of_all(const Pattern& pattern, const PatternContext& context) {
  const Pattern::Split split = pattern.split(context);
  const std::size_t slash = split.fixed.rfind('/');
  const std::size_t length = slash == std::string::npos ? 0 : slash + 1;
  return {split.fixed.substr(0, length), split.fixed.substr(length) + split.rest};
}

NameOfAll name_of_all(const StreamRequest& request) {
  return name_of_all(request.pattern, request.context());
}

/// Looks for files of the pattern in a directory, `depth` levels of directories below it. Inner directories
/// that are closed to this user, such as lost+found, are passed over.
Status look_into(Target& target, const std::string& directory, std::ptrdiff_t depth, const Pattern& pattern,
                 const PatternContext& context, std::map<std::int64_t, std::string>& found) {
  const Result<std::vector<std::string>> names = target.list(directory.empty() ? "." : directory);
  // There may be files beside the directories of the pattern.
  if (names.status().error_number() == ENOTDIR || names.status().error_number() == ENOENT) return {};
  TR_TRY(names.status());
  for (const std::string& name : *names) {
    const std::string path = directory + name;
    if (depth > 0) {
      const Status inside = look_into(target, path + "/", depth - 1, pattern, context, found);
      if (inside.error_number() != EACCES) TR_TRY(inside);
    } else if (const std::optional<std::int64_t> lead = pattern.match(path, context, true)) {
      found.emplace(*lead, path);
    }
  }
  return {};
}

/// Returns the index of a file behind which this stream may go on, or none. A file that only looks like one
/// of the stream, or that is damaged, is not in the way of steps in other files.
Result<std::optional<IndexContents>> index_left_behind(Target& target, const StreamRequest& request,
                                                       const std::string& path) {
  const Result<std::string> name = find_index(target, path);
  if (name.status().code() == Code::state) return std::optional<IndexContents>();
  TR_TRY(name.status());
  const Result<bool> exists = target.exists(*name);
  TR_TRY(exists.status());
  if (!*exists) return std::optional<IndexContents>();
  Result<IndexContents> contents = load_index(target, *name);
  if (contents.status().code() == Code::io && contents.status().error_number() != EACCES)
    return contents.status();
  if (!contents.is_ok() || contents->tail == IndexTail::damaged) {
    log(LogLevel::warn, cat(path, ": is not looked at, as its index cannot be read: ",
                            contents.is_ok() ? contents->tail_text : contents.status().text()));
    return std::optional<IndexContents>();
  }
  const codec::StreamDefinition& now = request.definition;
  const IndexHeader& header = contents->header;
  const bool is_ours = header.format == now.format && header.base == now.base &&
                       header.calendar == now.calendar && header.time == now.time &&
                       header.member == now.member;
  return is_ours ? std::optional(std::move(*contents)) : std::optional<IndexContents>();
}

LastFile last_file(const std::string& path, const IndexHeader& header) {
  LastFile last{path, {}};
  for (const IndexField& field : header.fields) last.fields.push_back(field.name);
  return last;
}

/// Returns false for names that leave out the longer units of time ({valid:%H}): no lead follows from them.
bool names_tell_leads(const StreamRequest& request) {
  constexpr std::int64_t hour = 3600, day = 24 * hour;
  return std::ranges::all_of(std::array{hour, day + hour, 40 * day}, [&](std::int64_t seconds) {
    if (!request.definition.time.has_base()) return true;
    const std::int64_t lead = request.definition.time.lead_at(seconds).value_or(0);
    const Result<std::string> name = request.pattern.expand(lead, request.context());
    return !name.is_ok() || request.pattern.match(*name, request.context(), true);
  });
}

/// For names that do not tell leads: adds the stream's files, each by the lead of the last step in its index.
Status find_by_indexes(Target& target, const StreamRequest& request,
                       std::map<std::int64_t, std::string>& found) {
  const NameOfAll name = name_of_all(request);
  const Result<std::vector<std::string>> names = target.list(name.directory.empty() ? "." : name.directory);
  if (names.status().error_number() == ENOENT) return {};
  TR_TRY(names.status());
  const std::string begin = request.pattern.split(request.context()).fixed;
  for (const std::string& each : *names) {
    const std::string path = name.directory + each;
    if (!path.starts_with(begin) || !std::ranges::binary_search(*names, index_path(each))) continue;
    const auto contents = index_left_behind(target, request, path);
    TR_TRY(contents.status());
    if (!*contents || (*contents)->steps.empty()) continue;
    const std::int64_t lead = (*contents)->steps.back().lead;
    const Result<std::string> named = request.pattern.expand(lead, request.context());
    if (named.is_ok() && *named == path) found.emplace(lead, path);
  }
  return {};
}

/// For existing=fail: refuses any file of the stream, since nobody knows yet which leads will come.
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

/// Refuses a manifest that no stream has written, before the model runs. Directories that change with the
/// lead are looked into when their first file is finished.
Status look_for_manifest(Target& target, const StreamRequest& request) {
  if (!request.options.manifest.value_or(true) || !manifest_available().is_ok()) return {};
  const NameOfAll name = name_of_all(request);
  if (name.rest.find('/') != std::string::npos) return {};
  return check_manifest(target, manifest_path(name.directory));
}

/// Refuses a name that something else than a file has, such as a pipe; for a store, a file or somebody else's
/// directory. Files whose names change with the lead are looked at when their first step comes. Storage that
/// fails is left to the first step, too.
Status look_for_kind(Target& target, const StreamRequest& request) {
  if (request.pattern.depends_on_lead()) return {};
  const Result<std::string> path = request.pattern.expand(0, request.context());
  TR_TRY(path.status());
  const Status opened = target.open(*path, storage::OpenMode::read).status();
  const int error = opened.error_number();
  const bool is_no_file =
      opened.code() == Code::state || error == ESPIPE || error == EISDIR || error == ENOTDIR;
  return is_no_file ? opened : Status();
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

void LastFile::pack(Packer& out) const {
  out.put_text(path).put(static_cast<std::int64_t>(fields.size()));
  for (const std::string& field : fields) out.put_text(field);
}

LastFile LastFile::unpack(Unpacker& in) {
  LastFile last;
  last.path = in.get_text();
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count)
    last.fields.push_back(in.get_text());
  return last;
}

std::string path_of_lock(const StreamRequest& request) {
  NameOfAll name = name_of_all(request);
  std::replace(name.rest.begin(), name.rest.end(), '/', '_');
  return cat(name.directory, name.rest, ".stream.lock");
}

Result<std::shared_ptr<void>> lock_stream(Target& target, const StreamRequest& request) {
  const NameOfAll name = name_of_all(request);
  const std::string path = path_of_lock(request);
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

Status check_existing_files(Target& target, const StreamRequest& request,
                            const std::optional<Position>& resume) {
  TR_TRY(look_for_listings(target, request));
  TR_TRY(look_for_manifest(target, request));
  TR_TRY(look_for_kind(target, request));
  if (!resume) return request.options.existing == Existing::fail ? look_for_files(target, request) : Status();
  const Result<Resuming> resuming = resuming_from(*resume, request);
  TR_TRY(resuming.status());
  return look_for_lost(target, *resuming);
}

Result<std::map<std::int64_t, std::string>> find_files(Target& target, const Pattern& pattern,
                                                       const PatternContext& context) {
  std::map<std::int64_t, std::string> found;
  if (pattern.depends_on_lead()) {
    const NameOfAll name = name_of_all(pattern, context);
    TR_TRY(look_into(target, name.directory, std::ranges::count(name.rest, '/'), pattern, context, found));
    return found;
  }
  const Result<std::string> path = pattern.expand(0, context);
  TR_TRY(path.status());
  const Result<bool> exists = target.exists(*path);
  TR_TRY(exists.status());
  if (*exists) found.emplace(0, *path);
  return found;
}

Status find_left_behind(Target& target, const StreamRequest& request, std::vector<LeftBehind>& left,
                        LastFile& last) {
  if (request.options.existing != Existing::resume) return {};
  auto files = find_files(target, request.pattern, request.context());
  TR_TRY(files.status());
  if (!names_tell_leads(request)) {
    files->clear();
    TR_TRY(find_by_indexes(target, request, *files));
  }
  for (auto file = files->rbegin(); file != files->rend(); ++file) {
    const auto contents = index_left_behind(target, request, file->second);
    TR_TRY(contents.status());
    if (!*contents) continue;
    // A kill may leave a file that was begun, and has no step: the first step may still go to the one before.
    if ((*contents)->steps.empty()) continue;
    if (last.path.empty()) last = last_file(file->second, (*contents)->header);
    left.insert(left.begin(), {file->second, (*contents)->steps.back().lead});
    // Steps go to later files only when the file before is finished.
    if ((*contents)->closed) break;
  }
  return {};
}

Result<LastFile> file_of_position(Target& target, const StreamRequest& request, const Position& position) {
  const Result<Resuming> resuming = resuming_from(position, request);
  TR_TRY(resuming.status());
  if (resuming->path.empty()) return LastFile();
  for (const std::string& data : {resuming->path, again_path(resuming->path)}) {
    const Result<std::string> index = find_index(target, data);
    if (index.status().code() == Code::state) continue;
    TR_TRY(index.status());
    const Result<bool> exists = target.exists(*index);
    TR_TRY(exists.status());
    if (!*exists) continue;
    const Result<IndexContents> contents = load_index(target, *index);
    if (contents.status().code() == Code::io) return contents.status();
    const bool goes_on = contents.is_ok() && (contents->header.run == position.run ||
                                              request.options.existing == Existing::resume);
    if (goes_on) return last_file(resuming->path, contents->header);
  }
  return LastFile();
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
