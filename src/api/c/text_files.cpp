// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "api/c/fortran_files.hpp"
#include "api/c/state.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/undo_file.hpp"

using namespace tailrace;
using namespace tailrace::capi;

namespace tailrace::capi {

namespace {

Status refused(const TextFile& text, const char* why) { return {Code::state, cat(text.path, " ", why)}; }

/// Cuts off the bytes behind those of the checkpoint, on the I/O rank. Fortran then goes on at the end.
Status cut_back(const journal::Position& from) {
  if (from.position != from.size) {
    return {Code::state,
            cat(from.path, " stood at byte ", from.position, " of ", from.size,
                " when it was recorded, and was no formatted file: open it as it was opened then")};
  }
  Result<std::unique_ptr<storage::File>> file =
      state().session->target().open(from.path, storage::OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY(journal::bring_back(state().session->target(), **file, from));
  return (*file)->close();
}

}  // namespace

Result<std::optional<journal::Position>> position_of(TextFile& text, journal::Overwritten overwritten) {
  std::int64_t size = 0;
  switch (text.stand(text.handle, overwritten == journal::Overwritten::journal ? 1 : 0, &size)) {
    case TR_STANDS_UNWRITTEN:
      return std::optional<journal::Position>();
    case TR_STANDS_AT_END:
      break;
    case TR_STANDS_ELSEWHERE:
      return refused(
          text,
          "does not stand at its end: a checkpoint records formatted files that are written one record "
          "after another");
    case TR_STANDS_IN_RECORD:
      return refused(text,
                     "has a record that has begun and not ended: a checkpoint is saved between records");
    case TR_STANDS_OVERWRITTEN:
      return refused(
          text,
          "was written over before its end: a checkpoint records only files that grow, since others "
          "cannot be brought back to what they were; with overwritten=journal also sequential ones that "
          "were written over");
    default:
      return Status(Code::io, cat(text.path, ": what was written cannot be handed to the system"), EIO);
  }
  if (text.file == nullptr) {
    Result<std::unique_ptr<storage::File>> file =
        state().session->target().open(text.path, storage::OpenMode::existing);
    TR_TRY(file.status());
    text.file = std::make_shared<journal::LastingFile>(std::move(*file));
  }
  return std::optional(journal::Position{text.path, size, size, false});
}

}  // namespace tailrace::capi

/// Keeps the whole file, because it is not known where Fortran is going to write.
int tr_text_overwrites_f(const char* path) {
  if (session_for("write") == nullptr) return TR_ERR_STATE;
  journal::Journals& journals = state().file_service->journals();
  if (!journals.has(path)) return TR_OK;
  return result(guarded([&]() -> Status {
    storage::Target& target = state().session->target();
    const Result<bool> exists = target.exists(path);
    TR_TRY(exists.status());
    if (!*exists) return {};
    const Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
    TR_TRY(file.status());
    return journals.keep(path, **file, 0, std::numeric_limits<Bytes>::max());
  }));
}

int tr_text_lost_f(const char* path, int descriptor, int64_t reached, int64_t kept) {
  struct stat about {};
  // Past storage::Target: Fortran's own run-time library has opened the file and writes it.
  if (::fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) return TR_OK;
  if (reached >= 0 && about.st_size >= reached) return TR_OK;
  kept = std::min({kept, int64_t{about.st_size}, reached >= 0 ? reached : kept});
  const Result<storage::Space> space = state().session->target().space(path);
  const bool full = space.is_ok() && space->free < std::max(space->block, Bytes{8192});
  const char* const why =
      full ? "the disk is full" : "storage did not take them, and Fortran does not tell why";
  return fail(
      {full ? Code::space : Code::io,
       cat(path, ": records behind byte ", kept, " are lost: ", why, "; close the file and write it anew"),
       full ? ENOSPC : EIO});
}

int tr_text_continue_f(const char* path, int empties, int* continues) {
  *continues = 0;
  if (session_for("open") == nullptr) return TR_ERR_STATE;
  const journal::Position* const found = state().outputs->files().find(path);
  if (found == nullptr) return empties != 0 && tr_formats_f() != 0 ? tr_text_overwrites_f(path) : TR_OK;
  *continues = 1;
  if (tr_formats_f() == 0) return TR_OK;
  return result(guarded([&] { return cut_back(*found); }));
}

void tr_text_opened_f(const char* path, int (*stand)(void* handle, int cuts, int64_t* size), void* handle) {
  state().outputs->files().take(path);
  state().text_files.push_back({path, stand, handle});
}

void tr_text_closed_f(void* handle) {
  std::vector<TextFile>& open = state().text_files;
  const auto found = std::ranges::find(open, handle, &TextFile::handle);
  if (found == open.end()) return;
  note_closing_text(found->path);
  if (found->file != nullptr) (void)found->file->close();  // nothing was written by this handle
  open.erase(found);
}
