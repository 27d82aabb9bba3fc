// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Characters and lines (ISO C99 7.19.7) and blocks (7.19.8).
#include <algorithm>
#include <cerrno>

#include "api/c/arrays.hpp"
#include "api/c/files.hpp"
#include "api/c/state.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using files::File;
using files::Outcome;

namespace {

const char* const null_text = "`text` is a null pointer";
const char* const null_data = "`data` is a null pointer";
const char* const within_distributed =
    "`data` lies within a distributed array, of which this rank has a part only: pass the array itself";

/// Returns the number of elements moved. A call that failed as a whole has moved none.
std::size_t count_of(const Outcome& outcome) {
  return static_cast<std::size_t>(std::max<std::int64_t>(outcome.value, 0));
}

int get_character(tr_file* handle, const char* call) {
  return ask_for_int(handle, call, EOF, [](std::FILE* stream) {
    const int character = std::fgetc(stream);
    return outcome_of(character, character == EOF && std::ferror(stream) != 0);
  });
}

int put_character(tr_file* handle, const char* call, int character) {
  return ask_for_int(handle, call, EOF,
                     [character](std::FILE* stream) { return outcome_of(std::fputc(character, stream)); });
}

int put_text(tr_file* handle, const char* call, const char* text, bool ends_line) {
  return ask_for_int(handle, call, EOF, [=](std::FILE* stream) {
    if (text == nullptr) return refused(EOF, EINVAL, null_text);
    const int code = std::fputs(text, stream);
    return outcome_of(code != EOF && ends_line && std::fputc('\n', stream) == EOF ? EOF : code);
  });
}

/// Writes without a result. If the bytes are written later, they are copied now, because the caller may
/// change them at once.
void tell_bytes(File& file, const void* data, std::size_t size) {
  if (!file.holds_stream()) return;
  if (file.mode().async) {
    const int before = errno;
    file.stream().tell_bytes({static_cast<const std::byte*>(data), size});
    errno = before;
    return;
  }
  tell(file, [&](std::FILE* stream) { return outcome_of(0, std::fwrite(data, 1, size, stream) != size); });
}

void tell_refused(File& file, int error) {
  tell(file, [error](std::FILE*) { return Outcome{EOF, error, {}}; });
}

void tell_text(tr_file* handle, const char* call, const char* text, bool ends_line) {
  File* const file = file_of(handle, call);
  if (file == nullptr || !file->holds_stream()) return;
  if (text == nullptr) return tell_refused(*file, EINVAL);
  tell_bytes(*file, text, std::strlen(text));
  if (ends_line) tell_bytes(*file, "\n", 1);
}

void tell_character(tr_file* handle, const char* call, int character) {
  File* const file = file_of(handle, call);
  const auto byte = static_cast<unsigned char>(character);
  if (file != nullptr) tell_bytes(*file, &byte, 1);
}

/// Reads a line as fgets does, and finds out how many bytes it has. fgets itself does not tell that if the
/// line contains zeros.
Outcome get_line(char* text, int size, bool shared, std::FILE* stream) {
  if (text == nullptr) return refused(0, EFAULT, null_text);
  if (size <= 0) return Outcome();
  int length = 0;
  int character = 0;
  while (length < size - 1 && character != '\n' && (character = std::getc(stream)) != EOF)
    text[length++] = static_cast<char>(character);
  if (character == EOF && errno != 0 && std::ferror(stream) != 0) return outcome_of(0, true);
  if (character == EOF && length == 0) return Outcome();
  text[length] = '\0';
  Outcome outcome{1, 0, {}};
  const auto bytes = std::as_bytes(std::span(text, static_cast<std::size_t>(length) + 1));
  if (shared) outcome.data.assign(bytes.begin(), bytes.end());
  return outcome;
}

Outcome get_elements(void* data, std::size_t size, std::size_t count, bool shared, std::FILE* stream) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(size, count, &bytes))
    return refused(0, EINVAL, "`size` times `count` is no size that memory has");
  if (bytes == 0) return Outcome();
  if (data == nullptr) return refused(0, EFAULT, null_data);
  const std::size_t got = std::fread(data, 1, bytes, stream);  // the last element may be incomplete
  Outcome outcome =
      outcome_of(static_cast<std::int64_t>(got / size), got < bytes && std::ferror(stream) != 0);
  const auto* begin = static_cast<const std::byte*>(data);
  if (shared) outcome.data.assign(begin, begin + got);
  return outcome;
}

/// Returns an error if the bytes that the I/O rank has read, or reads, do not fit into this rank's memory.
Status check_room(const File& file, std::size_t bytes, const void* data, std::size_t room, const char* call,
                  const char* null) {
  if (bytes > room) {
    return {Code::argument,
            cat(call, "(", file.path(), "): the I/O rank has read ", bytes,
                " bytes, this rank gives room for ", room, ": ranks pass different arguments"),
            EINVAL};
  }
  if (data == nullptr) return {Code::argument, std::string(call) + ": " + null, EFAULT};
  return {};
}

/// Copies the bytes that the I/O rank has read to the caller's memory on the other ranks.
Status take_data(const File& file, const Outcome& outcome, void* data, std::size_t room, const char* call,
                 const char* null) {
  if (file.holds_stream() || outcome.data.empty()) return {};
  TR_TRY(check_room(file, outcome.data.size(), data, room, call, null));
  std::memcpy(data, outcome.data.data(), outcome.data.size());
  return {};
}

char* read_line(const char* call, char* text, int size, tr_file* handle, Failures failures) {
  File* const file = file_of(handle, call);
  if (file == nullptr) return nullptr;
  const auto operation = [&](std::FILE* stream) { return get_line(text, size, is_shared(*file), stream); };
  const Outcome outcome = ask(*file, call, operation, failures);
  const auto room = static_cast<std::size_t>(std::max(size, 0));
  const Status taken = take_data(*file, outcome, text, room, call, null_text);
  settle(*file, taken, failures);
  return taken.is_ok() && outcome.value > 0 ? text : nullptr;
}

/// Returns the outcome of an I/O rank that leaves the bytes to read_together(): their number, negative. Bytes
/// of a pipe, and those behind a character that was pushed back, must come from C's stream. An array call
/// would take an older error of the stream for its own.
std::optional<Outcome> left_to_all(File& file, std::size_t size, std::size_t count, std::FILE* stream) {
  Bytes bytes = 0;
  if (__builtin_mul_overflow(size, count, &bytes) || !file.reads_to_all(bytes)) return std::nullopt;
  const bool pushed_back = file.stream().take_pushed_back();
  if (pushed_back || !file.mode().reads() || file.stream().has_failed() || std::ftell(stream) < 0)
    return std::nullopt;
  return Outcome{-bytes, 0, {}};
}

/// Collective. Reads `bytes` into the memory of every rank. Returns how many of them the file has. A rank
/// without room for them reads into memory that it drops, so that the others get theirs.
std::size_t read_together(File& file, const char* call, void* data, std::size_t room, std::size_t bytes,
                          Failures failures) {
  const int before = errno;
  const Status mine = check_room(file, bytes, data, room, call, null_data);
  ByteVector dropped;
  const Status ready = guarded([&] {
    if (!mine.is_ok()) dropped.resize(bytes);
    return Status();
  });
  const files::ArrayOutcome outcome =
      file.read_to_all(call, {mine.is_ok() ? static_cast<std::byte*>(data) : dropped.data(), bytes}, ready);
  errno = before;
  settle(file, mine.is_ok() ? outcome.status : mine, failures);
  return mine.is_ok() ? static_cast<std::size_t>(outcome.elements) : 0;
}

std::size_t read_elements(const char* call, void* data, std::size_t size, std::size_t count, tr_file* handle,
                          Failures failures) {
  if (const auto items = move_distributed(call, data, size, count, handle, arrays::Direction::read, failures))
    return *items;
  File* const file = file_of(handle, call);
  if (file == nullptr) return 0;
  const auto operation = [&](std::FILE* stream) {
    if (is_within_distributed(data)) return refused(0, EINVAL, within_distributed);
    std::optional<Outcome> left;
    if (data != nullptr) left = left_to_all(*file, size, count, stream);
    return left ? std::move(*left) : get_elements(data, size, count, is_shared(*file), stream);
  };
  const Outcome outcome = ask(*file, call, operation, failures);
  if (outcome.value < 0 && outcome.error == 0) {
    const auto bytes = static_cast<std::size_t>(-outcome.value);
    return read_together(*file, call, data, size * count, bytes, failures) / size;
  }
  const Status taken = take_data(*file, outcome, data, size * count, call, null_data);
  settle(*file, taken, failures);
  return taken.is_ok() ? count_of(outcome) : 0;
}

}  // namespace

int tr_fgetc(tr_file* file) { return get_character(file, "tr_fgetc"); }

int tr_getc(tr_file* file) { return get_character(file, "tr_getc"); }

int tr_getchar(void) { return get_character(tr_stdin, "tr_getchar"); }

char* tr_fgets(char* text, int size, tr_file* file) {
  return read_line("tr_fgets", text, size, file, Failures::returned);
}

int tr_ungetc(int character, tr_file* handle) {
  File* const file = file_of(handle, "tr_ungetc");
  if (file == nullptr) return EOF;
  return static_cast<int>(ask(*file, "tr_ungetc", [&](std::FILE* stream) {
                            file->stream().note_pushed_back();
                            return outcome_of(std::ungetc(character, stream));
                          }).value);
}

int tr_fputc(int character, tr_file* file) { return put_character(file, "tr_fputc", character); }

int tr_putc(int character, tr_file* file) { return put_character(file, "tr_putc", character); }

int tr_putchar(int character) { return put_character(tr_stdout, "tr_putchar", character); }

int tr_fputs(const char* text, tr_file* file) { return put_text(file, "tr_fputs", text, false); }

int tr_puts(const char* text) { return put_text(tr_stdout, "tr_puts", text, true); }

size_t tr_fread(void* data, size_t size, size_t count, tr_file* file) {
  return read_elements("tr_fread", data, size, count, file, Failures::returned);
}

size_t tr_fwrite(const void* data, size_t size, size_t count, tr_file* handle) {
  if (const auto items = move_distributed("tr_fwrite", data, size, count, handle, arrays::Direction::write))
    return *items;
  File* const file = file_of(handle, "tr_fwrite");
  if (file == nullptr) return 0;
  return count_of(ask(*file, "tr_fwrite", [&](std::FILE* stream) {
    if (size == 0 || count == 0) return Outcome();
    if (data == nullptr) return refused(0, EFAULT, null_data);
    if (is_within_distributed(data)) return refused(0, EINVAL, within_distributed);
    const std::size_t written = std::fwrite(data, size, count, stream);
    return outcome_of(static_cast<std::int64_t>(written), written < count);
  }));
}

void tr_fputc_nr(int character, tr_file* file) { tell_character(file, "tr_fputc_nr", character); }

void tr_putc_nr(int character, tr_file* file) { tell_character(file, "tr_putc_nr", character); }

void tr_putchar_nr(int character) { tell_character(tr_stdout, "tr_putchar_nr", character); }

void tr_fputs_nr(const char* text, tr_file* file) { tell_text(file, "tr_fputs_nr", text, false); }

void tr_puts_nr(const char* text) { tell_text(tr_stdout, "tr_puts_nr", text, true); }

void tr_fgets_nr(char* text, int size, tr_file* file) {
  read_line("tr_fgets_nr", text, size, file, Failures::kept);
}

void tr_ungetc_nr(int character, tr_file* handle) {
  File* const file = file_of(handle, "tr_ungetc_nr");
  if (file == nullptr) return;
  tell(*file, [character, file](std::FILE* stream) {
    file->stream().note_pushed_back();
    const bool failed = std::ungetc(character, stream) == EOF && character != EOF;
    return failed ? refused(EOF, ENOBUFS, "ungetc has no room for one more character") : Outcome();
  });
}

void tr_fread_nr(void* data, size_t size, size_t count, tr_file* file) {
  read_elements("tr_fread_nr", data, size, count, file, Failures::kept);
}

void tr_fwrite_nr(const void* data, size_t size, size_t count, tr_file* handle) {
  if (move_distributed("tr_fwrite_nr", data, size, count, handle, arrays::Direction::write, Failures::kept))
    return;
  File* const file = file_of(handle, "tr_fwrite_nr");
  if (file == nullptr || !file->holds_stream() || size == 0 || count == 0) return;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(size, count, &bytes)) return tell_refused(*file, EINVAL);
  if (data == nullptr) return tell_refused(*file, EFAULT);
  if (is_within_distributed(data)) return tell_refused(*file, EINVAL);
  tell_bytes(*file, data, bytes);
}
