// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/restart/recorded.hpp"

#include <algorithm>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/journal/sample.hpp"
#include "ground/journal/undo_file.hpp"
#include "ground/storage/replace.hpp"

namespace tailrace::restart {

namespace {

/// Packs the restart files of `all`, or the others.
void put_covered(Packer& out, const std::vector<CoveredFile>& all, bool restart) {
  out.put(static_cast<std::int64_t>(std::ranges::count(all, restart, &CoveredFile::is_restart)));
  for (const CoveredFile& each : all) {
    if (each.is_restart == restart) out.put_text(each.path).put(each.size).put(each.sample);
  }
}

Status get_covered(Unpacker& in, bool restart, std::vector<CoveredFile>& all) {
  auto count = in.get<std::int64_t>();
  bool is_whole = count >= 0;
  for (; count > 0 && in.ok() && is_whole; --count) {
    CoveredFile each;
    each.path = in.get_text();
    each.size = in.get<Bytes>();
    each.sample = in.get<std::uint64_t>();
    each.is_restart = restart;
    is_whole = in.ok() && !each.path.empty() && each.size >= 0;
    all.push_back(std::move(each));
  }
  if (!in.ok() || !is_whole) return {Code::corrupt, "the sizes of the covered files are damaged"};
  return {};
}

}  // namespace

ByteVector Recorded::pack() const {
  if (streams.empty() && files.empty() && covered.empty() && shared.empty()) return {};
  Packer out;
  out.put(static_cast<std::int64_t>(streams.size()));
  for (const streams::Position& position : streams) out.put_bytes(position.pack());
  journal::put_positions(out, files);
  // Copies without covered, restart and shared files keep the bytes that they always had.
  if (covered.empty() && shared.empty()) return out.take();
  put_covered(out, covered, false);
  if (!shared.empty() || std::ranges::count(covered, true, &CoveredFile::is_restart) > 0)
    put_covered(out, covered, true);
  if (!shared.empty()) put_flushes(out, shared);
  return out.take();
}

Result<Recorded> Recorded::unpack(std::span<const std::byte> bytes) {
  Recorded recorded;
  if (bytes.empty()) return recorded;
  Unpacker in(bytes);
  const auto count = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < count && in.ok(); ++i) {
    Result<streams::Position> position = streams::Position::unpack(in.get_bytes());
    TR_TRY(position.status());
    recorded.streams.push_back(std::move(*position));
  }
  if (!in.ok()) return Status(Code::corrupt, "the positions of the streams are damaged");
  Result<std::vector<journal::Position>> files = journal::get_positions(in);
  TR_TRY(files.status());
  recorded.files = std::move(*files);
  if (in.rest().empty()) return recorded;
  TR_TRY(get_covered(in, false, recorded.covered));
  if (!in.rest().empty()) TR_TRY(get_covered(in, true, recorded.covered));
  if (in.rest().empty()) return recorded;
  Result<std::vector<SharedFlush>> shared = get_flushes(in);
  TR_TRY(shared.status());
  recorded.shared = std::move(*shared);
  return recorded;
}

Result<CoveredFile> covered_now(storage::Target& target, const std::string& path) {
  CoveredFile now{path};
  const Result<bool> exists = target.exists(path);
  TR_TRY(exists.status());
  if (!*exists) return now;
  const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  const Result<std::uint64_t> sample = journal::sample_of(**file, *size);
  TR_TRY(sample.status());
  now.size = *size;
  now.sample = *sample;
  return now;
}

Result<Bytes> behind_covered(storage::Target& target, const CoveredFile& from) {
  const std::string_view in_place =
      from.is_restart
          ? ". It was the restart file of this generation (tr_checkpoint_commit), which needs a name of its "
            "own for as long as the generation can be loaded: put it back, or load an earlier generation"
          : ". If it was rotated, put the recorded one back under this name, or load an earlier generation";
  const Result<bool> exists = target.exists(from.path);
  TR_TRY(exists.status());
  if (!*exists && from.size == 0) return Bytes{0};
  if (!*exists)
    return Status(Code::corrupt, cat(from.path, " is not there, the checkpoint has recorded ",
                                     counted(from.size, "byte"), " of it"));
  const Result<std::unique_ptr<storage::File>> file = target.open(from.path, storage::OpenMode::read);
  TR_TRY(file.status());
  const Result<Bytes> size = (*file)->size();
  TR_TRY(size.status());
  if (*size < from.size)
    return Status(Code::corrupt,
                  cat(from.path, " has ", counted(*size, "byte"), ", the checkpoint has recorded ", from.size,
                      ": it cannot go on there; load before you open it", in_place));
  if (from.size == 0) return *size;
  const Result<std::uint64_t> sample = journal::sample_of(**file, from.size);
  TR_TRY(sample.status());
  if (*sample != from.sample)
    return Status(
        Code::corrupt,
        cat(from.path, " has other bytes than the checkpoint has recorded",
            from.is_restart ? "" : ": a file that tr_checkpoint_covers names may only grow", in_place));
  return *size - from.size;
}

Status cut_covered(storage::Target& target, const CoveredFile& from) {
  const Result<Bytes> behind = behind_covered(target, from);
  TR_TRY(behind.status());
  if (*behind == 0) return {};
  return storage::cut_back_durably(target, from.path, from.size, storage::OpenMode::existing).status();
}

std::int64_t oldest_undo(const checkpoint::Copy& copy) {
  const Result<Recorded> recorded = Recorded::unpack(copy.directory.outputs);
  return recorded.is_ok() ? journal::oldest_undo(recorded->files, copy.generation()) : 0;
}

Status find_undo_files(storage::Target& target, const checkpoint::Copy& copy, Recorded& recorded) {
  // The name of the copy's checkpoint: "state" for "state.0" and for "state.g12".
  const std::string name = copy.path.substr(0, copy.path.rfind('.'));
  const Result<std::vector<journal::UndoName>> all = journal::find_undo_files(target, name);
  TR_TRY(all.status());
  for (journal::Position& file : recorded.files)
    file.undo = journal::undo_files_of(file, copy.generation(), *all);
  return {};
}

}  // namespace tailrace::restart
