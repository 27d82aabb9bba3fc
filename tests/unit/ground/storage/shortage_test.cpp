// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "ground/storage/posix.hpp"
#include "ground/storage/scratch.hpp"

namespace {

/// Allocations, of all threads, until one fails; negative: none fails.
std::atomic<int> allocations_left = -1;

}  // namespace

void* operator new(std::size_t size) {
  if (allocations_left.load() >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tailrace::storage {
namespace {

/// Storage on which fsync takes as long as on a disk, so that others are made side by side with it.
class SlowSystem final : public System {
 public:
  int fsync(int) override {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    return 0;
  }
};

/// Whichever allocation fails, the program goes on and hears of it, if the calls could not be made without.
TEST(posix_shortage, of_memory_is_told_by_calls_that_are_made_side_by_side) {
  const ScratchDirectory scratch;
  const std::vector<std::string> paths(40, scratch / "name-beyond-those-that-a-string-holds-in-itself");
  int told = 0;
  for (int nth = 0;; ++nth) {
    PosixTarget target(std::make_shared<SlowSystem>());
    allocations_left = nth;
    const Status status = target.sync_directories_of(paths);
    const bool failed = allocations_left.exchange(-1) < 0;
    if (!status.is_ok())
      EXPECT_EQ(status.code(), Code::memory) << "allocation " << nth << ": " << status.text();
    told += status.is_ok() ? 0 : 1;
    if (failed) continue;
    EXPECT_TRUE(status.is_ok());
    EXPECT_GT(told, 40) << "each of the calls allocates";
    return;
  }
}

}  // namespace
}  // namespace tailrace::storage
