// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Calls under C's own names (tailrace/stdio.h): with or without a result, as their place in the program says.
#include <cstdarg>
#include <cstdint>

#define TR_CALL_SITES 0
#include "tailrace/call_sites.h"

namespace {

constexpr int used = 1;
constexpr int unused = 2;

/// A line of the section is the distance from itself to a call's place. A line with 0 shows that the linker
/// has kept the section; without it, an absent line means nothing.
int look_up(const tr_call_site& site) {
  const auto place = reinterpret_cast<std::intptr_t>(&site);
  bool is_kept = false;
  for (const std::int64_t* line = site.first_used; line < site.behind_used; ++line) {
    if (*line == 0) is_kept = true;
    if (reinterpret_cast<std::intptr_t>(line) + *line == place) return used;
  }
  return is_kept ? unused : used;
}

bool is_unused(tr_call_site* site) {
  if (site->verdict == 0) site->verdict = look_up(*site);
  return site->verdict == unused;
}

}  // namespace

int tr_vfprintf_at(tr_call_site* site, tr_file* file, const char* format, va_list arguments) {
  if (!is_unused(site)) return tr_vfprintf(file, format, arguments);
  tr_vfprintf_nr(file, format, arguments);
  return 0;
}

int tr_fprintf_at(tr_call_site* site, tr_file* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = tr_vfprintf_at(site, file, format, arguments);
  va_end(arguments);
  return length;
}

int tr_vprintf_at(tr_call_site* site, const char* format, va_list arguments) {
  if (!is_unused(site)) return tr_vprintf(format, arguments);
  tr_vprintf_nr(format, arguments);
  return 0;
}

int tr_printf_at(tr_call_site* site, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = tr_vprintf_at(site, format, arguments);
  va_end(arguments);
  return length;
}

int tr_vfscanf_at(tr_call_site* site, tr_file* file, const char* format, va_list arguments) {
  if (!is_unused(site)) return tr_vfscanf(file, format, arguments);
  tr_vfscanf_nr(file, format, arguments);
  return 0;
}

int tr_fscanf_at(tr_call_site* site, tr_file* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int items = tr_vfscanf_at(site, file, format, arguments);
  va_end(arguments);
  return items;
}

int tr_vscanf_at(tr_call_site* site, const char* format, va_list arguments) {
  if (!is_unused(site)) return tr_vscanf(format, arguments);
  tr_vscanf_nr(format, arguments);
  return 0;
}

int tr_scanf_at(tr_call_site* site, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int items = tr_vscanf_at(site, format, arguments);
  va_end(arguments);
  return items;
}

char* tr_fgets_at(tr_call_site* site, char* text, int size, tr_file* file) {
  if (!is_unused(site)) return tr_fgets(text, size, file);
  tr_fgets_nr(text, size, file);
  return nullptr;
}

int tr_ungetc_at(tr_call_site* site, int character, tr_file* file) {
  if (!is_unused(site)) return tr_ungetc(character, file);
  tr_ungetc_nr(character, file);
  return 0;
}

int tr_fputc_at(tr_call_site* site, int character, tr_file* file) {
  if (!is_unused(site)) return tr_fputc(character, file);
  tr_fputc_nr(character, file);
  return 0;
}

int tr_putc_at(tr_call_site* site, int character, tr_file* file) {
  if (!is_unused(site)) return tr_putc(character, file);
  tr_putc_nr(character, file);
  return 0;
}

int tr_putchar_at(tr_call_site* site, int character) {
  if (!is_unused(site)) return tr_putchar(character);
  tr_putchar_nr(character);
  return 0;
}

int tr_fputs_at(tr_call_site* site, const char* text, tr_file* file) {
  if (!is_unused(site)) return tr_fputs(text, file);
  tr_fputs_nr(text, file);
  return 0;
}

int tr_puts_at(tr_call_site* site, const char* text) {
  if (!is_unused(site)) return tr_puts(text);
  tr_puts_nr(text);
  return 0;
}

size_t tr_fread_at(tr_call_site* site, void* data, size_t size, size_t count, tr_file* file) {
  if (!is_unused(site)) return tr_fread(data, size, count, file);
  tr_fread_nr(data, size, count, file);
  return 0;
}

size_t tr_fwrite_at(tr_call_site* site, const void* data, size_t size, size_t count, tr_file* file) {
  if (!is_unused(site)) return tr_fwrite(data, size, count, file);
  tr_fwrite_nr(data, size, count, file);
  return 0;
}

int tr_fseek_at(tr_call_site* site, tr_file* file, long offset, int whence) {
  if (!is_unused(site)) return tr_fseek(file, offset, whence);
  tr_fseek_nr(file, offset, whence);
  return 0;
}
