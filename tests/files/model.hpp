// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The calls of stdio behind one interface: those of the C library, and those of Tailrace. A random sequence
// of operations is a template over the interface, so that both do the same operations and return their
// results as a text.
#pragma once

#include <tailrace.h>

#include <cstdio>

namespace tailrace::files_test {

struct LibcApi {
  std::FILE* file = nullptr;

  void open(const char* path, const char* mode) { file = std::fopen(path, mode); }
  void reopen(const char* path, const char* mode) { file = std::freopen(path, mode, file); }
  int close() { return std::fclose(file); }
  int flush() { return std::fflush(file); }
  void flush_nr() { std::fflush(file); }
  int setvbuf(int mode, std::size_t size) { return std::setvbuf(file, nullptr, mode, size); }
  void setbuf() { std::setbuf(file, nullptr); }
  int fgetc() { return std::fgetc(file); }
  int getc() { return std::getc(file); }
  char* fgets(char* text, int size) { return std::fgets(text, size, file); }
  int ungetc(int character) { return std::ungetc(character, file); }
  int fputc(int character) { return std::fputc(character, file); }
  int putc(int character) { return std::putc(character, file); }
  int fputs(const char* text) { return std::fputs(text, file); }
  void fputc_nr(int character) { std::fputc(character, file); }
  void putc_nr(int character) { std::putc(character, file); }
  void fputs_nr(const char* text) { std::fputs(text, file); }
  std::size_t fread(void* data, std::size_t size, std::size_t count) {
    return std::fread(data, size, count, file);
  }
  std::size_t fwrite(const void* data, std::size_t size, std::size_t count) {
    return std::fwrite(data, size, count, file);
  }
  void fwrite_nr(const void* data, std::size_t size, std::size_t count) {
    static_cast<void>(std::fwrite(data, size, count, file));
  }
  template <typename... Arguments>
  int fprintf(const char* format, Arguments... arguments) {
    return std::fprintf(file, format, arguments...);
  }
  template <typename... Arguments>
  void fprintf_nr(const char* format, Arguments... arguments) {
    std::fprintf(file, format, arguments...);
  }
  template <typename... Arguments>
  int fscanf(const char* format, Arguments... arguments) {
    return std::fscanf(file, format, arguments...);
  }
  int fgetpos(std::fpos_t* position) { return std::fgetpos(file, position); }
  int fsetpos(const std::fpos_t* position) { return std::fsetpos(file, position); }
  int fseek(long offset, int whence) { return std::fseek(file, offset, whence); }
  void fseek_nr(long offset, int whence) { std::fseek(file, offset, whence); }
  long ftell() { return std::ftell(file); }
  void rewind() { std::rewind(file); }
  void clearerr() { std::clearerr(file); }
  int feof() { return std::feof(file); }
  int ferror() { return std::ferror(file); }
};

struct OurApi {
  tr_file* file = nullptr;

  void open(const char* path, const char* mode) { file = tr_fopen(path, mode); }
  void reopen(const char* path, const char* mode) { file = tr_freopen(path, mode, file); }
  int close() { return tr_fclose(file); }
  int flush() { return tr_fflush(file); }
  void flush_nr() { tr_fflush_nr(file); }
  int setvbuf(int mode, std::size_t size) { return tr_setvbuf(file, nullptr, mode, size); }
  void setbuf() { tr_setbuf(file, nullptr); }
  int fgetc() { return tr_fgetc(file); }
  int getc() { return tr_getc(file); }
  char* fgets(char* text, int size) { return tr_fgets(text, size, file); }
  int ungetc(int character) { return tr_ungetc(character, file); }
  int fputc(int character) { return tr_fputc(character, file); }
  int putc(int character) { return tr_putc(character, file); }
  int fputs(const char* text) { return tr_fputs(text, file); }
  void fputc_nr(int character) { tr_fputc_nr(character, file); }
  void putc_nr(int character) { tr_putc_nr(character, file); }
  void fputs_nr(const char* text) { tr_fputs_nr(text, file); }
  std::size_t fread(void* data, std::size_t size, std::size_t count) {
    return tr_fread(data, size, count, file);
  }
  std::size_t fwrite(const void* data, std::size_t size, std::size_t count) {
    return tr_fwrite(data, size, count, file);
  }
  void fwrite_nr(const void* data, std::size_t size, std::size_t count) {
    tr_fwrite_nr(data, size, count, file);
  }
  template <typename... Arguments>
  int fprintf(const char* format, Arguments... arguments) {
    return tr_fprintf(file, format, arguments...);
  }
  template <typename... Arguments>
  void fprintf_nr(const char* format, Arguments... arguments) {
    tr_fprintf_nr(file, format, arguments...);
  }
  template <typename... Arguments>
  int fscanf(const char* format, Arguments... arguments) {
    return tr_fscanf(file, format, arguments...);
  }
  int fgetpos(tr_fpos* position) { return tr_fgetpos(file, position); }
  int fsetpos(const tr_fpos* position) { return tr_fsetpos(file, position); }
  int fseek(long offset, int whence) { return tr_fseek(file, offset, whence); }
  void fseek_nr(long offset, int whence) { tr_fseek_nr(file, offset, whence); }
  long ftell() { return tr_ftell(file); }
  void rewind() { tr_rewind(file); }
  void clearerr() { tr_clearerr(file); }
  int feof() { return tr_feof(file); }
  int ferror() { return tr_ferror(file); }
};

}  // namespace tailrace::files_test
