// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "process_lock.hpp"

/// The memory that a keeper shares with the programs into which `tailrace run` preloads its library. The
/// keeper, a process, makes the memory. The keeper alone brings pages in, stores them and takes frames away.
/// A program looks a page up, and copies from or to it under the frame's lock. So a program that is killed
/// can break only the bytes that it was copying. A program that is stopped loses its locks to processes that
/// need them; when it goes on, it repeats what it was doing.
namespace tailrace::run {

/// The number of no file, description, frame or process.
constexpr std::uint32_t nobody = ~std::uint32_t{0};
constexpr std::uint32_t most_files = 1024;
constexpr std::uint32_t most_descriptions = 4096;
constexpr std::uint32_t most_processes = 1024;
/// The keeper's number as a holder of locks, and the number of all processes that the keeper does not know.
constexpr std::uint32_t keeper_process = most_processes;
constexpr std::uint32_t unknown_process = most_processes + 1;
/// A frame's key has the file's number in the upper bits, and the page's number in this many lower bits.
constexpr int key_shift = 44;
constexpr std::uint64_t no_key = ~std::uint64_t{0};
constexpr std::uint64_t key_of(std::uint32_t file, std::uint64_t page) {
  return (std::uint64_t{file} << key_shift) | page;
}
/// Every byte of a file lies before this one, so that a key has room for the numbers of pages of 4 KiB.
constexpr std::int64_t most_bytes = std::int64_t{1} << 55;

/// A file that --shared names and some process has open. It is known by its device and inode number.
struct alignas(64) File {
  std::atomic<bool> is_open{false};
  std::atomic<std::uint64_t> device{0};
  std::atomic<std::uint64_t> inode{0};
  FencedValue size;
  std::atomic<std::int64_t> changed_ns{0};  // last write, in ns since 1970; 0: none since the open
  ProcessLock append;                       // a program has it while it appends
};

/// An open file description (POSIX). All descriptors that were duplicated or inherited from one another share
/// one.
struct alignas(64) Description {
  std::atomic<std::uint64_t> inode{0};  // of its placeholder; 0: the description is free
  std::atomic<std::uint32_t> file{nobody};
  std::atomic<int> flags{0};
  ProcessLock lock;  // guards the offset; a program has it during a read or write at the offset
  FencedValue offset;
};

/// Counts of the calls of one process. They lie here so that the keeper can read them after the process was
/// killed.
struct alignas(64) Counters {
  std::atomic<std::uint32_t> epoch{0};  // how many processes had this number before, and have ended
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> read_bytes{0};
  std::atomic<std::uint64_t> written_bytes{0};
  std::atomic<std::uint64_t> others{0};
  std::atomic<std::uint64_t> locks_refused{0};
  std::atomic<std::uint64_t> maps_refused{0};
  std::atomic<std::uint64_t> others_refused{0};
};

/// Memory for one page.
struct alignas(64) Frame {
  std::atomic<std::uint64_t> key{no_key};
  std::atomic<std::uint32_t> next{nobody};  // in the chain of its bucket
  std::atomic<bool> is_changed{false};
  std::atomic<bool> is_used{false};  // the page was used since the keeper last looked for a frame here
  ProcessLock lock;
  // The lock guards the following members, which count bytes from the page's beginning. A writer extends the
  // changed bytes before it copies. So the bytes that it has copied are stored even if it is killed.
  std::uint32_t loaded_from = 0;  // the bytes from here to before loaded_to are in memory, and no others
  std::uint32_t loaded_to = 0;
  std::uint32_t changed_from = 0;
  std::uint32_t changed_to = 0;
  std::uint32_t reserved = 0;  // storage has room for the bytes before this one
};

/// The head of the memory. The buckets, the frames and the bytes of pages follow at `buckets_at`, `frames_at`
/// and `bytes_at`, in bytes from the head.
struct Arena {
  std::uint64_t page_bytes = 0;
  std::uint32_t page_shift = 0;
  std::uint32_t frames = 0;
  std::uint32_t bucket_mask = 0;
  std::uint64_t buckets_at = 0;
  std::uint64_t frames_at = 0;
  std::uint64_t bytes_at = 0;
  std::uint64_t total_bytes = 0;
  std::atomic<std::uint32_t> files_used{0};       // files from this number on were never open
  std::atomic<bool> has_told_of_programs{false};  // exec.cpp has printed its warning
  File files[most_files];
  Description descriptions[most_descriptions];
  Counters processes[most_processes];

  [[nodiscard]] std::byte* base() { return reinterpret_cast<std::byte*>(this); }
  [[nodiscard]] std::atomic<std::uint32_t>& bucket_of(std::uint64_t key) {
    // Pages that follow one another have buckets that follow one another.
    const std::uint64_t mixed = key + (key >> key_shift) * 0x9E3779B1U;
    return reinterpret_cast<std::atomic<std::uint32_t>*>(base() + buckets_at)[mixed & bucket_mask];
  }
  [[nodiscard]] Frame& frame(std::uint32_t number) {
    return reinterpret_cast<Frame*>(base() + frames_at)[number];
  }
  [[nodiscard]] std::byte* bytes_of(std::uint32_t number) {
    return base() + bytes_at + (std::uint64_t{number} << page_shift);
  }
  /// Returns the frame that has the page, or `nobody`. The keeper may change the chain meanwhile. So the
  /// caller must compare the frame's key again under the frame's lock, and ask the keeper for a page that it
  /// does not find.
  [[nodiscard]] std::uint32_t find(std::uint64_t key) {
    std::uint32_t number = bucket_of(key).load(std::memory_order_acquire);
    for (std::uint32_t steps = 0; number < frames && steps < frames; ++steps) {
      Frame& here = frame(number);
      if (here.key.load(std::memory_order_acquire) == key) return number;
      number = here.next.load(std::memory_order_acquire);
    }
    return nobody;
  }
  /// Returns the number of the open file, or `nobody`.
  [[nodiscard]] std::uint32_t find_file(std::uint64_t device, std::uint64_t inode) const {
    const std::uint32_t used = files_used.load(std::memory_order_acquire);
    for (std::uint32_t number = 0; number < used; ++number) {
      const File& file = files[number];
      if (file.is_open.load(std::memory_order_acquire) && file.inode == inode && file.device == device)
        return number;
    }
    return nobody;
  }
};

}  // namespace tailrace::run
