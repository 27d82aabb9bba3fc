// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Shared files.
#include <cstdio>

#include "api/c/arguments.hpp"
#include "api/c/shared.hpp"
#include "api/c/state.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using shared::SharedFile;

namespace {

Result<shared::Definition> define_shared(const char* path, const char* mode, const char* options,
                                         tr_shared** file) {
  if (file == nullptr) return null_pointer("file");
  if (path == nullptr) return null_pointer("path");
  if (mode == nullptr) return null_pointer("mode");
  const Result<shared::Access> access = shared::read_mode(mode);
  TR_TRY(access.status());
  shared::Definition what;
  what.path = path;
  what.access = *access;
  TR_TRY(shared::shared_options.read(text_of(options), what));
  return what;
}

int open_shared(Result<std::shared_ptr<files::Group>> group, const char* call, const char* path,
                const char* mode, const char* options, tr_shared** file) {
  if (!group.is_ok()) return fail(group.status().in(call));
  const std::string text =
      cat(std::string_view(call), "(", quoted(path), ", ", quoted(mode), ", ", quoted(options), ")");
  Result<std::unique_ptr<SharedFile>> opened =
      SharedFile::open(*group, text, guarded([&] { return define_shared(path, mode, options, file); }));
  if (!opened.is_ok()) {
    if (file != nullptr) *file = nullptr;
    return fail(opened.status());
  }
  *file = keep_shared(std::move(*opened));
  return TR_OK;
}

SharedFile* shared_of(const tr_shared* file, const char* call) {
  const tr_shared* const found = find_open(state().shared_files, file, call, "shared file");
  return found == nullptr ? nullptr : found->file.get();
}

int fail_in_shared(const char* call, const SharedFile& file, const Status& status) {
  return fail(status.in(cat(std::string_view(call), "(", file.definition().path, ")")));
}

/// Returns an error if a file cannot have these bytes, or if there is no buffer.
Status check_piece(const void* data, int64_t bytes, int64_t offset) {
  Bytes end = 0;
  if (bytes < 0) return {Code::argument, cat("bytes is ", bytes, ", below 0")};
  if (offset < 0) return {Code::argument, cat("offset is ", offset, ", below 0")};
  if (__builtin_add_overflow(bytes, offset, &end))
    return {Code::argument, cat(counted(bytes, "byte"), " from byte ", offset,
                                " on end behind the last byte that a file can have")};
  return data == nullptr && bytes > 0 ? null_pointer("data") : Status();
}

std::span<std::byte> room(void* data, int64_t bytes) {
  return {static_cast<std::byte*>(data), static_cast<std::size_t>(bytes)};
}
std::span<const std::byte> content(const void* data, int64_t bytes) {
  return {static_cast<const std::byte*>(data), static_cast<std::size_t>(bytes)};
}

/// Returns the code of a call that reads and sets *got. `wanted` is the number of bytes asked for.
int told_shared(const char* call, const SharedFile& file, const Result<Bytes>& result, int64_t wanted,
                int64_t* got) {
  if (got != nullptr) *got = result.is_ok() ? *result : 0;
  if (!result.is_ok()) return fail_in_shared(call, file, result.status());
  if (got != nullptr || *result == wanted) return TR_OK;
  return fail_in_shared(
      call, file,
      {Code::io, cat("the file ends after ", *result, " of the ", counted(wanted, "byte"), " asked for")});
}

int ended_shared(const char* call, const SharedFile& file, const Status& status) {
  return status.is_ok() ? TR_OK : fail_in_shared(call, file, status);
}

constexpr int64_t most_pieces = PTRDIFF_MAX / static_cast<int64_t>(sizeof(tr_piece));

template <typename Piece, typename Bytes>
Status take_pieces(const tr_piece* pieces, int64_t count, const Bytes& bytes, std::vector<Piece>& taken) {
  if (count < 0) return {Code::argument, cat("count is ", count, ", below 0")};
  if (pieces == nullptr && count > 0) return null_pointer("pieces");
  if (count > most_pieces) return {Code::argument, cat("count is ", count, ", more than memory can hold")};
  taken.reserve(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    TR_TRY(check_piece(pieces[i].data, pieces[i].bytes, pieces[i].offset).in(cat("piece ", i)));
    taken.push_back({bytes(pieces[i].data, pieces[i].bytes), pieces[i].offset});
  }
  return {};
}

/// Collective. Closes the file. The handle is gone, whatever is returned.
Status close_shared(tr_shared* file) {
  const std::unique_ptr<tr_shared> handle = take_off(state().shared_files, file);
  Status closed = handle->file->close();
  if (const auto& last = handle->file->closed_flush(); last)
    state().outputs->note_closed_shared(flush_of(*last));
  return closed;
}

}  // namespace

namespace tailrace::capi {

tr_shared* keep_shared(std::unique_ptr<SharedFile> file) {
  auto* const handle = new tr_shared{std::move(file)};
  state().shared_files.push_back(handle);
  return handle;
}

Status end_shared_files() {
  return close_all(state().shared_files, [](tr_shared* file) {
    if (state().session->rank() == 0)
      log(LogLevel::warn, cat(file->file->definition().path, " was left open: tr_finalize closes it"));
    return close_shared(file);
  });
}

}  // namespace tailrace::capi

int tr_shared_open(const char* path, const char* mode, const char* options, tr_shared** file) {
  if (session_for("tr_shared_open") == nullptr) return TR_ERR_STATE;
  return open_shared(state().groups->of(state().bootstrap->compute(), "tr_shared_open"), "tr_shared_open",
                     path, mode, options, file);
}

int tr_shared_open_comm(MPI_Comm comm, const char* path, const char* mode, const char* options,
                        tr_shared** file) {
  if (session_for("tr_shared_open_comm") == nullptr) return TR_ERR_STATE;
  return open_shared(state().groups->of(comm, "tr_shared_open_comm"), "tr_shared_open_comm", path, mode,
                     options, file);
}

int tr_shared_open_comm_f(MPI_Fint comm, const char* path, const char* mode, const char* options,
                          tr_shared** file) {
  // While there is a session, MPI runs. Before that no handle can be converted.
  if (session_for("tr_shared_open_comm") == nullptr) return TR_ERR_STATE;
  return tr_shared_open_comm(MPI_Comm_f2c(comm), path, mode, options, file);
}

int tr_shared_seek(tr_shared* file, int64_t offset, int whence, int64_t* position) {
  SharedFile* const open = shared_of(file, "tr_shared_seek");
  if (open == nullptr) return TR_ERR_STATE;
  if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END)
    return fail_in_shared("tr_shared_seek", *open,
                          {Code::argument, "whence is none of SEEK_SET, SEEK_CUR and SEEK_END"});
  const Result<Bytes> moved = open->seek(offset, whence == SEEK_SET   ? shared::Whence::begin
                                                 : whence == SEEK_CUR ? shared::Whence::position
                                                                      : shared::Whence::end);
  if (position != nullptr) *position = open->position();
  return ended_shared("tr_shared_seek", *open, moved.status());
}

int tr_shared_tell(const tr_shared* file, int64_t* position) {
  const SharedFile* const open = shared_of(file, "tr_shared_tell");
  if (open == nullptr) return TR_ERR_STATE;
  if (position == nullptr) return fail_in_shared("tr_shared_tell", *open, null_pointer("position"));
  *position = open->position();
  return TR_OK;
}

int tr_shared_read(tr_shared* file, void* data, int64_t bytes, int64_t* got) {
  if (got != nullptr) *got = 0;
  SharedFile* const open = shared_of(file, "tr_shared_read");
  if (open == nullptr) return TR_ERR_STATE;
  const Status checked = check_piece(data, bytes, open->position());
  if (!checked.is_ok()) return fail_in_shared("tr_shared_read", *open, checked);
  return told_shared("tr_shared_read", *open, guarded([&] { return open->read_here(room(data, bytes)); }),
                     bytes, got);
}

int tr_shared_pread(tr_shared* file, void* data, int64_t bytes, int64_t offset, int64_t* got) {
  if (got != nullptr) *got = 0;
  SharedFile* const open = shared_of(file, "tr_shared_pread");
  if (open == nullptr) return TR_ERR_STATE;
  const Status checked = check_piece(data, bytes, offset);
  if (!checked.is_ok()) return fail_in_shared("tr_shared_pread", *open, checked);
  const shared::Sink sinks[] = {{room(data, bytes), offset}};
  return told_shared("tr_shared_pread", *open, guarded([&] { return open->read(sinks); }), bytes, got);
}

int tr_shared_write(tr_shared* file, const void* data, int64_t bytes) {
  SharedFile* const open = shared_of(file, "tr_shared_write");
  if (open == nullptr) return TR_ERR_STATE;
  Status status = check_piece(data, bytes, open->position());
  if (status.is_ok()) status = guarded([&] { return open->write_here(content(data, bytes)); });
  return ended_shared("tr_shared_write", *open, status);
}

int tr_shared_pwrite(tr_shared* file, const void* data, int64_t bytes, int64_t offset) {
  SharedFile* const open = shared_of(file, "tr_shared_pwrite");
  if (open == nullptr) return TR_ERR_STATE;
  Status status = check_piece(data, bytes, offset);
  if (status.is_ok()) {
    const shared::Source sources[] = {{content(data, bytes), offset}};
    status = guarded([&] { return open->write(sources); });
  }
  return ended_shared("tr_shared_pwrite", *open, status);
}

int tr_shared_readv(tr_shared* file, const tr_piece* pieces, int64_t count, int64_t* got) {
  if (got != nullptr) *got = 0;
  SharedFile* const open = shared_of(file, "tr_shared_readv");
  if (open == nullptr) return TR_ERR_STATE;
  Bytes wanted = 0;
  const Result<Bytes> result = guarded([&]() -> Result<Bytes> {
    std::vector<shared::Sink> sinks;
    TR_TRY(take_pieces(pieces, count, room, sinks));
    for (const shared::Sink& sink : sinks) {
      if (__builtin_add_overflow(wanted, std::ssize(sink.bytes), &wanted))
        return Status(Code::argument, "the pieces have more bytes than a file can have");
    }
    return open->read(sinks);
  });
  return told_shared("tr_shared_readv", *open, result, wanted, got);
}

int tr_shared_writev(tr_shared* file, const tr_piece* pieces, int64_t count) {
  SharedFile* const open = shared_of(file, "tr_shared_writev");
  if (open == nullptr) return TR_ERR_STATE;
  return ended_shared("tr_shared_writev", *open, guarded([&]() -> Status {
                        std::vector<shared::Source> sources;
                        TR_TRY(take_pieces(pieces, count, content, sources));
                        return open->write(sources);
                      }));
}

int tr_shared_append(tr_shared* file, const void* data, int64_t bytes, int64_t* offset) {
  SharedFile* const open = shared_of(file, "tr_shared_append");
  if (open == nullptr) return TR_ERR_STATE;
  const Status checked = check_piece(data, bytes, 0);
  if (!checked.is_ok()) return fail_in_shared("tr_shared_append", *open, checked);
  const Result<Bytes> begin = guarded([&] { return open->append(content(data, bytes)); });
  if (begin.is_ok() && offset != nullptr) *offset = *begin;
  return ended_shared("tr_shared_append", *open, begin.status());
}

int tr_shared_size(tr_shared* file, int64_t* size) {
  SharedFile* const open = shared_of(file, "tr_shared_size");
  if (open == nullptr) return TR_ERR_STATE;
  if (size == nullptr) return fail_in_shared("tr_shared_size", *open, null_pointer("size"));
  const Result<Bytes> bytes = guarded([&] { return open->size(); });
  if (bytes.is_ok()) *size = *bytes;
  return ended_shared("tr_shared_size", *open, bytes.status());
}

int tr_shared_resize(tr_shared* file, int64_t size) {
  SharedFile* const open = shared_of(file, "tr_shared_resize");
  return open == nullptr ? TR_ERR_STATE : result(open->resize(size));
}

int tr_shared_sync(tr_shared* file) {
  SharedFile* const open = shared_of(file, "tr_shared_sync");
  return open == nullptr ? TR_ERR_STATE : result(open->sync());
}

int tr_shared_flush(tr_shared* file) {
  SharedFile* const open = shared_of(file, "tr_shared_flush");
  return open == nullptr ? TR_ERR_STATE : result(open->flush());
}

int tr_shared_close(tr_shared** file) {
  tr_shared* const given = file == nullptr ? nullptr : *file;
  if (shared_of(given, "tr_shared_close") == nullptr) return TR_ERR_STATE;
  *file = nullptr;
  return result(close_shared(given));
}
