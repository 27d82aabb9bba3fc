// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "process_lock.hpp"

/// The memory that `tailrace run` shares with the programs it preloads its library into. One process, the
/// keeper, makes it, and alone brings pages in, stores them and takes frames away. The programs look pages up
/// and copy from and to them under the frame's lock. A program that is killed can therefore break nothing but
/// the bytes it was copying. One that is stopped loses its locks to whoever needs them, and does what it was
/// doing again when it goes on.
namespace tailrace::run {

/// No file, description, frame or process.
constexpr std::uint32_t nobody = ~std::uint32_t{0};
constexpr std::uint32_t most_files = 1024;
constexpr std::uint32_t most_descriptions = 4096;
constexpr std::uint32_t most_processes = 1024;
/// The keeper's number among holders of locks. Those above it are of processes that the keeper does not know.
constexpr std::uint32_t keeper_process = most_processes;
constexpr std::uint32_t unknown_process = most_processes + 1;
/// A frame's key is the file's number in the upper bits, and the page's in these lower ones.
constexpr int key_shift = 44;
constexpr std::uint64_t no_key = ~std::uint64_t{0};
constexpr std::uint64_t key_of(std::uint32_t file, std::uint64_t page) {
  return (std::uint64_t{file} << key_shift) | page;
}
/// The last byte of a file lies before this one: its page then fits into a key for pages of 4 KiB.
constexpr std::int64_t most_bytes = std::int64_t{1} << 55;

/// A matching file that some process has open. Its device and inode number name it.
struct alignas(64) File {
  std::atomic<bool> is_open{false};
  std::atomic<std::uint64_t> device{0};
  std::atomic<std::uint64_t> inode{0};
  FencedValue size;
  std::atomic<std::int64_t> changed_ns{
      0};              // when it was written last, in ns since 1970; 0: not since it was opened
  ProcessLock append;  // appends follow one another
};

/// An open file description (POSIX): it belongs to all descriptors that were duplicated or inherited from
/// one another.
struct alignas(64) Description {
  std::atomic<std::uint64_t> inode{0};  // of its placeholder; 0: unused
  std::atomic<std::uint32_t> file{nobody};
  std::atomic<int> flags{0};
  ProcessLock lock;  // for the offset, from before a read or write until after it
  FencedValue offset;
};

/// The calls of one process. The keeper can read them when the process is killed.
struct alignas(64) Counters {
  std::atomic<std::uint32_t> epoch{0};  // how many processes that have ended had this number
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
  std::atomic<bool> is_used{false};  // since the clock's hand passed
  ProcessLock lock;
  // The lock guards these. Bytes count from the page's beginning. A writer says first what it will change, so
  // that nothing that it has copied is lost if it does not come to the end.
  std::uint32_t loaded_from = 0;  // only these bytes are here: the rest is still to be read
  std::uint32_t loaded_to = 0;
  std::uint32_t changed_from = 0;
  std::uint32_t changed_to = 0;
  std::uint32_t reserved = 0;  // storage has room for the bytes before this one
};

/// The head of the memory. Buckets, frames and the bytes of pages follow, at these offsets in bytes.
struct Arena {
  std::uint64_t page_bytes = 0;
  std::uint32_t page_shift = 0;
  std::uint32_t frames = 0;
  std::uint32_t bucket_mask = 0;
  std::uint64_t buckets_at = 0;
  std::uint64_t frames_at = 0;
  std::uint64_t bytes_at = 0;
  std::uint64_t total_bytes = 0;
  std::atomic<std::uint32_t> files_used{0};       // files from this one on were never open
  std::atomic<bool> has_told_of_programs{false};  // that take no preloaded library
  File files[most_files];
  Description descriptions[most_descriptions];
  Counters processes[most_processes];

  [[nodiscard]] std::byte* base() { return reinterpret_cast<std::byte*>(this); }
  [[nodiscard]] std::atomic<std::uint32_t>& bucket_of(std::uint64_t key) {
    // Pages that follow one another have buckets that do.
    const std::uint64_t mixed = key + (key >> key_shift) * 0x9E3779B1U;
    return reinterpret_cast<std::atomic<std::uint32_t>*>(base() + buckets_at)[mixed & bucket_mask];
  }
  [[nodiscard]] Frame& frame(std::uint32_t number) {
    return reinterpret_cast<Frame*>(base() + frames_at)[number];
  }
  [[nodiscard]] std::byte* bytes_of(std::uint32_t number) {
    return base() + bytes_at + (std::uint64_t{number} << page_shift);
  }
  /// Returns the frame that has the page, or nobody. The keeper may change the chain meanwhile: a caller must
  /// look at the key again under the frame's lock, and ask the keeper if the page is not there.
  [[nodiscard]] std::uint32_t find(std::uint64_t key) {
    std::uint32_t number = bucket_of(key).load(std::memory_order_acquire);
    for (std::uint32_t steps = 0; number < frames && steps < frames; ++steps) {
      Frame& here = frame(number);
      if (here.key.load(std::memory_order_acquire) == key) return number;
      number = here.next.load(std::memory_order_acquire);
    }
    return nobody;
  }
  /// Returns the number of the open file, or nobody.
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
