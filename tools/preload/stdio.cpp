// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "preload.hpp"

// stdio reads and writes by calls inside libc, which no library can take over. So this library makes streams
// on shared files itself, with fopencookie(3), on the placeholder.
using namespace tailrace::run;

namespace {

/// libc's standard streams, and the streams of this library that take their place while their descriptors are
/// placeholders.
FILE* plain[3];
FILE* ours[3];

int descriptor_in(void* cookie) { return static_cast<int>(reinterpret_cast<std::intptr_t>(cookie)) - 1; }

ssize_t cookie_read(void* cookie, char* to, size_t bytes) {
  const iovec part = {to, bytes};
  return read_shared(descriptor_in(cookie), &part, 1, 0, true);
}
ssize_t cookie_write(void* cookie, const char* from, size_t bytes) {
  const iovec part = {const_cast<char*>(from), bytes};
  const ssize_t put = write_shared(descriptor_in(cookie), &part, 1, 0, true);
  return put < 0 ? 0 : put;  // 0 means an error, fopencookie(3)
}
int cookie_seek(void* cookie, off64_t* offset, int whence) {
  const off_t at = seek_shared(descriptor_in(cookie), *offset, whence);
  if (at >= 0) *offset = at;
  return at < 0 ? -1 : 0;
}
int cookie_close(void* cookie) {
  const int descriptor = descriptor_in(cookie);
  if (descriptor < 3) {
    // libc frees this stream now, so no variable may lead to it.
    FILE*& stream = descriptor == 0 ? stdin : descriptor == 1 ? stdout : stderr;
    if (stream == ours[descriptor]) stream = plain[descriptor];
    ours[descriptor] = nullptr;
  }
  return is_shared(descriptor) ? result_of(close_shared(descriptor)) : 0;
}

/// Returns the flags of open for a mode of fopen, or -1.
int flags_of(const char* mode) {
  const bool updates = std::strchr(mode, '+') != nullptr;
  const char* const rest = strchrnul(mode, ',');  // ",ccs=" names a coding of characters
  const auto has = [&](char letter) {
    return std::memchr(mode, letter, static_cast<size_t>(rest - mode)) != nullptr;
  };
  int flags = updates ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  if (mode[0] == 'w') flags |= O_CREAT | O_TRUNC;
  if (mode[0] == 'a') flags |= O_CREAT | O_APPEND;
  if (mode[0] != 'r' && mode[0] != 'w' && mode[0] != 'a') return -1;
  if (has('x')) flags |= O_EXCL;
  if (has('e')) flags |= O_CLOEXEC;
  return flags;
}

/// True if a descriptor with these flags of open may read and write as the mode does.
bool fits(const char* mode, int flags) {
  const int wanted = flags_of(mode);
  const int may = flags & O_ACCMODE;
  return wanted >= 0 && (may == O_RDWR || (wanted & O_ACCMODE) == may);
}

/// Makes a stream on a placeholder. Returns nullptr with errno after an error.
FILE* stream_on(int descriptor, const char* mode) {
  char plain[4] = {mode[0], std::strchr(mode, '+') != nullptr ? '+' : '\0', '\0', '\0'};
  if (mode[0] == 'a') {
    // libc's fdopen sets O_APPEND for the descriptor, too. A stream with mode "a" begins at the file's end,
    // one with mode "a+" at its begin.
    arena().descriptions[description_of(descriptor)].flags |= O_APPEND;
    if (plain[1] == '\0') (void)seek_shared(descriptor, 0, SEEK_END);
  }
  const cookie_io_functions_t functions = {cookie_read, cookie_write, cookie_seek, cookie_close};
  FILE* const stream =
      fopencookie(reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor) + 1), plain, functions);
  // fileno() then returns the placeholder, by which libstdc++ reads and writes. A stream of fopencookie uses
  // this number for nothing else.
  if (stream != nullptr) stream->_fileno = descriptor;
  return stream;
}

/// Opens a stream if the path is of a shared file. Returns the stream, or nullptr with errno. Sets `is_ours`
/// to false, and returns nullptr, if libc is to open the path.
FILE* open_stream(const char* path, const char* mode, bool& is_ours) {
  char full[PATH_MAX];
  const int flags = flags_of(mode);
  is_ours = flags >= 0 && matches(AT_FDCWD, path, full);
  int descriptor = -1;
  if (is_ours) {
    descriptor = open_shared(AT_FDCWD, path, full, flags, 0666);
    is_ours = descriptor != -2;
  } else if (const int named = flags >= 0 ? named_placeholder(path) : -1; named >= 0) {
    is_ours = true;
    descriptor = reopen_shared(named, flags);
  }
  if (!is_ours || descriptor < 0) return nullptr;
  FILE* const stream = stream_on(descriptor, mode);
  if (stream == nullptr) (void)close_shared(descriptor);
  return stream;
}

}  // namespace

TR_CATCH(FILE*, fopen, (const char* path, const char* mode)) {
  bool is_ours = false;
  FILE* const stream = open_stream(path, mode, is_ours);
  return is_ours ? stream : real_fopen(path, mode);
}
TR_CATCH(FILE*, fopen64, (const char* path, const char* mode)) {
  bool is_ours = false;
  FILE* const stream = open_stream(path, mode, is_ours);
  return is_ours ? stream : real_fopen64(path, mode);
}

namespace {

/// Reads from a stream by `read`, and first clears its mark of the end of the file where libc's own streams
/// would do so: in a read of a buffer's size or more, which goes to the file at once. Streams of fopencookie
/// never clear the mark: a program that reads a growing file would get nothing any more.
template <typename Read>
size_t read_beyond_end(FILE* stream, size_t bytes, const Read& read) {
  constexpr size_t usual_buffer = 4096;
  if (!feof_unlocked(stream) || !is_shared(stream->_fileno)) return read();
  const size_t buffer =
      stream->_IO_buf_base != nullptr ? static_cast<size_t>(stream->_IO_buf_end - stream->_IO_buf_base) : 0;
  if (bytes < (buffer == 1 ? 1 : usual_buffer)) return read();
  stream->_flags &= ~_IO_EOF_SEEN;
  return read();
}

}  // namespace

TR_CATCH(size_t, fread, (void* to, size_t size, size_t count, FILE* stream)) {
  return read_beyond_end(stream, size * count, [&] { return real_fread(to, size, count, stream); });
}
TR_CATCH(size_t, fread_unlocked, (void* to, size_t size, size_t count, FILE* stream)) {
  return read_beyond_end(stream, size * count, [&] { return real_fread_unlocked(to, size, count, stream); });
}
TR_CATCH(size_t, __fread_chk, (void* to, size_t room, size_t size, size_t count, FILE* stream)) {
  return read_beyond_end(stream, size * count,
                         [&] { return real___fread_chk(to, room, size, count, stream); });
}
TR_CATCH(size_t, __fread_unlocked_chk, (void* to, size_t room, size_t size, size_t count, FILE* stream)) {
  return read_beyond_end(stream, size * count,
                         [&] { return real___fread_unlocked_chk(to, room, size, count, stream); });
}

namespace {

/// Prints to a shared file. libc's vdprintf would write by a call inside libc.
int print_shared(int descriptor, const char* format, va_list arguments) {
  char* text = nullptr;
  const int length = vasprintf(&text, format, arguments);
  if (length < 0) return -1;
  const iovec part = {text, static_cast<std::size_t>(length)};
  const ssize_t put = write_shared(descriptor, &part, 1, 0, true);
  const int error = errno;
  free(text);
  errno = error;
  return put == length ? length : -1;
}

}  // namespace

TR_CATCH(int, vdprintf, (int descriptor, const char* format, va_list arguments)) {
  return is_shared(descriptor) ? print_shared(descriptor, format, arguments)
                               : real_vdprintf(descriptor, format, arguments);
}
TR_CATCH(int, __vdprintf_chk, (int descriptor, int flag, const char* format, va_list arguments)) {
  return is_shared(descriptor) ? print_shared(descriptor, format, arguments)
                               : real___vdprintf_chk(descriptor, flag, format, arguments);
}
TR_CATCH(int, dprintf, (int descriptor, const char* format, ...)) {
  va_list arguments;
  va_start(arguments, format);
  const int printed = tr_vdprintf(descriptor, format, arguments);
  va_end(arguments);
  return printed;
}
TR_CATCH(int, __dprintf_chk, (int descriptor, int flag, const char* format, ...)) {
  va_list arguments;
  va_start(arguments, format);
  const int printed = tr___vdprintf_chk(descriptor, flag, format, arguments);
  va_end(arguments);
  return printed;
}

TR_CATCH(FILE*, fdopen, (int descriptor, const char* mode)) {
  if (!is_shared(descriptor)) return real_fdopen(descriptor, mode);
  if (!fits(mode, arena().descriptions[description_of(descriptor)].flags)) {
    errno = EINVAL;
    return nullptr;
  }
  return stream_on(descriptor, mode);
}

namespace {

/// Reopens stdin, stdout or stderr on a shared file. libc's stream cannot become a stream of this library. So
/// the variable (stdout) gets a stream of this library; code that has kept a pointer to libc's stream gets
/// EBADF.
FILE* reopen_standard(FILE*& stream, int number, const char* path, const char* mode) {
  bool is_ours = false;
  fflush(stream);
  FILE* const fresh = open_stream(path, mode, is_ours);
  if (fresh == nullptr) return nullptr;
  const int moved = dup2(fresh->_fileno, number);
  fclose(fresh);
  if (moved < 0) return nullptr;
  // If the stream had another shared file before, it must forget that file's bytes, end and position.
  __fpurge(stream);
  clearerr(stream);
  stream->_offset = -1;
  return stream;
}

FILE* reopen(Real<FILE*(const char*, const char*, FILE*)>& real, const char* path, const char* mode,
             FILE* stream) {
  char full[PATH_MAX];
  const int number = stream == stdin ? 0 : stream == stdout ? 1 : stream == stderr ? 2 : -1;
  const bool was_shared = is_shared(stream->_fileno);
  const bool is_to_be = path != nullptr && (matches(AT_FDCWD, path, full) || named_placeholder(path) >= 0);
  if (!was_shared && !is_to_be) return real(path, mode, stream);
  if (number >= 0 && is_to_be)
    return reopen_standard(number == 0 ? stdin : number == 1 ? stdout : stderr, number, path, mode);
  if (number >= 0 && path != nullptr) {
    fflush(stream);
    (void)close_shared(number);  // this has put libc's stream back
    return real(path, mode, number == 0 ? stdin : number == 1 ? stdout : stderr);
  }
  refuse(&Counters::others_refused, stream->_fileno, "freopen", "call fclose and fopen");
  errno = ENOTSUP;
  return nullptr;
}

}  // namespace

TR_CATCH(FILE*, freopen, (const char* path, const char* mode, FILE* stream)) {
  return reopen(real_freopen, path, mode, stream);
}
TR_CATCH(FILE*, freopen64, (const char* path, const char* mode, FILE* stream)) {
  return reopen(real_freopen64, path, mode, stream);
}

namespace tailrace::run {

void follow_standard(int descriptor) {
  FILE*& stream = descriptor == 0 ? stdin : descriptor == 1 ? stdout : stderr;
  if (!is_shared(descriptor)) {
    if (ours[descriptor] != nullptr && stream == ours[descriptor]) stream = plain[descriptor];
    return;
  }
  if (ours[descriptor] == nullptr) {
    ours[descriptor] = stream_on(descriptor, descriptor == 0 ? "r" : "w");
    if (ours[descriptor] != nullptr && descriptor == 2) setvbuf(ours[descriptor], nullptr, _IONBF, 0);
  }
  if (ours[descriptor] == nullptr || stream == ours[descriptor]) return;
  plain[descriptor] = stream;
  stream = ours[descriptor];
}

}  // namespace tailrace::run
