// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "ground/comm/transport.hpp"

namespace tailrace::node {

/// A lock in memory that processes share, for sections of a few microseconds. It begins as zeros. A rank that
/// waits first spins, then gives its core away, because the holder may need it. The lock is not robust: if
/// the rank that holds it is killed, the others are blocked.
class SharedLock {
 public:
  [[nodiscard]] bool try_lock() {
    return taken_.load(std::memory_order_relaxed) == 0 && taken_.exchange(1) == 0;
  }
  /// True if the lock is taken. For users that do not lock: they first announce themselves in another place,
  /// and then call this. The rank that locks looks at that other place after it has locked. All accesses are
  /// sequentially consistent, so at least one of the two sees the other.
  [[nodiscard]] bool is_taken() const { return taken_.load() != 0; }
  void lock(comm::Transport& transport) {
    for (int tries = 1; !try_lock(); ++tries) wait_a_little(tries, transport);
  }
  /// Tries to lock for as long as copying a few pieces takes. Returns true if the caller now has the lock.
  [[nodiscard]] bool lock_soon() {
    for (int tries = 1; tries < spins; ++tries) {
      if (try_lock()) return true;
      pause();
    }
    return try_lock();
  }
  void unlock() { taken_.store(0, std::memory_order_release); }

  /// Waits for another rank that will be done soon. `tries` counts the waits so far.
  static void wait_a_little(int tries, comm::Transport& transport) {
    if (tries % spins != 0) return pause();
    transport.idle(tries < long_wait ? 0 : 50'000, "memory that the ranks of a node share");
  }

  /// True if `tries` waits last as long as copying a few pieces takes.
  static constexpr bool is_soon_over(int tries) { return tries >= spins; }

  /// Waits for a page to come from storage. Sleeps soon, because the thread that brings the page needs the
  /// core more.
  static void wait_for_page(int tries, comm::Transport& transport) {
    transport.idle(tries < spins / 4 ? 0 : 50'000, "a page of a shared file");
  }

 private:
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  static constexpr int spins = 64;
  static constexpr int long_wait = 200 * spins;  // the holder probably waits for storage
  std::atomic<std::uint32_t> taken_{0};
};

/// Holds a lock until the end of the scope.
class Locked {
 public:
  Locked(SharedLock& lock, comm::Transport& transport) : lock_(&lock) { lock.lock(transport); }
  /// Takes over a lock that the caller has locked.
  Locked(SharedLock& lock, std::adopt_lock_t /*unused*/) : lock_(&lock) {}
  ~Locked() { unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  void unlock() {
    if (lock_ != nullptr) lock_->unlock();
    lock_ = nullptr;
  }

 private:
  SharedLock* lock_;
};

}  // namespace tailrace::node
