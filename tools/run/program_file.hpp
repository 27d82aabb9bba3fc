// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

namespace tailrace::run {

/// True if a 64-bit program names a loader, or cannot be read. Only a loader preloads libraries.
inline bool names_loader(long file, const Elf64_Ehdr& head) {
  for (int each = 0; each < head.e_phnum; ++each) {
    Elf64_Phdr part = {};
    const std::size_t at = head.e_phoff + static_cast<std::size_t>(each) * head.e_phentsize;
    if (syscall(SYS_pread64, file, &part, sizeof(part), at) != static_cast<long>(sizeof(part))) return true;
    if (part.p_type == PT_INTERP) return true;
  }
  return false;
}

/// Returns why nothing can be preloaded into the program, in words that follow its name, or nullptr.
/// `program` becomes the file that the system runs: for a script its interpreter. Makes system calls alone,
/// because the preloaded library may call it between vfork and exec.
inline const char* obstacle_in(const char* path, char (&program)[PATH_MAX]) {
  constexpr int most_scripts = 5;  // the longest chain of scripts, each the interpreter of the one before
  std::snprintf(program, sizeof(program), "%s", path);
  for (int depth = 0; depth < most_scripts; ++depth) {
    struct stat status = {};
    if (syscall(SYS_newfstatat, AT_FDCWD, program, &status, 0) != 0 || !S_ISREG(status.st_mode))
      return nullptr;
    if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0)
      return "is setuid or setgid: the system preloads nothing into such programs";
    const long file = syscall(SYS_openat, AT_FDCWD, program, O_RDONLY | O_CLOEXEC);
    if (file < 0) return nullptr;
    char line[256] = {};
    Elf64_Ehdr head = {};
    const long got = syscall(SYS_pread64, file, line, sizeof(line) - 1, 0);
    std::memcpy(&head, line, sizeof(head));
    const char* why = nullptr;
    if (got >= static_cast<long>(sizeof(head)) && std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0) {
      if (head.e_ident[EI_CLASS] != ELFCLASS64)
        why = "is no 64-bit program: its calls have other sizes";
      else if (!names_loader(file, head))
        why = "is linked statically: nothing can be preloaded into it; link it dynamically";
    }
    syscall(SYS_close, file);
    if (why != nullptr || got < 3 || std::memcmp(line, "#!", 2) != 0) return why;
    const char* const begin = line + 2 + std::strspn(line + 2, " \t");
    std::snprintf(program, sizeof(program), "%.*s", static_cast<int>(std::strcspn(begin, " \t\n")), begin);
  }
  return nullptr;
}

}  // namespace tailrace::run
