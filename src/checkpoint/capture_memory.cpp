// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint/capture_memory.hpp"

#include <sys/mman.h>

#include "base/text.hpp"
#include "comm/available_memory.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace tailrace::checkpoint {

namespace {

constexpr Bytes huge_page = Bytes{2} << 20;

void touch_all(std::byte* data, Bytes bytes) {
  if (::madvise(data, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0) return;
  for (Bytes at = 0; at < bytes; at += 4096) const_cast<volatile std::byte*>(data)[at] = std::byte{0};
}

}  // namespace

CaptureMemory::~CaptureMemory() { release(); }

void CaptureMemory::release() {
  if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(size_));
  data_ = nullptr;
  size_ = touched_ = 0;
}

Status CaptureMemory::reserve(Bytes bytes) {
  if (bytes <= touched_) return {};
  if (bytes > size_) release();
  available_ = comm::available_memory();
  if (bytes <= size_) return {};
  const Bytes size = (bytes + huge_page - 1) / huge_page * huge_page;
  const auto refused = [&] {
    return Status(Code::memory,
                  cat("an asynchronous save captures ", counted(bytes, "byte"), " on this rank, of which ",
                      available_, " are to be had on its node: async=off saves without a capture"));
  };
  if (size > available_) return refused();
  void* const memory = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return refused();
  data_ = static_cast<std::byte*>(memory);
  size_ = size;
  ::madvise(memory, static_cast<std::size_t>(size), MADV_HUGEPAGE);
  return {};
}

void CaptureMemory::touch() {
  if (touched_ < size_) touch_all(data_, size_);
  touched_ = size_;
}

}  // namespace tailrace::checkpoint
