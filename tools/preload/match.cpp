// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload.hpp"

namespace tailrace::run {

namespace {

/// Copies of the environment variables, because programs may change their environment.
char patterns[1 << 14];
char keeper_name[128];

/// Appends the path to `full`, which has `length` bytes, without ".", ".." and doubled slashes. Resolves no
/// symbolic links. Returns false if the result is too long.
bool normalise(const char* path, char* full, std::size_t length) {
  while (*path != '\0') {
    while (*path == '/') ++path;
    const char* const end = strchrnul(path, '/');
    const auto bytes = static_cast<std::size_t>(end - path);
    if (bytes == 2 && path[0] == '.' && path[1] == '.') {
      while (length > 0 && full[--length] != '/') continue;
    } else if (bytes > 0 && !(bytes == 1 && path[0] == '.')) {
      if (length + bytes + 2 > PATH_MAX) return false;
      full[length++] = '/';
      std::memcpy(full + length, path, bytes);
      length += bytes;
    }
    path = end;
  }
  full[length] = '\0';
  return true;
}

bool make_absolute(int directory, const char* path, char* full) {
  if (path[0] == '/') return normalise(path, full, 0);
  char link[64] = "/proc/self/cwd";
  if (directory != AT_FDCWD) std::snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, full, PATH_MAX - 1);
  if (length <= 0) return false;
  return normalise(path, full, length == 1 ? 0 : static_cast<std::size_t>(length));
}

bool matches_one(const char* pattern, std::size_t length, const char* full) {
  if (length >= 3 && std::memcmp(pattern + length - 3, "/**", 3) == 0)
    return std::strncmp(pattern, full, length - 2) == 0 && full[length - 2] != '\0';
  char text[PATH_MAX];
  if (length >= sizeof(text)) return false;
  std::memcpy(text, pattern, length);
  text[length] = '\0';
  return fnmatch(text, full, FNM_PATHNAME) == 0;
}

}  // namespace

bool is_active() {
  static std::atomic<int> active{0};
  int known = active.load(std::memory_order_acquire);
  if (known == 0) {
    const char* const text = std::getenv(patterns_variable);
    const bool fits = text != nullptr && std::strlen(text) < sizeof(patterns);
    if (fits) std::strcpy(patterns, text);
    const char* const name = std::getenv(socket_variable);
    const bool is_named = name != nullptr && std::strlen(name) < sizeof(keeper_name);
    if (is_named) std::strcpy(keeper_name, name);
    known = fits && is_named ? 1 : 2;
    active.store(known, std::memory_order_release);
  }
  return known == 1;
}

const char* socket_name() { return keeper_name; }

bool matches(int directory, const char* path, char* full) {
  if (path == nullptr || path[0] == '\0' || !is_active()) return false;
  const char* pattern = patterns;
  const int before = errno;
  const bool is_absolute = make_absolute(directory, path, full);
  errno = before;
  if (!is_absolute) return false;
  while (*pattern != '\0') {
    const char* const end = strchrnul(pattern, '\n');
    if (matches_one(pattern, static_cast<std::size_t>(end - pattern), full)) return true;
    pattern = *end == '\n' ? end + 1 : end;
  }
  return false;
}

int named_placeholder(const char* path) {
  int number = -1;
  char rest = '\0';
  if (path == nullptr || (path[0] != '/' || (path[1] != 'd' && path[1] != 'p'))) return -1;
  if (std::strcmp(path, "/dev/stdin") == 0) number = 0;
  if (std::strcmp(path, "/dev/stdout") == 0) number = 1;
  if (std::strcmp(path, "/dev/stderr") == 0) number = 2;
  if (number < 0 && std::sscanf(path, "/proc/self/fd/%d%c", &number, &rest) != 1 &&
      std::sscanf(path, "/dev/fd/%d%c", &number, &rest) != 1)
    return -1;
  return is_shared(number) ? number : -1;
}

}  // namespace tailrace::run
