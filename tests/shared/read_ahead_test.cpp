// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Readers of a shared file that go forward find the next pages in memory. The program's own pread takes the
// place of that of the C library, also for the library under test: it tells which reads of storage the
// program waited for.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "files/fixture.hpp"

using namespace tailrace::files_test;

namespace {

/// The reads of one file by this process.
class Reads {
 public:
  static Reads& get() {
    static Reads one;
    return one;
  }
  /// Counts anew, for the calling thread and for all others. From here on a
  /// read of storage takes a millisecond.
  void watch(const std::string& path) {
    struct stat info {};
    ::stat(path.c_str(), &info);
    program_ = std::this_thread::get_id();
    delay_ms = 1;
    fails = Fails::none;
    own_calls = calls = watched_calls = 0;
    bytes = largest = end = 0;
    watched = -1;
    inode_ = info.st_ino;
  }
  void stop() { inode_ = 0; }
  /// Returns false if the call is to fail.
  bool enter(int descriptor, std::size_t size, off_t offset) {
    struct stat info {};
    if (inode_ == 0 || ::fstat(descriptor, &info) != 0 || info.st_ino != inode_) return true;
    const bool is_own = std::this_thread::get_id() == program_;
    ++calls;
    if (is_own) ++own_calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    if (fails == Fails::all || (fails == Fails::others && !is_own)) return false;
    const auto count = static_cast<tr_index>(size);
    bytes += count;
    if (largest < count) largest = count;
    if (end < offset + count) end = offset + count;
    if (offset <= watched && watched < offset + count) ++watched_calls;
    return true;
  }
  enum class Fails { none, others, all };
  std::atomic<Fails> fails{Fails::none};
  std::atomic<int> delay_ms{1};
  std::atomic<int> own_calls{0};
  std::atomic<int> calls{0};
  std::atomic<tr_index> bytes{0};
  std::atomic<tr_index> largest{0};
  std::atomic<tr_index> end{0};
  std::atomic<tr_index> watched{-1};  // a byte of the file
  std::atomic<int> watched_calls{0};

 private:
  std::atomic<ino_t> inode_{0};
  std::thread::id program_;
};

constexpr tr_index page = 64 * 1024;
constexpr tr_index pages = 96;
constexpr tr_index piece = 4096;

char byte_at(tr_index offset) { return static_cast<char>(offset / 7 + offset / page); }

std::string content(tr_index bytes) {
  std::string text(static_cast<std::size_t>(bytes), ' ');
  for (tr_index i = 0; i < bytes; ++i) text[static_cast<std::size_t>(i)] = byte_at(i);
  return text;
}

bool read_page(tr_shared* file, tr_index number) {
  std::string got(static_cast<std::size_t>(piece), '?');
  for (tr_index at = number * page; at < (number + 1) * page; at += piece) {
    tr_index count = 0;
    if (tr_shared_pread(file, got.data(), piece, at, &count) != TR_OK) return false;
    CHECK_EQ(count, piece);
    for (tr_index i = 0; i < piece; i += 97) CHECK_EQ(got[static_cast<std::size_t>(i)], byte_at(at + i));
  }
  return true;
}

/// Waits for something that another thread does.
bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// A file of each rank's own.
class OwnFile {
 public:
  OwnFile(const std::string& directory, const std::string& mode, const std::string& options = "page=64KiB")
      : path_(directory + "/file-" + std::to_string(rank())) {
    write_file(path_, content(pages * page));
    ok(tr_shared_open_comm(MPI_COMM_SELF, path_.c_str(), mode.c_str(), options.c_str(), &file_), "open");
    Reads::get().watch(path_);
  }
  ~OwnFile() { close(); }
  void close() {
    if (file_ != nullptr) ok(tr_shared_close(&file_), "close");
    Reads::get().stop();
  }
  [[nodiscard]] tr_shared* get() const { return file_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  tr_shared* file_ = nullptr;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) ssize_t pread(int descriptor, void* data, std::size_t size,
                                                                off_t offset) {
  using Function = ssize_t(int, void*, std::size_t, off_t);
  static auto* const real = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "pread"));
  if (Reads::get().enter(descriptor, size, offset)) return real(descriptor, data, size, offset);
  std::memset(data, '?', size);  // as a read that gets some, and then fails
  errno = EIO;
  return -1;
}

MPI_TEST(read_ahead, a_rank_that_reads_forward_waits_for_few_pages) {
  const std::string directory = fresh_directory("ahead-forward");
  const Session session;
  OwnFile file(directory, "r");
  Reads& reads = Reads::get();
  for (tr_index i = 0; i < pages; ++i) {
    CHECK(read_page(file.get(), i));
    if (i >= 1) CHECK(comes_true([&] { return reads.end >= std::min(i + 2, pages) * page; }));
  }
  CHECK(reads.own_calls <= pages / 8);
  CHECK(reads.calls <= pages / 3);  // many pages in each
  CHECK(reads.largest >= 4 * page);
  CHECK_EQ(reads.bytes.load(), pages * page);  // each page once
  file.close();
  remove_directory(directory);
}

/// A rank brings in its pages by itself if the system has the file in its cache. A rank that loses its core
/// early takes storage for slow, so the test has several tries.
MPI_TEST(read_ahead, storage_that_is_as_fast_as_memory_is_read_where_a_page_is_needed) {
  const std::string directory = fresh_directory("ahead-fast");
  const Session session;
  bool was_fast = false;
  for (int tries = 0; tries < 8 && !was_fast; ++tries) {
    OwnFile file(directory, "r");
    Reads::get().delay_ms = 0;
    for (tr_index i = 0; i < pages; ++i) CHECK(read_page(file.get(), i));
    CHECK_EQ(Reads::get().bytes.load(), pages * page);
    was_fast = Reads::get().own_calls == static_cast<int>(pages);
  }
  CHECK(was_fast);
  remove_directory(directory);
}

MPI_TEST(read_ahead, without_threads_nothing_is_read_ahead) {
  const std::string directory = fresh_directory("ahead-threads");
  const Session session("io_threads=0");
  OwnFile file(directory, "r");
  for (tr_index i = 0; i < pages; ++i) CHECK(read_page(file.get(), i));
  CHECK_EQ(Reads::get().own_calls.load(), static_cast<int>(pages));
  CHECK_EQ(Reads::get().calls.load(), static_cast<int>(pages));
  file.close();
  remove_directory(directory);
}

MPI_TEST(read_ahead, a_rank_that_jumps_reads_no_more_than_it_asks_for) {
  const std::string directory = fresh_directory("ahead-random");
  const Session session;
  OwnFile file(directory, "r");
  std::mt19937 random(static_cast<unsigned>(rank()));
  std::set<tr_index> seen;
  tr_index last = -1;
  for (int i = 0; i < 60; ++i) {
    const auto next = static_cast<tr_index>(random() % pages);
    if (next == last + 1) continue;  // not by chance either
    CHECK(read_page(file.get(), next));
    seen.insert(next);
    last = next;
  }
  for (tr_index i = pages; i-- > 0;) {  // nor backwards
    CHECK(read_page(file.get(), i));
    seen.insert(i);
    if (i == pages / 2) break;
  }
  file.close();
  CHECK_EQ(Reads::get().bytes.load(), std::ssize(seen) * page);
  remove_directory(directory);
}

/// Short ways forward are no sign of a long one: guesses become rare.
MPI_TEST(read_ahead, wrong_guesses_make_it_stop) {
  const std::string directory = fresh_directory("ahead-wrong");
  const Session session;
  OwnFile file(directory, "r", "page=4KiB");  // 1536 pages
  tr_index asked = 0;
  std::string got(4096, '?');
  for (tr_index from = 1000; from >= 0; from -= 25) {
    for (tr_index i = from; i < from + 4; ++i, ++asked)
      ok(tr_shared_pread(file.get(), got.data(), 4096, i * 4096, nullptr), "pread");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  file.close();
  CHECK(Reads::get().bytes <= (asked + 20) * 4096);
  remove_directory(directory);
}

MPI_TEST(read_ahead, errors_appear_where_the_page_is_read) {
  const std::string directory = fresh_directory("ahead-errors");
  const Session session;
  OwnFile file(directory, "r+");
  Reads& reads = Reads::get();
  reads.fails = Reads::Fails::others;
  for (tr_index i = 0; i < pages / 2; ++i) {
    CHECK(read_page(file.get(), i));
    if (i == 1) CHECK(comes_true([&] { return reads.calls > reads.own_calls; }));
  }
  CHECK_EQ(reads.own_calls.load(), static_cast<int>(pages / 2));
  reads.fails = Reads::Fails::all;
  std::string got(10, '?');
  CHECK_EQ(tr_shared_pread(file.get(), got.data(), 10, (pages - 1) * page, nullptr), TR_ERR_IO);
  reads.fails = Reads::Fails::none;
  for (tr_index i = pages + 1; i < pages + 9; ++i) {
    // Memory that a failed read has left holds no zeros.
    ok(tr_shared_pwrite(file.get(), "new", 3, i * page), "pwrite");
    ok(tr_shared_pread(file.get(), got.data(), 10, i * page - 7, nullptr), "pread");
    CHECK_EQ(got, std::string("\0\0\0\0\0\0\0new", 10));
    ok(tr_shared_pwrite(file.get(), "", 1, i * page + 100), "pwrite");
    ok(tr_shared_pread(file.get(), got.data(), 10, i * page + 3, nullptr), "pread");
    CHECK_EQ(got, std::string(10, '\0'));
  }
  for (tr_index i = pages / 2; i < pages; ++i) CHECK(read_page(file.get(), i));
  file.close();
  remove_directory(directory);
}

MPI_TEST(read_ahead, changed_pages_stay_in_memory) {
  const std::string directory = fresh_directory("ahead-changed");
  const Session session;
  OwnFile file(directory, "r+", "page=64KiB memory=2MiB");  // 32 pages, and a third of the file
  for (tr_index i = 0; i < 4; ++i) ok(tr_shared_pwrite(file.get(), "new", 3, i * page), "pwrite");
  for (int round = 0; round < 3; ++round) {
    for (tr_index i = 4; i < pages; ++i) {
      CHECK(read_page(file.get(), i));
      // As long as there are free frames the thread brings several pages in one read, once it has a core.
      if (i == 7) CHECK(comes_true([] { return Reads::get().largest > page; }));
    }
  }
  CHECK(contents(file.path()) == content(pages * page));
  CHECK(Reads::get().largest > page);
  std::string got(3, '?');
  for (tr_index i = 0; i < 4; ++i) {
    ok(tr_shared_pread(file.get(), got.data(), 3, i * page, nullptr), "pread");
    CHECK_EQ(got, std::string("new"));
  }
  file.close();
  remove_directory(directory);
}

/// Pages that are on their way while the file is cut, flushed or closed bring nothing back.
MPI_TEST(read_ahead, ends_before_the_file_is_cut_or_closed) {
  const std::string directory = fresh_directory("ahead-cut");
  const std::string path = directory + "/file";
  const Session session;
  std::mt19937 random(5);  // the same on all ranks
  if (rank() == 0) write_file(path, content(pages * page));
  for (int round = 0; round < 8; ++round) {
    MPI_Barrier(state().comm);
    tr_shared* file = nullptr;
    ok(tr_shared_open(path.c_str(), "r+", "page=64KiB", &file), "open");
    Reads::get().watch(path);
    Reads::get().delay_ms = 2;
    const auto last = static_cast<tr_index>(random() % (pages / 2));
    for (tr_index i = 0; i <= last; ++i) CHECK(read_page(file, i));
    if (round % 4 == 0) ok(tr_shared_flush(file), "flush");
    if (round % 2 == 0) {
      const tr_index size = (last + 2) * page + 100;
      ok(tr_shared_resize(file, size), "resize");
      ok(tr_shared_resize(file, pages * page), "resize");
      std::string got(static_cast<std::size_t>(10 * page), '?');
      tr_index count = 0;
      ok(tr_shared_pread(file, got.data(), 10 * page, size, &count), "pread");
      CHECK(got == std::string(got.size(), '\0'));
      ok(tr_shared_sync(file), "sync");
      const std::string rest = content(pages * page).substr(static_cast<std::size_t>(size));
      if (rank() == 0) ok(tr_shared_pwrite(file, rest.data(), std::ssize(rest), size), "pwrite");
    }
    ok(tr_shared_close(&file), "close");
    if (rank() == 0) CHECK(contents(path) == content(pages * page));
  }
  Reads::get().stop();
  remove_directory(directory);
}

/// A file of this rank's own that is larger than the memory kept from file to file: that is an eighth of the
/// node's budget, and frames are used again from half of it on.
constexpr tr_index large_pages = 1536;  // 96 MiB
constexpr const char* small_budget = "memory=256MiB";

/// Makes a file of zeros, and reads it, so that the system has it in its cache.
void make_cached_file(const std::string& path) {
  write_file(path, "");
  std::filesystem::resize_file(path, large_pages * page);
  std::ifstream in(path, std::ios::binary);
  std::string block(1 << 20, '?');
  while (in.read(block.data(), std::ssize(block))) continue;
}

class LargeFile {
 public:
  LargeFile(const std::string& directory, const std::string& mode, const std::string& options = "page=64KiB")
      : path_(directory + "/large-" + std::to_string(rank())), before_(shared_memory()) {
    if (mode == "r")
      make_cached_file(path_);
    else
      write_file(path_, "");
    ok(tr_shared_open_comm(MPI_COMM_SELF, path_.c_str(), mode.c_str(), options.c_str(), &file_), "open");
    Reads::get().watch(path_);
  }
  ~LargeFile() {
    if (file_ != nullptr) ok(tr_shared_close(&file_), "close");
    Reads::get().stop();
  }
  /// Returns the bytes of storage that were read for it.
  tr_index scan(const std::function<void(tr_index)>& meanwhile = nullptr) {
    const tr_index before = Reads::get().bytes;
    std::string got(static_cast<std::size_t>(page), '?');
    for (tr_index i = 0; i < large_pages; ++i) {
      ok(tr_shared_pread(file_, got.data(), page, i * page, nullptr), "pread");
      if (meanwhile != nullptr) meanwhile(i);
    }
    return Reads::get().bytes - before;
  }
  [[nodiscard]] tr_shared* get() const { return file_; }
  /// Returns the bytes on storage.
  [[nodiscard]] tr_index stored() const { return static_cast<tr_index>(std::filesystem::file_size(path_)); }
  /// Returns the bytes of memory that the file has taken.
  [[nodiscard]] tr_index memory() const { return shared_memory() - before_; }

 private:
  static tr_index shared_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      tr_index kilobytes = 0;
      if (word == "RssShmem:" && status >> kilobytes) return kilobytes * 1024;
    }
    return 0;
  }
  std::string path_;
  tr_index before_;
  tr_shared* file_ = nullptr;
};

MPI_TEST(frame_reuse, a_file_that_is_read_once_takes_little_memory) {
  const std::string directory = fresh_directory("again-read");
  const Session session(small_budget);
  {
    LargeFile file(directory, "r");
    const tr_index read = file.scan();
    CHECK(read >= large_pages * page);
    CHECK(read < large_pages * page / 8 * 9);  // a thread without a core may bring what was read already
    CHECK(file.memory() > 8 * 1024 * 1024);
    CHECK(file.memory() < large_pages * page / 2);
  }
  remove_directory(directory);
}

/// The file uses so few frames that they stay in the caches of the cores.
MPI_TEST(frame_reuse, a_file_that_comes_as_fast_as_memory_goes_through_few_frames) {
  const std::string directory = fresh_directory("again-fast");
  const Session session("memory=1GiB");
  bool was_fast = false;  // a rank that loses its core early takes storage for slow
  for (int tries = 0; tries < 8 && !was_fast; ++tries) {
    LargeFile file(directory, "r");
    Reads::get().delay_ms = 0;
    CHECK(file.scan() >= large_pages * page);
    if (Reads::get().own_calls < large_pages) continue;
    was_fast = true;
    CHECK(file.memory() < 12 * 1024 * 1024);
    CHECK(file.scan() > large_pages * page / 4);
    CHECK_EQ(file.scan(), tr_index{0});
  }
  CHECK(was_fast);
  remove_directory(directory);
}

/// Reads the pieces of a file that all ranks have open, in turn with the other ranks. Returns the bytes that
/// were read from storage by all ranks, or 0 if some rank took storage for slow: it lost its core early.
tr_index read_in_turn(const std::string& path) {
  tr_shared* file = nullptr;
  ok(tr_shared_open(path.c_str(), "r", "page=64KiB", &file), "open");
  Reads& reads = Reads::get();
  reads.watch(path);
  reads.delay_ms = 0;
  std::string got(static_cast<std::size_t>(piece), '?');
  for (tr_index i = rank(); i < large_pages * page / piece; i += size()) {
    if (i % 8192 == rank()) std::this_thread::sleep_for(std::chrono::milliseconds(rank()));
    ok(tr_shared_pread(file, got.data(), piece, i * piece, nullptr), "pread");
  }
  tr_index sums[] = {reads.bytes, reads.calls - reads.own_calls};
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, state().comm);
  reads.stop();
  ok(tr_shared_close(&file), "close");
  return sums[1] == 0 ? sums[0] : 0;
}

/// Each rank reads its part of every page, and some ranks are late. Storage is read once all the same.
MPI_TEST(frame_reuse, a_page_stays_until_each_rank_has_read_its_part) {
  const std::string directory = fresh_directory("again-parts");
  const Session session("memory=2GiB");  // pages of the whole file fit in what no frame is used again before
  const std::string path = directory + "/file";
  if (rank() == 0) make_cached_file(path);
  MPI_Barrier(state().comm);
  tr_index read = 0;
  for (int tries = 0; tries < 8 && read == 0; ++tries) read = read_in_turn(path);
  CHECK_EQ(read, large_pages * page);
  remove_directory(directory);
}

MPI_TEST(frame_reuse, a_file_that_is_written_once_takes_little_memory) {
  const std::string directory = fresh_directory("again-written");
  const Session session(small_budget);
  {
    LargeFile file(directory, "w");
    const std::string half(static_cast<std::size_t>(page / 2), 'w');
    for (tr_index i = 0; i < 2 * large_pages; ++i) {
      ok(tr_shared_pwrite(file.get(), half.data(), page / 2, i * page / 2), "pwrite");
      CHECK(comes_true([&] { return file.stored() >= (i - 256) * page / 2; }));  // 8 MiB behind
    }
    CHECK(file.memory() < large_pages * page / 2);
    CHECK_EQ(Reads::get().bytes.load(), tr_index{0});
  }
  remove_directory(directory);
}

MPI_TEST(frame_reuse, a_page_that_is_used_again_stays_during_a_scan) {
  const std::string directory = fresh_directory("again-used");
  const Session session(small_budget);
  {
    LargeFile file(directory, "r");
    char got = 0;
    Reads::get().watched = 7 * page;
    file.scan([&](tr_index i) {
      if (i % 16 == 0) ok(tr_shared_pread(file.get(), &got, 1, 7 * page, nullptr), "pread");
    });
    CHECK_EQ(Reads::get().watched_calls.load(), 1);
    CHECK(file.memory() < large_pages * page / 2);
  }
  remove_directory(directory);
}

/// Pages that were read twice are in memory the third time.
MPI_TEST(frame_reuse, a_file_that_is_read_again_and_again_stays_in_memory) {
  const std::string directory = fresh_directory("again-scans");
  const Session session("memory=1GiB");
  {
    LargeFile file(directory, "r");
    CHECK(file.scan() >= large_pages * page);
    CHECK(file.scan() > large_pages * page / 4);
    CHECK_EQ(file.scan(), tr_index{0});
  }
  remove_directory(directory);
}

MPI_TEST(frame_reuse, the_memory_that_a_file_was_given_holds_it) {
  const std::string directory = fresh_directory("again-given");
  const Session session("memory=1GiB");
  {
    LargeFile file(directory, "r", "page=64KiB memory=100MiB");
    CHECK_EQ(file.scan(), large_pages * page);
    CHECK_EQ(file.scan(), tr_index{0});
  }
  remove_directory(directory);
}

MPI_TEST_MAIN
