// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint_outputs.hpp"

#include <utility>

#include "files/undo_file.hpp"

namespace tailrace::cli {

Result<Outputs> read_outputs(const ByteVector& bytes) {
  Outputs outputs;
  if (bytes.empty()) return outputs;
  Unpacker in(bytes);
  for (auto count = in.get<std::int64_t>(); count > 0 && in.ok(); --count) {
    Result<streams::Position> position = streams::Position::unpack(in.get_bytes());
    TR_TRY(position.status());
    outputs.streams.push_back(std::move(*position));
  }
  Result<std::vector<files::Position>> files = files::get_positions(in);
  TR_TRY(files.status());
  outputs.files = std::move(*files);
  return outputs;
}

std::int64_t oldest_undo(const checkpoint::Copy& copy) {
  const Result<Outputs> outputs = read_outputs(copy.directory.outputs);
  return outputs.is_ok() ? files::oldest_undo(outputs->files, copy.generation()) : 0;
}

Status find_undo_files(storage::Target& target, const checkpoint::Copy& copy, Outputs& outputs) {
  // The name of its checkpoint: "state" of "state.0" and of "state.g12".
  const std::string name = copy.path.substr(0, copy.path.rfind('.'));
  const Result<std::vector<files::UndoName>> all = files::find_undo_files(target, name);
  TR_TRY(all.status());
  for (files::Position& file : outputs.files) file.undo = files::undo_files_of(file, copy.generation(), *all);
  return {};
}

}  // namespace tailrace::cli
