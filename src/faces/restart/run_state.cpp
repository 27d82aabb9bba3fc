// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/restart/run_state.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

#include "ground/base/text.hpp"
#include "ground/journal/flushed.hpp"
#include "ground/journal/journal.hpp"
#include "ground/journal/sidecar_file.hpp"
#include "ground/journal/undo_file.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::restart {

namespace {

using storage::OpenMode;
using storage::Target;

constexpr std::string_view recorder = "the checkpoint";

Outlook outlook_of(const Status& error) {
  return error.code() == Code::corrupt ? Outlook::lost : Outlook::unknown;
}

/// True if the sidecar of a local file was replaced since the checkpoint.
Result<bool> has_other_sidecar(Target& target, const journal::Position& position) {
  const Result<std::optional<std::string>> recorded = journal::recorded_sidecar(target, position);
  TR_TRY(recorded.status());
  if (!*recorded) return false;
  const Result<std::string> now = journal::sidecar_text(target, position.path);
  TR_TRY(now.status());
  return *now != **recorded;
}

Status look_into_file(Target& target, const journal::Position& position, OutputState& state) {
  Result<std::unique_ptr<storage::File>> file = target.open(position.path, OpenMode::read);
  if (file.status().error_number() == ENOENT)
    return {Code::corrupt,
            cat(position.path, " is not there, the checkpoint has recorded ", counted(position.size, "byte"),
                "; relative names count from the directory in which the program ran")};
  TR_TRY(file.status());
  const Result<journal::Difference> found = journal::difference(target, **file, position, recorder);
  TR_TRY(found.status());
  const Result<bool> sidecar = has_other_sidecar(target, position);
  TR_TRY(sidecar.status());
  state.bytes = found->size;
  state.put_back = found->put_back;
  std::vector<std::string> parts;
  if (const Bytes behind = found->behind(position); behind > 0)
    parts.push_back(cat(counted(behind, "byte"), " to be cut"));
  if (state.put_back > 0) parts.push_back(cat(counted(state.put_back, "byte"), " to be put back"));
  if (*sidecar) parts.push_back(cat(journal::sidecar_path(position.path), " to be put back"));
  for (const std::string& part : parts) state.text += cat(state.text.empty() ? "" : ", ", part);
  if (!parts.empty()) state.outlook = Outlook::ahead;
  return {};
}

}  // namespace

OutputState look_at_file(Target& target, const journal::Position& position) {
  OutputState state;
  state.kind = OutputState::Kind::file;
  state.name = state.path = position.path;
  state.recorded_bytes = position.size;
  const Status looked = guarded([&] { return look_into_file(target, position, state); });
  if (looked.is_ok()) return state;
  state.outlook = outlook_of(looked);
  state.text = looked.text();
  return state;
}

OutputState look_at_covered(Target& target, const CoveredFile& file) {
  OutputState state;
  state.kind = OutputState::Kind::covered;
  state.name = state.path = file.path;
  state.recorded_bytes = file.size;
  const Result<Bytes> behind = guarded([&] { return behind_covered(target, file); });
  if (!behind.is_ok()) {
    state.outlook = outlook_of(behind.status());
    state.text = behind.status().text();
    return state;
  }
  state.bytes = file.size + *behind;
  if (*behind == 0) return state;
  state.outlook = Outlook::ahead;
  state.text = cat(counted(*behind, "byte"), " to be cut");
  return state;
}

Status restore_file(Target& target, const journal::Position& position) {
  Result<std::unique_ptr<storage::File>> file = target.open(position.path, OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY(journal::bring_back(target, **file, position, recorder));
  TR_TRY((*file)->sync());
  TR_TRY((*file)->close());
  if (position.undo.empty()) return {};
  TR_TRY(journal::bring_back_sidecar(target, position));
  const std::string sidecar = journal::sidecar_path(position.path);
  if (storage::is_file(target, sidecar)) TR_TRY(storage::sync_file(target, sidecar, OpenMode::read));
  return target.sync_directory_of(position.path);
}

std::vector<OutputState> look_at_outputs(Target& target, const Recorded& recorded, RunStateOptions options) {
  std::vector<OutputState> states;
  for (const streams::Position& stream : recorded.streams) look_at_stream(target, stream, options, states);
  for (const journal::Position& file : recorded.files) states.push_back(look_at_file(target, file));
  for (const CoveredFile& file : recorded.covered) {
    OutputState state = look_at_covered(target, file);
    if (options.leave_lost && state.outlook == Outlook::lost && !file.is_restart) {
      state.outlook = Outlook::stays;
      state.text = cat("stays as it is: ", state.text);
    }
    states.push_back(std::move(state));
  }
  return states;
}

Outlook worst_of(const std::vector<OutputState>& states) {
  Outlook worst = Outlook::agrees;
  for (const OutputState& state : states) worst = std::max(worst, state.outlook);
  return worst;
}

Status check_streams_free(Target& target, const Recorded& recorded, RunStateOptions options) {
  for (const streams::Position& stream : recorded.streams)
    TR_TRY(guarded([&] { return check_stream_free(target, stream, options); }).in(stream.pattern));
  return {};
}

Status restore_outputs(Target& target, const Recorded& recorded, RunStateOptions options) {
  for (const streams::Position& stream : recorded.streams)
    TR_TRY(guarded([&] { return restore_stream(target, stream, options); }).in(stream.pattern));
  for (const journal::Position& file : recorded.files)
    TR_TRY(guarded([&] { return restore_file(target, file); }));
  for (const CoveredFile& file : recorded.covered) {
    const Status cut = guarded([&] { return cut_covered(target, file); });
    if (!options.leave_lost || file.is_restart || cut.code() != Code::corrupt) TR_TRY(cut);
  }
  return {};
}

namespace {

/// Returns the error if a program holds the file's lock. A killed program leaves the lock's file, too.
Status check_not_held(Target& target, const std::string& path) {
  const std::string lock_path = journal::flushed_lock_path(path);
  const Result<bool> exists = target.exists(lock_path);
  if (!exists.is_ok() || !*exists) return {};
  const Status held = target.lock(lock_path).status();
  return held.code() == Code::state ? held : Status();
}

/// True if a program holds the file's lock, which the state then tells.
bool is_held(Target& target, OutputState& state) {
  const Status held = check_not_held(target, state.path);
  if (!held.is_ok()) state.text = cat("passed over: ", held.text());
  return !held.is_ok();
}

OutputState look_at_recorded(Target& target, const SharedFlush& from) {
  OutputState state;
  state.kind = OutputState::Kind::shared;
  state.name = state.path = from.path;
  state.recorded_bytes = from.size;
  if (is_held(target, state)) return state;
  const Result<FlushStanding> standing = guarded([&] { return standing_of(target, from); });
  if (!standing.is_ok()) {
    // A restore brings the other files back although this one's undo files are damaged, and leaves this one
    // as it is. So does a load.
    state.outlook = standing.status().code() == Code::corrupt ? Outlook::stays : Outlook::unknown;
    state.text = standing.status().text();
    return state;
  }
  state.bytes = standing->size;
  state.put_back = standing->put_back;
  state.leads_back = standing->leads_back;
  state.text = standing->text;
  state.outlook = standing->is_there && !standing->is_left_open    ? Outlook::agrees
                  : standing->is_left_open || standing->leads_back ? Outlook::ahead
                                                                   : Outlook::stays;
  return state;
}

OutputState look_at_shared(Target& target, const std::string& path, const journal::Flushed& flushed) {
  OutputState state;
  state.kind = OutputState::Kind::shared;
  state.name = state.path = path;
  state.recorded_bytes = flushed.size;
  const Result<std::optional<Bytes>> size = storage::size_if_there(target, path);
  if (size.is_ok()) state.bytes = size->value_or(0);
  if (is_held(target, state)) return state;
  state.outlook = Outlook::ahead;
  state.text = "left open: to be brought back to its last flush, which the checkpoint does not know";
  return state;
}

}  // namespace

std::vector<OutputState> look_at_shared_files(Target& target, const std::vector<std::string>& directories,
                                              const std::vector<SharedFlush>& recorded) {
  std::vector<OutputState> states;
  std::set<std::string> seen;  // one name of each file
  for (const SharedFlush& each : recorded) {
    states.push_back(look_at_recorded(target, each));
    seen.insert(journal::name_behind_links(target, each.path));
  }
  const std::string ending = journal::flushed_path("");
  for (const std::string& directory : std::set(directories.begin(), directories.end())) {
    const Result<std::vector<std::string>> names = target.list(directory);
    if (!names.is_ok()) continue;
    for (const std::string& name : *names) {
      if (!name.ends_with(ending) || name == ending) continue;
      const std::string path =
          cat(directory == "." ? "" : directory + "/", name.substr(0, name.size() - ending.size()));
      if (!seen.insert(journal::name_behind_links(target, path)).second) continue;
      const Result<std::optional<journal::Flushed>> flushed = journal::read_flushed(target, path);
      if (!flushed.is_ok() || !*flushed) continue;  // somebody else's file
      states.push_back(look_at_shared(target, path, **flushed));
    }
  }
  return states;
}

Result<bool> restore_shared_file(Target& target, const std::string& path, const SharedFlush* to) {
  const Result<std::shared_ptr<void>> lock = journal::lock_flushed(target, path);
  TR_TRY(lock.status());
  if (to != nullptr && to->open != 0) return journal::bring_back_to(target, *to);
  TR_TRY(journal::bring_back_flushed(target, path).status());
  return true;
}

}  // namespace tailrace::restart
