// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "capi/outputs.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/log.hpp"
#include "base/text.hpp"
#include "capi/state.hpp"
#include "storage/paths.hpp"

namespace tailrace::capi {

namespace {

using streams::Position;

/// What a checkpoint has in `outputs` (docs/formats/checkpoint.md).
struct Contents {
  std::vector<Position> streams;
  std::vector<files::Position> files;
};

ByteVector pack(const Contents& contents) {
  if (contents.streams.empty() && contents.files.empty()) return {};
  Packer out;
  out.put(static_cast<std::int64_t>(contents.streams.size()));
  for (const Position& position : contents.streams) out.put_bytes(position.pack());
  files::put_positions(out, contents.files);
  return out.take();
}

Result<Contents> unpack(const ByteVector& bytes) {
  Contents contents;
  if (bytes.empty()) return contents;
  Unpacker in(bytes);
  const auto count = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < count && in.ok(); ++i) {
    Result<Position> position = Position::unpack(in.get_bytes());
    TR_TRY(position.status());
    contents.streams.push_back(std::move(*position));
  }
  if (!in.ok()) return Status(Code::corrupt, "the positions of the streams are damaged");
  Result<std::vector<files::Position>> files = files::get_positions(in);
  TR_TRY(files.status());
  contents.files = std::move(*files);
  return contents;
}

/// The open stream that a position is of; nullptr once it is closed, when all of it is durable or told as
/// failed.
const streams::Stream* stream_of(const Position& position) {
  for (const tr_stream* handle : state().streams) {
    if (handle->stream->name() == position.pattern && handle->stream->position().run == position.run)
      return handle->stream.get();
  }
  return nullptr;
}

// ---- files

/// Whether a file is an output that a checkpoint may record. A pipe, which might have nobody who reads, is
/// none; who does not hold the stream does not know that of it, and has nothing to write.
bool may_be_recorded(const tr_file& handle) {
  const files::File& file = *handle.file;
  if (file.is_adopted() || !file.mode().writes()) return false;
  return handle.records != nullptr || !file.holds_stream() || file.has_position();
}

bool is_recorded(const tr_file& handle) {
  return !handle.temporary && handle.file->holds_stream() && handle.file->has_position();
}

Status rest(tr_file& handle) { return handle.records ? handle.records->rest() : handle.file->rest(); }

Result<files::Position> position_of(tr_file& handle, files::Overwritten overwritten) {
  Result<files::Position> position =
      handle.records ? handle.records->recorded_position(overwritten) : handle.file->position(overwritten);
  TR_TRY(position.status());
  if (overwritten == files::Overwritten::journal) return position;  // nothing is lost that it would warn of
  handle.file->note_recorded(position->size);
  state().recorded_files.note(*position);
  return position;
}

/// What a rank has written to, held until it is durable.
struct Written {
  std::vector<std::shared_ptr<storage::File>> files;
  std::set<std::string> names;     // whose directories have to be durable: one for each directory
  std::set<std::string> sidecars;  // of local files
  files::ClosedFiles::Due closed;

  void add(TextFile& text) {
    if (text.file == nullptr) return;
    files.push_back(text.file->hold());
    add_directory_of(text.path);
  }
  void add_directory_of(const std::string& path) {
    names.insert(storage::parent_of(storage::tidy_path(path)) + "/file");
  }
  void add(const files::File& file) {
    for (std::shared_ptr<storage::File>& each : file.hold()) files.push_back(std::move(each));
    if (!file.holds_stream()) return;
    if (file.place().group == nullptr) sidecars.insert(files::sidecar_path(file.path()));
    add_directory_of(file.path());
  }
  Status sync(storage::Target& target);
};

Status Written::sync(storage::Target& target) {
  for (const std::shared_ptr<storage::File>& file : files) TR_TRY(file->sync());
  for (const std::string& sidecar : sidecars) TR_TRY(files::sync_if_there(target, sidecar));
  for (const std::string& name : names) TR_TRY(target.sync_directory_of(name));
  files.clear();  // nobody needs them open any more
  return closed.sync(target);
}

Status check_not_open(const std::vector<files::Position>& positions) {
  const auto is_open = [](const std::string& path) {
    const auto& files = state().files;
    const auto& texts = state().text_files;
    return std::any_of(files.begin(), files.end(),
                       [&](const tr_file* handle) {
                         return handle->file->mode().writes() &&
                                files::is_same_path(handle->file->path(), path);
                       }) ||
           std::any_of(texts.begin(), texts.end(),
                       [&](const TextFile& text) { return files::is_same_path(text.path, path); });
  };
  for (const files::Position& position : positions) {
    if (is_open(position.path)) {
      return {Code::state,
              cat("file ", position.path,
                  " was opened before the checkpoint was loaded: it cannot go on where the checkpoint "
                  "has it; load first")};
    }
  }
  return {};
}

}  // namespace

/// Every file is brought to rest, whatever has failed before: ranks that left one out would have another idea
/// than the others of what it still has to write.
Result<checkpoint::Outputs::Standing> SessionOutputs::stand(files::Overwritten overwritten) {
  Status first;
  const auto count = [&first](const Status& status) {
    if (first.is_ok()) first = status;
  };
  std::vector<files::Position> open;
  auto written = std::make_shared<Written>();
  for (tr_file* const handle : state().files) {
    if (!may_be_recorded(*handle)) continue;
    count(rest(*handle));
    if (!handle->temporary) written->add(*handle->file);
    if (!first.is_ok() || !is_recorded(*handle)) continue;
    Result<files::Position> position = position_of(*handle, overwritten);
    count(position.status());
    if (position.is_ok()) open.push_back(std::move(*position));
  }
  if (state().session->rank() == 0) {
    for (TextFile& text : state().text_files) {
      const Result<std::optional<files::Position>> position =
          guarded([&] { return position_of(text, overwritten); });
      count(position.status());
      if (!position.is_ok() || !*position) continue;
      if (overwritten == files::Overwritten::refuse) state().recorded_files.note(**position);
      open.push_back(**position);
      written->add(text);
    }
  }
  written->closed = closed_.due();
  TR_TRY(first);
  Packer told;
  files::put_positions(told, open);
  const std::vector<std::int64_t> taken = state().recorded_files.taken();
  told.put_list(std::span<const std::int64_t>(taken));
  Standing standing{told.take(), {}};
  if (!written->files.empty() || !written->closed.is_empty())
    standing.make_durable = [written, target = &state().session->target()] { return written->sync(*target); };
  return standing;
}

void SessionOutputs::note_closed(const std::string& path) { closed_.note(state().session->target(), path); }

void SessionOutputs::note_renamed(const std::string& from, const std::string& to) {
  closed_.note_renamed(state().session->target(), from, to);
}

namespace {

/// Null if no checkpoint is open: closed files are synchronised only on behalf of a checkpoint.
SessionOutputs* outputs_of_checkpoints() {
  return state().checkpoints.empty() ? nullptr : static_cast<SessionOutputs*>(state().outputs.get());
}

}  // namespace

void note_closing(const files::File& file) {
  SessionOutputs* const outputs = outputs_of_checkpoints();
  if (outputs == nullptr || file.is_adopted() || !file.mode().writes() || file.hold().empty()) return;
  if (!files::is_regular(file.path())) return;
  outputs->note_closed(file.path());
  if (file.place().group == nullptr) outputs->note_closed(files::sidecar_path(file.path()));
}

void note_closing_text(const std::string& path) {
  SessionOutputs* const outputs = outputs_of_checkpoints();
  if (outputs != nullptr && state().session->rank() == 0 && files::is_regular(path))
    outputs->note_closed(path);
}

void note_renamed(const std::string& from, const std::string& to) {
  if (SessionOutputs* const outputs = outputs_of_checkpoints(); outputs != nullptr)
    outputs->note_renamed(from, to);
}

/// A journal belongs to a rank: what another one writes to the same file it does not see.
Status SessionOutputs::check(const std::vector<ByteVector>& told, files::Overwritten overwritten) const {
  if (overwritten == files::Overwritten::refuse) return {};
  std::map<std::string, std::size_t> ranks;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    Unpacker in(told[rank]);
    const Result<std::vector<files::Position>> open = files::get_positions(in);
    TR_TRY(open.status());
    for (const files::Position& each : *open) {
      const auto [other, is_new] = ranks.emplace(storage::tidy_path(each.path), rank);
      if (is_new || other->second == rank) continue;
      return {Code::state, cat(each.path, " is open on ranks ", other->second, " and ", rank,
                               ", on each for itself: overwritten=journal keeps what is written over only of "
                               "files that are open once; open it on a communicator of these ranks")};
    }
  }
  return {};
}

ByteVector SessionOutputs::positions(const std::vector<ByteVector>& told) {
  Contents contents;
  for (const tr_stream* handle : state().streams) contents.streams.push_back(handle->stream->position());
  for (const auto& [pattern, position] : state().resuming) contents.streams.push_back(position);
  for (const ByteVector& each : told) {
    Unpacker in(each);
    const Result<std::vector<files::Position>> open = files::get_positions(in);
    if (open.is_ok()) contents.files.insert(contents.files.end(), open->begin(), open->end());
    state().recorded_files.take(in.get_list<std::int64_t>());
  }
  const std::vector<files::Position> left = state().recorded_files.left();
  contents.files.insert(contents.files.end(), left.begin(), left.end());
  return pack(contents);
}

bool SessionOutputs::are_settled(const ByteVector& positions) const {
  const Result<Contents> contents = unpack(positions);
  if (!contents.is_ok()) return true;
  for (const Position& position : contents->streams) {
    const streams::Stream* const stream = stream_of(position);
    if (stream != nullptr && !stream->is_settled_through(position)) return false;
  }
  return true;
}

ByteVector SessionOutputs::with_failures(const ByteVector& positions) const {
  Result<Contents> contents = unpack(positions);
  if (!contents.is_ok()) return positions;
  for (Position& position : contents->streams) {
    if (const streams::Stream* const stream = stream_of(position); stream != nullptr)
      position = stream->with_failures(position);
  }
  return pack(*contents);
}

void SessionOutputs::keep_since(const std::string& checkpoint, std::int64_t generation,
                                const ByteVector& positions) {
  const Result<Contents> contents = unpack(positions);
  if (!contents.is_ok()) return;  // made or checked by who asks
  State& held = state();
  held.file_service->journals().of(held.session->target(), checkpoint).begin(generation, contents->files);
}

std::int64_t SessionOutputs::oldest_undo(const ByteVector& positions, std::int64_t generation) const {
  const Result<Contents> contents = unpack(positions);
  return contents.is_ok() ? files::oldest_undo(contents->files, generation) : 0;
}

Status SessionOutputs::resume(const checkpoint::Copy& copy) {
  Result<Contents> contents = unpack(copy.directory.outputs);
  TR_TRY(contents.status());
  state().resuming.clear();
  TR_TRY(check_not_open(contents->files));
  state().recorded_files.load(std::move(contents->files), copy.generation(), copy.undo);
  for (const Position& position : contents->streams) {
    for (const tr_stream* handle : state().streams) {
      if (handle->stream->name() == position.pattern)
        return {Code::state, cat("stream ", position.pattern,
                                 " was created before the checkpoint was loaded: it cannot go on "
                                 "where the checkpoint has it; load first")};
    }
    if (state().session->rank() == 0) {
      for (const streams::FailedStep& failed : position.failed)
        log(LogLevel::warn,
            cat("stream ", position.pattern, " lacks the step at lead ", failed.lead, " s: ", failed.text));
    }
    state().resuming.emplace(position.pattern, position);
  }
  return {};
}

}  // namespace tailrace::capi
