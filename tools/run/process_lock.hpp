// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace tailrace::run {

/// A thread as the holder of a lock. The lower half is the thread's number. The upper half is its process's
/// number in the arena, and the epoch: the count of processes that had this number before. 0 means no holder.
using Holder = std::uint64_t;
constexpr Holder holder_of(std::uint32_t process, std::uint32_t epoch, std::uint32_t thread) {
  return (Holder{epoch & 0xFFFFFU} << 44) | (Holder{process & 0xFFFU} << 32) | (thread & 0x3FFFFFFFU);
}
constexpr std::uint32_t thread_of(Holder holder) { return static_cast<std::uint32_t>(holder) & 0x3FFFFFFFU; }
constexpr std::uint32_t process_of(Holder holder) {
  return static_cast<std::uint32_t>(holder >> 32) & 0xFFFU;
}
constexpr std::uint32_t epoch_of(Holder holder) { return static_cast<std::uint32_t>(holder >> 44); }

/// A lock in memory that processes share; any of them may be killed or stopped at any moment. A robust mutex
/// would not do: its wake-up is lost if the waiter that it wakes is killed, and it waits for ever for a
/// holder that is stopped. Here each wait ends after a time, and the waiter then looks at the holder.
class ProcessLock {
 public:
  /// Takes the lock for `me` if it is free. Returns true if it was.
  bool try_lock(Holder me) {
    Holder word = 0;
    return word_.compare_exchange_strong(word, me, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// Waits for the lock, and takes it for `me`. After each `wait_ns` in which the holder has not changed,
  /// asks `is_stuck(holder, waits)`. Returns 0; or EDEADLK if `me` has the lock already, because a signal
  /// handler has interrupted the holder; or ESTALE if the holder is stuck, or if leave_to() has left the lock
  /// to its holder. With ESTALE `holder` becomes that holder.
  template <typename Judge>
  int lock(Holder me, const Judge& is_stuck, Holder& holder) {
    int waits = 0;
    holder = 0;
    for (Holder taken = me;; taken = me | waiting) {
      Holder word = 0;
      if (word_.compare_exchange_strong(word, taken, std::memory_order_acquire, std::memory_order_relaxed))
        return 0;
      if ((word & left) != 0) return ESTALE;
      if ((word & ~flags) == me) return EDEADLK;
      if ((word & waiting) == 0 &&
          !word_.compare_exchange_strong(word, word | waiting, std::memory_order_relaxed))
        continue;
      word |= waiting;
      if (holder != (word & ~flags)) waits = 0;
      holder = word & ~flags;
      if (wait(static_cast<std::uint32_t>(word)) && word_.load(std::memory_order_relaxed) == word &&
          is_stuck(holder, ++waits))
        return ESTALE;
    }
  }
  /// Frees the lock. Returns false if take_from() or leave_to() has taken the guarded memory from `me`
  /// meanwhile: then another thread may have changed it.
  bool unlock(Holder me) {
    Holder word = word_.load(std::memory_order_relaxed);
    while ((word & ~flags) == me) {
      if (!word_.compare_exchange_weak(word, 0, std::memory_order_release, std::memory_order_relaxed))
        continue;
      if ((word & waiting) != 0) wake(1);
      return (word & left) == 0;
    }
    return false;
  }
  /// Takes the lock from `holder` for `me`. Returns false if `holder` does not have the lock any more.
  bool take_from(Holder holder, Holder me) {
    return replace(holder, me | waiting, std::memory_order_acquire);
  }
  /// Tells `holder`, and all that wait, that the page which the lock guards is not here any more: their
  /// lock() returns ESTALE, and the holder's unlock() false. The lock is free again when `holder` unlocks it.
  /// Returns false if `holder` does not have the lock any more.
  bool leave_to(Holder holder) {
    if (!replace(holder, holder | left, std::memory_order_acquire)) return false;
    wake(1 << 30);
    return true;
  }
  /// Undoes leave_to(): the page stays here after all.
  void take_back(Holder holder) {
    Holder word = holder | left;
    (void)word_.compare_exchange_strong(word, holder | waiting);
  }
  /// Frees the lock for a holder that has ended.
  void free_of(Holder holder) {
    if (replace(holder, 0, std::memory_order_acquire)) wake(1);
  }
  /// Returns the holder of the lock, or 0 if it is free.
  [[nodiscard]] Holder holder() const { return word_.load(std::memory_order_acquire) & ~flags; }

  static constexpr long wait_ns = 20'000'000;

 private:
  static constexpr Holder waiting = Holder{1} << 31;
  static constexpr Holder left = Holder{1} << 30;
  static constexpr Holder flags = waiting | left;

  bool replace(Holder holder, Holder by, std::memory_order order) {
    Holder word = word_.load(std::memory_order_relaxed);
    while ((word & ~flags) == holder)
      if (word_.compare_exchange_weak(word, by, order, std::memory_order_relaxed)) return true;
    return false;
  }
  // The kernel waits on 32 bits: on the lower half of the word, which has the thread and the flags.
  std::uint32_t* futex() {
    constexpr bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    return reinterpret_cast<std::uint32_t*>(&word_) + (is_little ? 0 : 1);
  }
  /// Waits until another thread wakes this one, or for `wait_ns`. Returns true if the time has passed.
  bool wait(std::uint32_t seen) {
    const timespec most = {0, wait_ns};
    const int before = errno;
    const bool is_over =
        syscall(SYS_futex, futex(), FUTEX_WAIT, seen, &most, nullptr, 0) != 0 && errno == ETIMEDOUT;
    errno = before;
    return is_over;
  }
  void wake(int most) {
    const int before = errno;
    (void)syscall(SYS_futex, futex(), FUTEX_WAKE, most, nullptr, nullptr, 0);
    errno = before;
  }
  std::atomic<Holder> word_{0};
};

/// A size or position of a file in shared memory, together with a generation. A process reads the generation
/// before it works with the value. A process that takes the lock of the value from another one raises the
/// generation. So a process that was stopped, and lost its lock, cannot set the value when it goes on: its
/// generation is an old one.
class FencedValue {
 public:
  std::int64_t load() const { return value_of(word_.load()); }
  operator std::int64_t() const { return load(); }
  [[nodiscard]] std::uint32_t generation() const { return generation_of(word_.load()); }
  /// Raises the generation: processes that have worked with the value so far cannot set it any more.
  void fence() {
    std::uint64_t word = word_.load();
    while (!word_.compare_exchange_weak(word, joined(generation_of(word) + 1, value_of(word)))) continue;
  }
  /// Sets the value, and raises the generation.
  void set(std::int64_t value) {
    std::uint64_t word = word_.load();
    while (!word_.compare_exchange_weak(word, joined(generation_of(word) + 1, value))) continue;
  }
  /// Makes the value at least `to`.
  void raise(std::int64_t to) {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (value_of(word) < to && !word_.compare_exchange_weak(word, joined(generation_of(word), to)))
      continue;
  }
  /// Set the value, or make it at least `to`, unless the generation is not `generation` any more. Return
  /// false in this case.
  bool set_in(std::uint32_t generation, std::int64_t value) {
    std::uint64_t word = word_.load();
    while (generation_of(word) == generation)
      if (word_.compare_exchange_weak(word, joined(generation, value))) return true;
    return false;
  }
  bool raise_in(std::uint32_t generation, std::int64_t to) {
    std::uint64_t word = word_.load();
    while (generation_of(word) == generation)
      if (value_of(word) >= to || word_.compare_exchange_weak(word, joined(generation, to))) return true;
    return false;
  }

 private:
  static constexpr int value_bits = 56;
  static std::int64_t value_of(std::uint64_t word) {
    return static_cast<std::int64_t>(word & ((std::uint64_t{1} << value_bits) - 1));
  }
  static std::uint32_t generation_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> value_bits);
  }
  static std::uint64_t joined(std::uint32_t generation, std::int64_t value) {
    return (std::uint64_t{generation} << value_bits) | static_cast<std::uint64_t>(value);
  }
  std::atomic<std::uint64_t> word_{0};
};

}  // namespace tailrace::run
