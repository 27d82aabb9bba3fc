// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/capture/capture_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace tailrace::capture {

namespace {

constexpr Bytes huge_page = Bytes{2} << 20;
/// For less memory than this prepare() does nothing: a thread would cost more than making the memory.
constexpr Bytes least_prepared = 4 * huge_page;
/// On so many pages touch() measures how fast huge pages come. One takes 0.1 ms if the machine has it at
/// hand, and 3 to 5 ms if the host of a virtual machine has taken it back.
constexpr int tried_pages = 4;
constexpr int pages_between_looks = 32;  // 64 MiB
constexpr auto slow_page = std::chrono::milliseconds(1);

Bytes in_huge_pages(Bytes bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

bool populate(std::byte* data, Bytes bytes) {
  return ::madvise(data, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0;
}

void write_all(std::byte* data, Bytes bytes) {
  for (Bytes at = 0; at < bytes; at += 4096) const_cast<volatile std::byte*>(data)[at] = std::byte{0};
}

void touch_all(std::byte* data, Bytes bytes) {
  if (!populate(data, bytes)) write_all(data, bytes);
}

/// Maps `size` bytes. Both `size` and the address are multiples of the size of a huge page. Returns nullptr
/// if the system does not give the memory.
std::byte* map_aligned(Bytes size) {
  const auto room = static_cast<std::size_t>(size + huge_page);
  void* const mapped =
      ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto unit = static_cast<std::uintptr_t>(huge_page);
  const std::size_t ahead = (unit - reinterpret_cast<std::uintptr_t>(begin) % unit) % unit;
  if (ahead > 0) ::munmap(begin, ahead);
  ::munmap(begin + ahead + size, static_cast<std::size_t>(huge_page) - ahead);
  ::madvise(begin + ahead, static_cast<std::size_t>(size), MADV_HUGEPAGE);
  return begin + ahead;
}

}  // namespace

CaptureMemory::~CaptureMemory() { release(); }

void CaptureMemory::release() {
  end_thread();
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(mapped_));
  data_ = nullptr;
  size_ = mapped_ = touched_ = 0;
  drawn_.give_back();
}

/// Grows in place while the reserved addresses suffice. Otherwise drops the pages and maps new addresses,
/// without mremap(2): before Linux 6.17, mremap(2) fails on pages of mixed sizes, and has unmapped the target
/// before it fails.
Status CaptureMemory::grow(Bytes size, Bytes room) {
  if (size > mapped_) release();
  TR_TRY(drawn_.take(size - size_));
  if (data_ == nullptr) {
    mapped_ = std::max(size, room);
    data_ = map_aligned(mapped_);
    if (data_ == nullptr) data_ = map_aligned(mapped_ = size);  // less: addresses may be limited
    if (data_ == nullptr) {
      mapped_ = 0;
      drawn_.give_back();
      return {Code::memory, "its process has no addresses left for them"};
    }
  }
  size_ = size;
  return {};
}

void CaptureMemory::shrink(Bytes size) {
  if (size == 0) return release();
  if (mapped_ > size) ::munmap(data_ + size, static_cast<std::size_t>(mapped_ - size));
  drawn_.give_back(size_ - size);
  size_ = mapped_ = size;
  touched_ = std::min<Bytes>(touched_, size);
}

void CaptureMemory::prepare(Bytes bytes, const std::function<Bytes()>& share) {
  const Bytes size = in_huge_pages(bytes);
  if (is_reserved_ || bytes < least_prepared || size <= size_) return;
  const Bytes most = share();
  if (size - touched_ > most) return;
  end_thread();
  const Bytes room = std::min(most, size > most / 4 ? size : 4 * size) / huge_page * huge_page;
  if (!grow(size, room).is_ok()) return;
  share_ = share;
  stop_ = false;
  Result<std::thread> started = start_thread([this] { run(); });
  if (started.is_ok()) thread_ = std::move(*started);  // otherwise touch() makes the memory
}

/// The thread of prepare(). It makes one page at a time: while the kernel makes a page, calls of the program
/// that change its mappings have to wait. It looks again and again at how much memory is left, because the
/// program takes memory, too.
void CaptureMemory::run() {
  for (int page = 1; !stop_ && touched_ < size_; ++page) {
    if (page % pages_between_looks == 0 && size_ - touched_ > share_()) return;
    if (!populate(data_ + touched_, huge_page)) {
      if (errno != EINVAL) return;             // no memory: the save's vote will say so
      write_all(data_ + touched_, huge_page);  // an older kernel
    }
    touched_ += huge_page;
  }
}

void CaptureMemory::await_prepared() {
  if (thread_.joinable()) thread_.join();
}

void CaptureMemory::end_thread() {
  stop_ = true;
  await_prepared();
}

Status CaptureMemory::reserve(Bytes bytes) {
  end_thread();
  const Bytes size = in_huge_pages(bytes);
  // The first save tells how much it really takes; prepare() was told an estimate.
  if (!std::exchange(is_reserved_, true) && size < size_) shrink(size);
  if (bytes <= touched_) return {};
  Status there = size <= size_ ? Status() : grow(size, size);
  available_ = node::available_memory();
  if (there.is_ok() && size_ - touched_ > available_)
    there = {Code::memory, cat("its node has ", size_text(available_), " available")};
  if (there.is_ok()) return {};
  release();
  return {Code::memory, cat("an asynchronous save captures ", size_text(bytes), " on this rank, but ",
                            there.text(), ": async=off saves without a capture")};
}

/// Makes the rest of the memory while the program waits. If huge pages come slowly, takes small pages for the
/// rest, because the machine has more of them at hand: 512 MiB took 0.13 s in place of 1.2 s.
void CaptureMemory::touch() {
  auto fastest = std::chrono::steady_clock::duration::max();  // a slower page may have waited for a core
  for (int tried = 0; tried < tried_pages && touched_ < size_; ++tried, touched_ += huge_page) {
    const auto began = std::chrono::steady_clock::now();
    touch_all(data_ + touched_, huge_page);
    fastest = std::min(fastest, std::chrono::steady_clock::now() - began);
  }
  const Bytes left = size_ - touched_;
  if (left == 0) return;
  const bool is_slow = fastest > slow_page;
  if (is_slow) ::madvise(data_ + touched_, static_cast<std::size_t>(left), MADV_NOHUGEPAGE);
  touch_all(data_ + touched_, left);
  touched_ = size_;
}

}  // namespace tailrace::capture
