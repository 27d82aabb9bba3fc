// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "ground/comm/transport.hpp"

namespace tailrace::node {

/// A lock in memory that processes share, for sections of a few microseconds. It begins with zeros. A waiter
/// spins, and then gives its core away: the holder may need it. It is not robust: a rank that is killed
/// with it blocks the others.
class SharedLock {
 public:
  [[nodiscard]] bool try_lock() {
    return taken_.load(std::memory_order_relaxed) == 0 && taken_.exchange(1) == 0;
  }
  /// A user that does not lock says in another place that it is there, and then calls this. Who has locked
  /// looks at the other place afterwards. All of it is sequentially consistent: one of the two sees the
  /// other.
  [[nodiscard]] bool is_taken() const { return taken_.load() != 0; }
  void lock(comm::Transport& transport) {
    for (int tries = 1; !try_lock(); ++tries) wait_a_little(tries, transport);
  }
  /// Tries for as long as copies of a few pieces take. Returns true if the caller has the lock.
  [[nodiscard]] bool lock_soon() {
    for (int tries = 1; tries < spins; ++tries) {
      if (try_lock()) return true;
      pause();
    }
    return try_lock();
  }
  void unlock() { taken_.store(0, std::memory_order_release); }

  /// Waits for another rank that is about to be done. `tries` counts the waits so far.
  static void wait_a_little(int tries, comm::Transport& transport) {
    if (tries % spins != 0) return pause();
    transport.idle(tries < long_wait ? 0 : 50'000, "memory that the ranks of a node share");
  }

  /// Returns true if the wait of so many tries was as long as copies of a few pieces take.
  static constexpr bool is_soon_over(int tries) { return tries >= spins; }

  /// Waits for a page that comes from storage. The thread that brings it needs the core more.
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
  static constexpr int long_wait = 200 * spins;  // a holder that waits for storage
  std::atomic<std::uint32_t> taken_{0};
};

/// Holds a lock as long as it lives.
class Locked {
 public:
  Locked(SharedLock& lock, comm::Transport& transport) : lock_(&lock) { lock.lock(transport); }
  /// The caller has locked it.
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
