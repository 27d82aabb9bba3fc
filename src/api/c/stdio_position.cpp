// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Positions (ISO C99 7.19.9), ends and errors (7.19.10).
#include <cerrno>

#include "api/c/files.hpp"
#include "api/c/state.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using files::File;
using files::Outcome;

namespace {

Outcome seek(std::FILE* stream, long offset, int whence) {
  const int code = files::flush_before_seek(stream) != 0 ? EOF : std::fseek(stream, offset, whence);
  return outcome_of(code, code != 0);
}

Outcome get_position(std::FILE* stream, tr_fpos* position) {
  tr_fpos told{};
  const int code = std::fgetpos(stream, &told);
  if (code != 0) return outcome_of(code, true);
  if (position == nullptr) return refused(-1, EFAULT, "`position` is a null pointer");
  *position = told;
  const auto bytes = std::as_bytes(std::span(&told, 1));
  return {0, 0, {bytes.begin(), bytes.end()}};
}

Outcome set_position(std::FILE* stream, const tr_fpos* position) {
  if (position == nullptr) return refused(-1, EFAULT, "`position` is a null pointer");
  const int code = files::flush_before_seek(stream) != 0 ? EOF : std::fsetpos(stream, position);
  return outcome_of(code, code != 0);
}

}  // namespace

int tr_fgetpos(tr_file* handle, tr_fpos* position) {
  File* const file = file_of(handle, "tr_fgetpos");
  if (file == nullptr) return -1;
  const Outcome outcome =
      ask(*file, "tr_fgetpos", [&](std::FILE* stream) { return get_position(stream, position); });
  if (outcome.error != 0 || file->holds_stream()) return static_cast<int>(outcome.value);
  if (position == nullptr) {
    fail_with_errno(Status(Code::argument, "tr_fgetpos: `position` is a null pointer", EFAULT));
    return -1;
  }
  std::memcpy(position, outcome.data.data(), sizeof *position);
  return 0;
}

int tr_fsetpos(tr_file* file, const tr_fpos* position) {
  return ask_for_int(file, "tr_fsetpos", -1,
                     [&](std::FILE* stream) { return set_position(stream, position); });
}

int tr_fseek(tr_file* file, long offset, int whence) {
  return ask_for_int(file, "tr_fseek", -1, [&](std::FILE* stream) { return seek(stream, offset, whence); });
}

long tr_ftell(tr_file* file) {
  return ask_for_number(file, "tr_ftell", -1,
                        [](std::FILE* stream) { return outcome_of(std::ftell(stream)); });
}

void tr_rewind(tr_file* handle) {
  File* const file = file_of(handle, "tr_rewind");
  if (file == nullptr) return;
  if (const Status over = file->before_move("tr_rewind"); !over.is_ok()) return fail_with_errno(over);
  tell(*file, [file](std::FILE* stream) {
    // ISO C99 7.19.9.5 reports no failure to move. But if written bytes are lost, tr_fflush must report it.
    const Outcome written = outcome_of(0, files::flush_before_seek(stream) != 0);
    std::rewind(stream);
    file->stream().clear_failure();
    return written;
  });
}

void tr_fseek_nr(tr_file* handle, long offset, int whence) {
  File* const file = file_of(handle, "tr_fseek_nr");
  if (file == nullptr) return;
  if (const Status over = file->before_move("tr_fseek_nr"); !over.is_ok()) return fail_with_errno(over);
  tell(*file, [=](std::FILE* stream) { return seek(stream, offset, whence); });
}

void tr_clearerr(tr_file* handle) {
  File* const file = file_of(handle, "tr_clearerr");
  if (file == nullptr) return;
  if (const Status over = file->before_move("tr_clearerr"); !over.is_ok()) return fail_with_errno(over);
  tell(*file, [file](std::FILE*) {
    file->stream().clear_failure();
    return Outcome();
  });
}

int tr_feof(tr_file* file) {
  return ask_for_int(file, "tr_feof", 0, [](std::FILE* stream) {
    return Outcome{std::feof(stream) != 0 ? 1 : 0, 0, {}};
  });
}

int tr_ferror(tr_file* handle) {
  File* const file = file_of(handle, "tr_ferror");
  if (file == nullptr) return 0;
  return static_cast<int>(ask(*file, "tr_ferror", [&](std::FILE*) {
                            return Outcome{file->stream().has_failed() ? 1 : 0, 0, {}};
                          }).value);
}

void tr_perror(const char* text) {
  const int number = errno;
  const bool named = text != nullptr && *text != '\0';
  tr_fprintf_nr(tr_stderr, "%s%s%s\n", named ? text : "", named ? ": " : "", std::strerror(number));
}
