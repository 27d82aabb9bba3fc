// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Memory captured while it is written to: by stores, by system calls, by another process; memory that goes
// away meanwhile; memory that cannot be protected. If the system gives no protection, only that is tested.
#include "faces/checkpoint/capture/copy_on_write.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#include "faces/checkpoint/capture/memory_kind.hpp"
#include "faces/checkpoint/mirror.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::checkpoint {
namespace {

constexpr Bytes unit = capture::CopyOnWrite::unit;

/// Whole units, aligned to them.
class Memory {
 public:
  explicit Memory(int units, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int descriptor = -1)
      : bytes_(units * unit),
        mapped_(::mmap(nullptr, static_cast<std::size_t>(bytes_ + unit), PROT_READ | PROT_WRITE, flags,
                       descriptor, 0)) {
    EXPECT_NE(mapped_, MAP_FAILED);
    const auto at = reinterpret_cast<std::uintptr_t>(mapped_);
    begin_ = static_cast<std::byte*>(mapped_) + (unit - static_cast<Bytes>(at % unit)) % unit;
  }
  ~Memory() { ::munmap(mapped_, static_cast<std::size_t>(bytes_ + unit)); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] std::byte* at(int number) const { return begin_ + number * unit; }
  void fill(int value) const { std::memset(begin_, value, static_cast<std::size_t>(bytes_)); }
  [[nodiscard]] bool holds(int value) const {
    return std::all_of(begin_, begin_ + bytes_, [&](std::byte each) { return each == std::byte(value); });
  }

 private:
  Bytes bytes_;
  void* mapped_;
  std::byte* begin_;
};

class CopyOnWriteTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<capture::CopyOnWrite>> made = capture::CopyOnWrite::create();
    if (!made.is_ok()) GTEST_SKIP() << made.status().text();
    capture_ = std::move(*made);
  }
  void begin() {
    const Status begun = capture_->begin({{program_.begin(), program_.bytes(), image_.begin()}});
    ASSERT_TRUE(begun.is_ok()) << begun.text();
  }
  std::unique_ptr<capture::CopyOnWrite> capture_;
  Memory program_{16}, image_{16};
};

/// Stops the copier at a unit, by protecting the place that it copies to.
class Stopped {
 public:
  Stopped(const std::byte* place, Bytes bytes)
      : place_(place), bytes_(bytes), faults_(*capture::Userfault::open()) {
    EXPECT_TRUE(faults_.protect(place, bytes).is_ok());
  }
  /// Waits until the copier has come to the unit where it stops.
  void wait() {
    while (!faults_.next()) std::this_thread::yield();
  }
  void go_on() { faults_.release(place_, bytes_); }

 private:
  const std::byte* place_;
  Bytes bytes_;
  capture::Userfault faults_;
};

/// Calls madvise(MADV_DONTNEED) in a thread, which waits in there until the copier has heard of it.
class Discarding {
 public:
  explicit Discarding(std::byte* at)
      : thread_([this, at] {
          number_ = static_cast<int>(::gettid());
          ::madvise(at, static_cast<std::size_t>(unit), MADV_DONTNEED);
          number_ = 0;
        }) {
    while (number_ < 0) std::this_thread::yield();
    while (number_ > 0 && state() != 'S' && state() != 'D') std::this_thread::yield();
  }
  void join() { thread_.join(); }

 private:
  [[nodiscard]] char state() const {
    std::ifstream file("/proc/self/task/" + std::to_string(number_) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');
    return name_end == std::string::npos ? '?' : text[name_end + 2];
  }
  std::atomic<int> number_{-1};
  std::thread thread_;
};

TEST_F(CopyOnWriteTest, StoresBehindAndBeforeTheCopier) {
  for (const bool backwards : {false, true}) {
    program_.fill(1);
    image_.fill(0);
    begin();
    for (int u = 0; u < 16; ++u)
      std::memset(program_.at(backwards ? 15 - u : u), 2, static_cast<std::size_t>(unit));
    ASSERT_TRUE(capture_->wait().is_ok());
    EXPECT_TRUE(image_.holds(1));
    EXPECT_TRUE(program_.holds(2));
  }
}

TEST_F(CopyOnWriteTest, StoresOfManyThreadsToOneUnit) {
  program_.fill(1);
  begin();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int u = 15; u >= 0; --u) program_.at(u)[t * 4096] = std::byte(7);
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(capture_->wait().is_ok());
  EXPECT_TRUE(image_.holds(1));
}

TEST_F(CopyOnWriteTest, AWriterWaitsForItsUnitAlone) {
  program_.fill(1);
  image_.fill(0);
  Stopped stopped(image_.at(5), unit);
  begin();
  stopped.wait();
  // The units before are copied, and the copier stands at the sixth: no write to these may wait.
  std::memset(program_.at(0), 2, static_cast<std::size_t>(5 * unit));
  stopped.go_on();
  program_.at(5)[0] = std::byte(2);
  ASSERT_TRUE(capture_->wait().is_ok());
  EXPECT_TRUE(image_.holds(1));
}

TEST_F(CopyOnWriteTest, SystemCallsThatWrite) {
  program_.fill(1);
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  begin();
  for (int u = 15; u >= 0; --u)
    EXPECT_EQ(::read(zeros, program_.at(u), static_cast<std::size_t>(unit)), unit) << std::strerror(errno);
  ::close(zeros);
  ASSERT_TRUE(capture_->wait().is_ok());
  EXPECT_TRUE(image_.holds(1));
  EXPECT_TRUE(program_.holds(0));
}

TEST_F(CopyOnWriteTest, WritesOfAnotherProcess) {
  program_.fill(1);
  begin();
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    // The child's own writes are its own: nobody may keep it waiting.
    program_.at(3)[0] = std::byte(9);
    static char bytes[4096] = {};
    bool done = true;
    for (int u = 15; u >= 0; --u) {
      const iovec from{bytes, sizeof bytes};
      const iovec to{program_.at(u), sizeof bytes};
      done = ::process_vm_writev(parent, &from, 1, &to, 1, 0) == sizeof bytes && done;
    }
    ::_exit(done ? 0 : 1);
  }
  int ended = -1;
  ::waitpid(child, &ended, 0);
  EXPECT_EQ(ended, 0);
  ASSERT_TRUE(capture_->wait().is_ok());
  EXPECT_TRUE(image_.holds(1));
  EXPECT_EQ(program_.at(3)[0], std::byte(0));
}

TEST_F(CopyOnWriteTest, MemoryThatWasNeverTouched) {
  image_.fill(9);
  begin();
  program_.fill(5);
  ASSERT_TRUE(capture_->wait().is_ok());
  EXPECT_TRUE(image_.holds(0));
}

TEST_F(CopyOnWriteTest, AgainAndAgainOverSeveralRanges) {
  for (int round = 1; round < 6; ++round) {
    program_.fill(round);
    ASSERT_TRUE(capture_
                    ->begin({{program_.at(0), 3 * unit, image_.at(0)},
                             {program_.at(5), unit, image_.at(5)},
                             {program_.at(9), 7 * unit, image_.at(9)}})
                    .is_ok());
    program_.fill(99);
    ASSERT_TRUE(capture_->wait().is_ok());
    for (const int u : {0, 2, 5, 9, 15}) EXPECT_EQ(image_.at(u)[unit - 1], std::byte(round));
    EXPECT_EQ(image_.at(4)[0], std::byte(0));
  }
}

TEST_F(CopyOnWriteTest, WhenOneRangeIsRefusedNoneIsProtected) {
  capture::Userfault other = *capture::Userfault::open();
  ASSERT_TRUE(other.protect(program_.at(8), unit).is_ok());  // does what a debugger or another library would
                                                             // do
  const Status status =
      capture_->begin({{program_.at(0), 4 * unit, image_.at(0)}, {program_.at(8), unit, image_.at(8)}});
  EXPECT_EQ(status.code(), Code::unsupported);
  other.release(program_.at(8), unit);
  program_.fill(2);
  begin();
  EXPECT_TRUE(capture_->wait().is_ok());
  EXPECT_TRUE(image_.holds(2));
}

TEST_F(CopyOnWriteTest, NothingToCopy) {
  EXPECT_TRUE(capture_->begin({}).is_ok());
  EXPECT_TRUE(capture_->wait().is_ok());
}

TEST_F(CopyOnWriteTest, MemoryUnmappedTooEarlyIsTold) {
  Memory gone(4);
  gone.fill(1);
  Stopped stopped(image_.at(1), unit);
  ASSERT_TRUE(capture_->begin({{gone.begin(), gone.bytes(), image_.begin()}}).is_ok());
  stopped.wait();
  ::munmap(gone.at(3), static_cast<std::size_t>(unit));
  // The same address is mapped again, with other memory.
  ::mmap(gone.at(3), static_cast<std::size_t>(unit), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  stopped.go_on();
  const Status status = capture_->wait();
  EXPECT_EQ(status.code(), Code::argument);
  EXPECT_NE(status.text().find("must stay"), std::string::npos) << status.text();
  program_.fill(3);
  begin();  // the next capture is not concerned
  EXPECT_TRUE(capture_->wait().is_ok());
  EXPECT_TRUE(image_.holds(3));
}

TEST_F(CopyOnWriteTest, WhatIsLeftOfUnmappedMemoryIsLetOn) {
  Memory gone(4);
  gone.fill(1);
  std::FILE* const file = std::tmpfile();
  ASSERT_EQ(::ftruncate(::fileno(file), unit), 0);
  Stopped stopped(image_.at(0), unit);
  ASSERT_TRUE(capture_->begin({{gone.begin(), gone.bytes(), image_.begin()}}).is_ok());
  stopped.wait();
  // Memory that cannot be protected, amid memory that is.
  ::mmap(gone.at(1) + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ::fileno(file), 0);
  std::fclose(file);
  stopped.go_on();
  EXPECT_EQ(capture_->wait().code(), Code::argument);
  gone.fill(2);  // nobody waits
  EXPECT_TRUE(gone.holds(2));
}

TEST_F(CopyOnWriteTest, MemoryNoLongerThereIsTold) {
  Memory gone(4);
  gone.fill(1);
  Stopped stopped(image_.at(1), unit);
  ASSERT_TRUE(capture_->begin({{gone.begin(), gone.bytes(), image_.begin()}}).is_ok());
  stopped.wait();
  ::munmap(gone.at(2), static_cast<std::size_t>(unit));
  stopped.go_on();
  EXPECT_EQ(capture_->wait().code(), Code::argument);
}

TEST_F(CopyOnWriteTest, MemoryDiscardedTooEarlyIsTold) {
  program_.fill(1);
  Stopped stopped(image_.at(1), unit);
  begin();
  stopped.wait();
  Discarding discarding(program_.at(12));
  stopped.go_on();
  discarding.join();  // waits until the copier has heard of it, and no longer
  EXPECT_EQ(capture_->wait().code(), Code::argument);
}

TEST_F(CopyOnWriteTest, MemoryDiscardedAfterItsCopyIsNoMatter) {
  program_.fill(1);
  Stopped stopped(image_.at(5), unit);
  begin();
  stopped.wait();
  Discarding discarding(program_.at(2));
  stopped.go_on();
  discarding.join();
  ASSERT_TRUE(capture_->wait().is_ok());
  EXPECT_TRUE(image_.holds(1));
  EXPECT_EQ(program_.at(2)[0], std::byte(0));
}

class MemoryKindTest : public testing::Test {
 protected:
  static Status check(const std::byte* begin, Bytes bytes) {
    const capture::MemoryRange range{begin, bytes};
    return capture::check_private({&range, 1});
  }
};

TEST_F(MemoryKindTest, PrivateMemory) {
  const Memory memory(2);
  EXPECT_TRUE(check(memory.begin(), memory.bytes()).is_ok());
}

TEST_F(MemoryKindTest, WhatIsRefused) {
  const Memory shared(2, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_NE(check(shared.begin(), unit).text().find("shared"), std::string::npos);
  const int file = ::memfd_create("tailrace", 0);
  ASSERT_EQ(::ftruncate(file, 3 * unit), 0);
  const Memory of_file(2, MAP_PRIVATE, file);
  ::close(file);
  EXPECT_NE(check(of_file.begin(), unit).text().find("file"), std::string::npos);
  const std::byte local{};
  EXPECT_NE(check(&local, 1).text().find("stack"), std::string::npos);
  Memory gap(4);
  ::munmap(gap.at(1), static_cast<std::size_t>(unit));
  EXPECT_NE(check(gap.begin(), gap.bytes()).text().find("not there"), std::string::npos);
  Memory read_only(2);
  ::mprotect(read_only.begin(), static_cast<std::size_t>(unit), PROT_READ);
  EXPECT_NE(check(read_only.begin(), unit).text().find("not readable and writable"), std::string::npos);
}

#if __has_include(<linux/io_uring.h>)
TEST_F(MemoryKindTest, MemoryRegisteredWithADevice) {
  EXPECT_TRUE(capture::check_not_registered().is_ok());
  const Memory memory(1);
  memory.fill(1);
  io_uring_params parameters{};
  const long ring = ::syscall(SYS_io_uring_setup, 1, &parameters);
  if (ring < 0) GTEST_SKIP() << "io_uring: " << std::strerror(errno);
  const iovec buffer{memory.begin(), 65536};
  const long registered = ::syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1);
  const Status status = capture::check_not_registered();
  ::close(static_cast<int>(ring));
  if (registered < 0) GTEST_SKIP() << "io_uring: " << std::strerror(errno);
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.text().find("registered"), std::string::npos) << status.text();
}
#endif

/// Protection under which the kernel's writes fail is not taken.
TEST(UserfaultTest, WithoutPrivilegesItIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give up privileges";
  std::ifstream setting("/proc/sys/vm/unprivileged_userfaultfd");
  if (char value = '0'; setting >> value && value != '0') GTEST_SKIP() << "everybody may";
  if (struct stat device{}; ::stat("/dev/userfaultfd", &device) == 0 && (device.st_mode & 0006) == 0006)
    GTEST_SKIP() << "everybody may open /dev/userfaultfd";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(2);
    const Result<capture::Userfault> made = capture::Userfault::open();
    ::_exit(!made.is_ok() && made.status().code() == Code::unsupported &&
                    made.status().text().find("CAP_SYS_PTRACE") != std::string::npos
                ? 0
                : 1);
  }
  int ended = -1;
  ::waitpid(child, &ended, 0);
  EXPECT_EQ(ended, 0);
}

class MirrorTest : public CopyOnWriteTest {
 protected:
  /// An array of one rank with `halo` around it, somewhere in memory.
  struct Field {
    Field(std::vector<Index> shape, Index halo, std::size_t shift)
        : layout(*layout::Layout::block(shape, 1)), halos(shape.size(), halo) {
      Index all = 1;
      for (const Index extent : shape) all *= extent + 2 * halo;
      values.resize(static_cast<std::size_t>(all) + shift);
      array.data = reinterpret_cast<std::byte*>(values.data() + shift);
      array.layout = &layout;
      array.halo = &halos;
    }
    layout::Layout layout;
    std::vector<Index> halos;
    std::vector<double> values;
    arrays::Array array;
  };
  static ByteVector packed(const SaveItem& item) {
    ByteVector bytes(static_cast<std::size_t>(item.owned.bytes()));
    item.owned.packed.gather(item.data, 0, item.owned.bytes(), bytes.data());
    return bytes;
  }
  static SaveItem item_of(const arrays::Array& array) {
    return {{}, *arrays::find_owned(array, 0), array.data};
  }

  void expect_captured(std::vector<SaveItem> items, const std::function<void()>& spoil, Bytes most) {
    std::vector<ByteVector> before;
    for (const SaveItem& item : items) before.push_back(packed(item));
    const Mirror mirror(items);
    EXPECT_LE(mirror.bytes(), most);
    ByteVector memory(static_cast<std::size_t>(mirror.bytes()));
    const Status taken = mirror.take(items, memory.data(), *capture_);
    EXPECT_TRUE(taken.is_ok()) << taken.text();
    spoil();
    ASSERT_TRUE(capture_->wait().is_ok());
    for (std::size_t i = 0; i < items.size(); ++i) EXPECT_EQ(packed(items[i]), before[i]) << "item " << i;
  }
};

TEST_F(MirrorTest, LargeAndSmallItemsWithAndWithoutHalo) {
  std::vector<std::unique_ptr<Field>> fields;
  fields.push_back(std::make_unique<Field>(std::vector<Index>{1500, 1000}, 3, 11));
  fields.push_back(std::make_unique<Field>(std::vector<Index>{10, 10}, 1, 0));
  fields.push_back(std::make_unique<Field>(std::vector<Index>{1100, 1000}, 0, 5));
  std::vector<SaveItem> items;
  Bytes all = 0;
  for (auto& field : fields) {
    for (std::size_t i = 0; i < field->values.size(); ++i) field->values[i] = static_cast<double>(i) + 0.5;
    items.push_back(item_of(field->array));
    all += static_cast<Bytes>(field->values.size() * sizeof(double));
  }
  expect_captured(
      items,
      [&] {
        for (auto& field : fields) field->values.assign(field->values.size(), -1);
      },
      all + 4 * unit);
}

/// Two sections that share rows of one array, and one that leaves wide gaps.
TEST_F(MirrorTest, ItemsThatShareMemoryAndOneWithWideGaps) {
  Field field({3000, 1000}, 0, 3);
  for (std::size_t i = 0; i < field.values.size(); ++i) field.values[i] = static_cast<double>(i) * 2;
  std::vector<SaveItem> items;
  const auto section = [&](std::vector<Index> start, std::vector<Index> stop, std::vector<Index> stride) {
    arrays::Array array = field.array;
    array.section = layout::Section{std::move(start), std::move(stop), std::move(stride)};
    items.push_back(item_of(array));
  };
  section({0, 0}, {2000, 1000}, {1, 1});
  section({1500, 0}, {3000, 1000}, {1, 1});
  section({0, 0}, {3000, 800}, {1, 2});
  expect_captured(
      items, [&] { field.values.assign(field.values.size(), -1); },
      static_cast<Bytes>(field.values.size() * sizeof(double)) + 3000 * 400 * 8 + 4 * unit);
}

TEST_F(MirrorTest, WithoutProtectionAllIsCopiedAtOnce) {
  const Memory shared(8, MAP_SHARED | MAP_ANONYMOUS);
  shared.fill(4);
  Field field({1024, 2048}, 0, 0);
  field.array.data = shared.begin();
  std::vector<SaveItem> items{item_of(field.array)};
  const ByteVector before = packed(items[0]);
  const Mirror mirror(items);
  ByteVector memory(static_cast<std::size_t>(mirror.bytes()));
  EXPECT_EQ(mirror.take(items, memory.data(), *capture_).code(), Code::unsupported);
  shared.fill(0);
  EXPECT_TRUE(capture_->wait().is_ok());
  EXPECT_EQ(packed(items[0]), before);
}

}  // namespace
}  // namespace tailrace::checkpoint
