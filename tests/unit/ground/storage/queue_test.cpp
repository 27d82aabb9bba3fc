// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>

#include "ground/base/bytes.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/queue/write_queue.hpp"
#include "ground/storage/scratch.hpp"
#include "ground/storage/writer.hpp"

namespace tailrace::storage {
namespace {

/// Makes each write when somebody waits for it, of those that are under way the last one first. `result`
/// decides what a call writes or returns.
class LateQueue final : public WriteQueue {
 public:
  using Answer = std::function<ssize_t(int call, ssize_t size)>;
  explicit LateQueue(Answer answer) : answer_(std::move(answer)) {}
  [[nodiscard]] WriteWay way() const override { return WriteWay::io_uring; }
  void start(QueuedWrite& write) override {
    most = std::max(most, static_cast<int>(under_way_.size()) + 1);
    under_way_.push_back(&write);
  }
  void wait(const QueuedWrite& write) override {
    while (!write.is_over) {
      QueuedWrite& last = *under_way_.back();
      under_way_.pop_back();
      ssize_t size = 0;
      for (const iovec& part : last.parts) size += static_cast<ssize_t>(part.iov_len);
      EXPECT_LE(size, WriteQueue::most_at_once);
      EXPECT_LE(last.parts.size(), 1024U);
      last.result = answer_(++calls, size);
      if (last.result > 0) put(last);
      last.is_over = true;
    }
  }
  [[nodiscard]] bool is_idle() const { return under_way_.empty(); }

  int calls = 0;
  int most = 0;
  std::string file;

 private:
  void put(const QueuedWrite& write) {
    auto left = static_cast<std::size_t>(write.result);
    auto at = static_cast<std::size_t>(write.offset);
    for (const iovec& part : write.parts) {
      const std::size_t step = std::min(left, part.iov_len);
      if (file.size() < at + step) file.resize(at + step, '.');
      file.replace(at, step, static_cast<const char*>(part.iov_base), step);
      at += step;
      left -= step;
    }
  }

  const Answer answer_;
  std::vector<QueuedWrite*> under_way_;
};

/// Text that is nowhere the same.
std::string some_text(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (i * 7 + i / 1000) % 26);
  return text;
}

/// Cuts a text into parts of this size, with an empty one at the end.
std::vector<std::span<const std::byte>> parts_of(const std::string& text, std::size_t size) {
  std::vector<std::span<const std::byte>> parts;
  const auto all = std::as_bytes(std::span(text));
  for (std::size_t at = 0; at < all.size(); at += size)
    parts.push_back(all.subspan(at, std::min(size, all.size() - at)));
  parts.emplace_back();
  return parts;
}

ssize_t all_of(int, ssize_t size) { return size; }

TEST(storage_queue, a_long_write_is_cut_into_pieces_that_are_under_way_together) {
  const std::string text = some_text(5 * static_cast<std::size_t>(WriteQueue::most_at_once) / 2);
  for (const std::size_t size : {text.size(), std::size_t{1000}, std::size_t{999'999}}) {
    LateQueue queue(all_of);
    const auto write = start_queued_write(3, "a", parts_of(text, size), 5, queue);
    EXPECT_EQ(queue.calls, 0) << "nothing waits before finish()";
    EXPECT_EQ(write->way(), WriteWay::io_uring);
    EXPECT_TRUE(write->finish().is_ok());
    EXPECT_GE(queue.most, 3);
    EXPECT_TRUE(queue.file == "....." + text);
  }
}

TEST(storage_queue, short_and_interrupted_writes_go_on) {
  const std::string text = some_text(50'000);
  LateQueue queue([](int call, ssize_t size) -> ssize_t {
    if (call % 3 == 0) return call % 2 == 0 ? -EINTR : -EAGAIN;
    return (size + 1) / 2;
  });
  const auto write = start_queued_write(3, "a", parts_of(text, 777), 0, queue);
  EXPECT_TRUE(write->finish().is_ok());
  EXPECT_GT(queue.calls, 15);
  EXPECT_TRUE(queue.file == text);
}

TEST(storage_queue, a_write_that_is_interrupted_for_ever_or_moves_nothing_fails) {
  const std::string text = some_text(1000);
  for (const auto& [result, error] : {std::pair{-EINTR, EINTR}, {0, EIO}, {-ENOSPC, ENOSPC}}) {
    LateQueue queue([result = result](int, ssize_t) { return static_cast<ssize_t>(result); });
    const auto write = start_queued_write(3, "some/file", parts_of(text, 100), 7, queue);
    const Status status = write->finish();
    EXPECT_EQ(status.error_number(), error) << status.text();
    EXPECT_EQ(status.code(), error == ENOSPC ? Code::space : Code::io);
    EXPECT_NE(status.text().find("write of 1000 bytes at offset 7 of some/file"), std::string::npos)
        << status.text();
    EXPECT_EQ(write->finish().text(), status.text());
    EXPECT_TRUE(queue.is_idle());
  }
}

/// A piece in the middle fails: the others are waited for, since the system uses their bytes.
TEST(storage_queue, nothing_is_under_way_behind_a_failure) {
  const std::string text = some_text(6 * static_cast<std::size_t>(WriteQueue::most_at_once));
  for (int failing = 1; failing <= 6; ++failing) {
    LateQueue queue([failing](int call, ssize_t size) -> ssize_t { return call == failing ? -EIO : size; });
    auto write = start_queued_write(3, "a", parts_of(text, text.size()), 0, queue);
    EXPECT_EQ(write->finish().error_number(), EIO);
    EXPECT_TRUE(queue.is_idle());
    EXPECT_EQ(queue.calls, 6);
  }
  LateQueue queue(all_of);
  auto write = start_queued_write(3, "a", parts_of(text, text.size()), 0, queue);
  write.reset();
  EXPECT_TRUE(queue.is_idle()) << "nor behind a write that nobody finishes";
}

/// What this machine grants.
std::map<std::string, std::unique_ptr<WriteQueue>> real_queues() {
  std::map<std::string, std::unique_ptr<WriteQueue>> all;
  all["posix_aio"] = posix_aio_write_queue();
  Result<std::unique_ptr<WriteQueue>> ring = uring_write_queue();
  if (ring.is_ok())
    all["io_uring"] = *std::move(ring);
  else
    EXPECT_EQ(ring.status().code(), Code::unsupported) << ring.status().text();
  all["the first possible"] = write_queue();
  return all;
}

TEST(storage_queue, the_system_writes_all_parts_of_many_writes) {
  ScratchDirectory scratch;
  const std::string path = scratch.path() + "/a";
  const std::string text = some_text(3'000'000);
  for (const auto& [name, queue] : real_queues()) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ASSERT_GE(file, 0);
    std::vector<std::unique_ptr<StartedWrite>> writes;
    constexpr Bytes copies = 20;  // more than may be under way
    for (Bytes i = 0; i < copies; ++i)
      writes.push_back(start_queued_write(file, path, parts_of(text, i % 2 == 0 ? text.size() : 10'007),
                                          i * std::ssize(text), *queue));
    for (auto write = writes.rbegin(); write != writes.rend(); ++write)
      EXPECT_TRUE((*write)->finish().is_ok()) << name;
    EXPECT_EQ(writes[0]->way(), name == "posix_aio" ? WriteWay::posix_aio : writes[0]->way());
    EXPECT_NE(writes[0]->way(), WriteWay::calls) << name;
    std::string found(text.size(), ' ');
    for (Bytes i = 0; i < copies; ++i) {
      ASSERT_EQ(::pread(file, found.data(), found.size(), i * std::ssize(text)), std::ssize(text));
      EXPECT_TRUE(found == text) << name << ", copy " << i;
    }
    ::close(file);
  }
}

TEST(storage_queue, errors_of_the_system_reach_the_write) {
  const std::string text = some_text(100'000);
  for (const auto& [name, queue] : real_queues()) {
    const int full = ::open("/dev/full", O_RDWR);
    ASSERT_GE(full, 0);
    const auto write = start_queued_write(full, "/dev/full", parts_of(text, 1000), 0, *queue);
    const auto closed = start_queued_write(12345, "closed", parts_of(text, 1000), 0, *queue);
    const Status no_space = write->finish();
    EXPECT_EQ(no_space.code(), Code::space) << name << ": " << no_space.text();
    EXPECT_EQ(closed->finish().error_number(), EBADF) << name << ": " << closed->finish().text();
    ::close(full);
  }
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

/// Many files stay open. Those without bytes that no sync has covered have no ring.
TEST(storage_queue, a_sync_gives_the_ring_back) {
  ScratchDirectory scratch;
  const std::string path = scratch.path() + "/a";
  const auto target = posix_target();
  ASSERT_TRUE(create_empty(*target, path).is_ok());
  const std::string text = some_text(3000);
  const auto parts = parts_of(text, 1000);
  const auto writer = *open_overlapping_writer(*target, path);
  const std::ptrdiff_t before = open_descriptors();
  for (Bytes i = 0; i < 3; ++i) {
    const Extent extent{i * std::ssize(text), parts};
    const auto round = writer->begin(0, {&extent, 1});
    EXPECT_NE(round->way(), WriteWay::calls);
    EXPECT_TRUE(writer->sync().is_ok());
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_TRUE(round->finish().is_ok());
  }
  EXPECT_TRUE(writer->close().is_ok());
  EXPECT_TRUE(contents_of(*target, path) == text + text + text);
}

/// The throttle counts the bytes of writes that are under way, and each of them waits for its own.
TEST(storage_queue, throttled_writes_are_over_at_the_rate) {
  ScratchDirectory scratch;
  const std::string path = scratch.path() + "/a";
  const auto target = throttled_target(posix_target(), {.bytes_per_second = 1e6});
  ASSERT_TRUE(create_empty(*target, path).is_ok());
  const std::string text = some_text(50'000);
  const auto parts = parts_of(text, 50'000);
  const auto begin = std::chrono::steady_clock::now();
  const auto writer = *open_overlapping_writer(*target, path);
  std::vector<std::unique_ptr<Round>> rounds;
  for (Bytes i = 0; i < 3; ++i) {
    const Extent extent{i * std::ssize(text), parts};
    rounds.push_back(writer->begin(0, {&extent, 1}));
  }
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (const auto& round : rounds) EXPECT_TRUE(round->finish().is_ok());
  EXPECT_GE(seconds(), 0.145);
  EXPECT_TRUE(writer->close().is_ok());
  EXPECT_TRUE(contents_of(*target, path) == text + text + text);
}

}  // namespace
}  // namespace tailrace::storage
