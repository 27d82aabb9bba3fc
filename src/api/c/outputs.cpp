// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "api/c/state.hpp"

namespace tailrace::capi {

restart::Open what_is_open() {
  restart::Open open;
  for (const tr_stream* handle : state().streams) open.streams.push_back(handle->stream.get());
  for (const tr_file* handle : state().files)
    open.files.push_back({handle->file.get(), handle->records.get(), handle->temporary});
  for (TextFile& text : state().text_files) {
    const auto position = [&text](journal::Overwritten overwritten) {
      return position_of(text, overwritten);
    };
    const auto hold = [&text] { return text.file != nullptr ? text.file->hold() : nullptr; };
    open.texts.push_back({text.path, position, hold});
  }
  open.keep_shared = [](const std::string& checkpoint) {
    for (const tr_shared* handle : state().shared_files) TR_TRY(handle->file->keep_for(checkpoint));
    return Status();
  };
  for (const tr_shared* handle : state().shared_files) {
    if (const auto last = handle->file->last_flush(); last) open.shared.push_back(flush_of(*last));
  }
  return open;
}

restart::SharedFlush flush_of(const shared::SafeFile::LastFlush& last) {
  return {last.path, last.flushed.generation, last.flushed.size, last.flushed.sample, last.flushed.open};
}

// Closed files are noted only if there is a checkpoint: only then are they synchronised.

void note_closing(const files::File& file) {
  if (!state().checkpoints.empty()) state().outputs->note_closing(file);
}

void note_closing_text(const std::string& path) {
  if (state().checkpoints.empty() || state().session->rank() != 0) return;
  if (storage::is_file(state().session->target(), path)) state().outputs->note_closed(path);
}

void note_renamed(const std::string& from, const std::string& to) {
  if (!state().checkpoints.empty()) state().outputs->note_renamed(from, to);
}

}  // namespace tailrace::capi
