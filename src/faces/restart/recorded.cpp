// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/restart/recorded.hpp"

#include <utility>

#include "ground/journal/undo_file.hpp"

namespace tailrace::restart {

ByteVector Recorded::pack() const {
  if (streams.empty() && files.empty()) return {};
  Packer out;
  out.put(static_cast<std::int64_t>(streams.size()));
  for (const streams::Position& position : streams) out.put_bytes(position.pack());
  journal::put_positions(out, files);
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
  return recorded;
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
