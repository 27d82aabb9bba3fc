// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Storage that a test holds: pwritev and fsync of this process wait until the test releases them. The
// functions here take the place of the C library's, also in the library under test. Exactly one source of a
// program includes this header.
#pragma once

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace tailrace {

class HeldStorage {
 public:
  static HeldStorage& get() {
    static HeldStorage one;
    return one;
  }
  /// From now on calls of other threads wait until release(). Calls of the calling thread wait only for
  /// `own_wait`, and are counted.
  void hold(std::chrono::milliseconds own_wait = {}) {
    const std::lock_guard guard(mutex_);
    program_ = std::this_thread::get_id();
    own_wait_ = own_wait;
    own_calls_ = 0;
    synced_.clear();
    held_ = true;
  }
  void release() {
    const std::lock_guard guard(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  /// Waits until the call of another thread is held.
  void wait_for_a_call() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }
  /// Returns the number of calls of the holding thread since hold().
  [[nodiscard]] int own_calls() {
    const std::lock_guard guard(mutex_);
    return own_calls_;
  }
  /// True if the file was synchronised since hold().
  [[nodiscard]] bool has_synced(const std::string& path) {
    struct stat info {};
    const std::lock_guard guard(mutex_);
    return ::stat(path.c_str(), &info) == 0 && synced_.contains(info.st_ino);
  }

  void enter() {
    std::unique_lock lock(mutex_);
    if (!held_) return;
    if (std::this_thread::get_id() == program_) {
      ++own_calls_;
      lock.unlock();
      std::this_thread::sleep_for(own_wait_);
      return;
    }
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    --waiting_;
  }
  void note_synced(int descriptor) {
    struct stat info {};
    const std::lock_guard guard(mutex_);
    if (::fstat(descriptor, &info) == 0) synced_.insert(info.st_ino);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id program_;
  std::chrono::milliseconds own_wait_{};
  std::set<ino_t> synced_;
  int own_calls_ = 0;
  int waiting_ = 0;
  bool held_ = false;
};

template <typename Function>
Function* next_of(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace tailrace

extern "C" __attribute__((visibility("default"))) ssize_t pwritev(int descriptor, const iovec* parts,
                                                                  int count, off_t offset) {
  static auto* const real = tailrace::next_of(&::pwritev, "pwritev");
  tailrace::HeldStorage::get().enter();
  return real(descriptor, parts, count, offset);
}

extern "C" __attribute__((visibility("default"))) int fsync(int descriptor) {
  static auto* const real = tailrace::next_of(&::fsync, "fsync");
  tailrace::HeldStorage::get().enter();
  const int result = real(descriptor);
  if (result == 0) tailrace::HeldStorage::get().note_synced(descriptor);
  return result;
}
