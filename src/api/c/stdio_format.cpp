// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Formatted output and input (ISO C99 7.19.6).
#include <cerrno>
#include <cstdarg>

#include "api/c/files.hpp"
#include "api/c/state.hpp"
#include "faces/files/scanf_pieces.hpp"

using namespace tailrace;
using namespace tailrace::capi;
using files::File;
using files::Outcome;

namespace {

const char* const null_format = "`format` is a null pointer";

int print(tr_file* handle, const char* call, const char* format, std::va_list arguments) {
  return ask_for_int(handle, call, -1, [&](std::FILE* stream) {
    if (format == nullptr) return refused(-1, EINVAL, null_format);
    return outcome_of(std::vfprintf(stream, format, arguments));
  });
}

/// Formats now, because the arguments' memory may change. The text is written later.
Outcome print_later(File& file, const char* format, std::va_list arguments) {
  std::va_list again;
  va_copy(again, arguments);
  const int before = std::exchange(errno, 0);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  Outcome outcome = outcome_of(length);
  if (length >= 0) {
    std::string text(static_cast<std::size_t>(length) + 1, '\0');
    std::vsnprintf(text.data(), text.size(), format, again);
    file.stream().tell_bytes(std::as_bytes(std::span(text.data(), static_cast<std::size_t>(length))));
  }
  va_end(again);
  errno = before;
  return outcome;
}

void print_without_result(tr_file* handle, const char* call, const char* format, std::va_list arguments) {
  File* const file = file_of(handle, call);
  if (file == nullptr || !file->holds_stream()) return;
  Outcome failed{-1, EINVAL, {}};
  if (format != nullptr && !file->mode().async) {
    return tell(*file,
                [&](std::FILE* stream) { return outcome_of(std::vfprintf(stream, format, arguments)); });
  }
  if (format != nullptr) failed = print_later(*file, format, arguments);
  if (failed.error != 0) tell(*file, [failed](std::FILE*) { return failed; });
}

Outcome scan_there(std::FILE* stream, const char* format, std::va_list arguments) {
  if (format == nullptr) return refused(EOF, EINVAL, null_format);
  const Result<std::vector<files::ScanPiece>> pieces = files::parse_scan_format(format);
  if (!pieces.is_ok()) return refused(EOF, EINVAL, pieces.status().text());
  return files::scan(stream, *pieces, arguments);
}

int scan(tr_file* handle, const char* call, const char* format, std::va_list arguments,
         Failures failures = Failures::returned) {
  File* const file = file_of(handle, call);
  if (file == nullptr) return EOF;
  const auto operation = [&](std::FILE* stream) { return scan_there(stream, format, arguments); };
  const Outcome outcome = ask(*file, call, operation, failures);
  if (file->holds_stream()) return static_cast<int>(outcome.value);
  if (files::store_scanned(outcome.data, arguments)) return static_cast<int>(outcome.value);
  settle(*file, Status(Code::argument, std::string(call) + ": an argument is a null pointer", EFAULT),
         failures);
  return EOF;
}

}  // namespace

int tr_vfprintf(tr_file* file, const char* format, va_list arguments) {
  return print(file, "tr_fprintf", format, arguments);
}

int tr_fprintf(tr_file* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = print(file, "tr_fprintf", format, arguments);
  va_end(arguments);
  return length;
}

int tr_vprintf(const char* format, va_list arguments) {
  return print(tr_stdout, "tr_printf", format, arguments);
}

int tr_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = print(tr_stdout, "tr_printf", format, arguments);
  va_end(arguments);
  return length;
}

void tr_vfprintf_nr(tr_file* file, const char* format, va_list arguments) {
  print_without_result(file, "tr_fprintf_nr", format, arguments);
}

void tr_fprintf_nr(tr_file* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_without_result(file, "tr_fprintf_nr", format, arguments);
  va_end(arguments);
}

void tr_vprintf_nr(const char* format, va_list arguments) {
  print_without_result(tr_stdout, "tr_printf_nr", format, arguments);
}

void tr_printf_nr(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_without_result(tr_stdout, "tr_printf_nr", format, arguments);
  va_end(arguments);
}

int tr_vfscanf(tr_file* file, const char* format, va_list arguments) {
  return scan(file, "tr_fscanf", format, arguments);
}

int tr_fscanf(tr_file* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int items = scan(file, "tr_fscanf", format, arguments);
  va_end(arguments);
  return items;
}

int tr_vscanf(const char* format, va_list arguments) { return scan(tr_stdin, "tr_scanf", format, arguments); }

int tr_scanf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int items = scan(tr_stdin, "tr_scanf", format, arguments);
  va_end(arguments);
  return items;
}

void tr_vfscanf_nr(tr_file* file, const char* format, va_list arguments) {
  scan(file, "tr_fscanf_nr", format, arguments, Failures::kept);
}

void tr_fscanf_nr(tr_file* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  scan(file, "tr_fscanf_nr", format, arguments, Failures::kept);
  va_end(arguments);
}

void tr_vscanf_nr(const char* format, va_list arguments) {
  scan(tr_stdin, "tr_scanf_nr", format, arguments, Failures::kept);
}

void tr_scanf_nr(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  scan(tr_stdin, "tr_scanf_nr", format, arguments, Failures::kept);
  va_end(arguments);
}
