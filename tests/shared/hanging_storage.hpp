// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Storage that hangs on servers. As long as a file PATH.hang_CALL exists, a server's calls of CALL on PATH
// wait, for 20 s at most. The file PATH.hangs appears when a call begins to wait, PATH.gave_up when it has
// waited in vain, and PATH.used when a server has used PATH. The functions open, pread and close here take
// the place of the C library's, also in the library under test. Exactly one source of a program includes this
// header.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <fstream>
#include <string>
#include <thread>

namespace tailrace {

class HangingStorage {
 public:
  static HangingStorage& get() {
    static HangingStorage one;
    return one;
  }
  static bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }
  /// From now on calls of this process hang on files whose names end with `ending`; pread hangs only at
  /// `offset`.
  void hang(const std::string& ending, off_t offset) {
    offset_ = offset;
    ending_ = ending;
    hangs_ = true;
  }
  /// Makes calls on files whose names end with `ending` write the file PATH.used.
  void tell_use(const std::string& ending) { told_ = ending; }
  /// Called in a process that is no server: none of its calls hang.
  void hang_never() { hangs_ = false; }

  void enter(const char* call, const std::string& path) {
    if (!hangs_) return;
    if (!told_.empty() && path.ends_with(told_)) std::ofstream(path + ".used") << call;
    if (!path.ends_with(ending_) || !exists(path + ".hang_" + call)) return;
    std::ofstream(path + ".hangs") << call;
    for (int i = 0; i < 4000; ++i) {
      if (!exists(path + ".hang_" + call)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::ofstream(path + ".gave_up") << call;
  }
  void enter(const char* call, int descriptor) {
    if (!hangs_) return;
    char path[4096];
    const ssize_t length =
        ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof path);
    if (length > 0) enter(call, std::string(path, static_cast<std::size_t>(length)));
  }
  [[nodiscard]] off_t offset() const { return offset_; }

 private:
  std::atomic<bool> hangs_{false};
  std::string ending_;
  std::string told_;
  off_t offset_ = 0;
};

template <typename Function>
Function* next_of(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace tailrace

extern "C" __attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
  static auto* const real = tailrace::next_of(&::open, "open");
  std::va_list more;
  va_start(more, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  tailrace::HangingStorage::get().enter("open", std::string(path));
  return real(path, flags, mode);
}

extern "C" __attribute__((visibility("default"))) ssize_t pread(int descriptor, void* data, std::size_t size,
                                                                off_t offset) {
  static auto* const real = tailrace::next_of(&::pread, "pread");
  tailrace::HangingStorage& storage = tailrace::HangingStorage::get();
  if (offset == storage.offset()) storage.enter("pread", descriptor);
  return real(descriptor, data, size, offset);
}

extern "C" __attribute__((visibility("default"))) int close(int descriptor) {
  static auto* const real = tailrace::next_of(&::close, "close");
  tailrace::HangingStorage::get().enter("close", descriptor);
  return real(descriptor);
}
