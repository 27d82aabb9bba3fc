// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Rank 0 stops in the middle of a write: the memory from which it copies cannot be read for a while. Rank 1
// goes on meanwhile: it writes the same bytes, or needs the frames of all pages for others.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <string>

#include "files/fixture.hpp"

using namespace tailrace::files_test;

namespace {

/// What the two ranks tell each other without MPI.
struct Told {
  std::atomic<int> stopped{0};  // rank 0 is in the middle of so many writes, or was
  std::atomic<int> begun{0};    // rank 1 has begun what it does meanwhile, so many times
  std::atomic<int> go_on{0};    // and has done it
};

/// Memory that both ranks have.
class Common {
 public:
  Common() {
    void* mine = nullptr;
    MPI_Win_allocate_shared(rank() == 0 ? sizeof(Told) : 0, 1, MPI_INFO_NULL, state().comm, &mine, &window_);
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_shared_query(window_, 0, &bytes, &unit, &mine);
    if (rank() == 0) new (mine) Told();
    told_ = static_cast<Told*>(mine);
    MPI_Barrier(state().comm);
  }
  ~Common() { MPI_Win_free(&window_); }
  Common(const Common&) = delete;
  Common& operator=(const Common&) = delete;
  Told* operator->() const { return told_; }
  [[nodiscard]] Told* told() const { return told_; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  Told* told_ = nullptr;
};

void sleep_a_millisecond() {
  const timespec time{0, 1'000'000};
  ::nanosleep(&time, nullptr);
}

constexpr std::size_t most = 64 * 1024;

/// Memory for whose first read a copy waits, until rank 1 has done what it does meanwhile, or for some
/// milliseconds of that.
class SlowMemory {
 public:
  SlowMemory(Told* told, int longest) {
    memory_ =
        static_cast<char*>(::mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill_n(memory_, most, 'a');
    ::mprotect(memory_, most, PROT_NONE);
    told_ = told;
    longest_ = longest;
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* what, void*) {
      const auto* const at = static_cast<const char*>(what->si_addr);
      if (at >= memory_ && at < memory_ + most)
        wait();
      else
        std::signal(SIGSEGV, SIG_DFL);  // an error, which comes again
    };
    ::sigaction(SIGSEGV, &action, &before_);
  }
  ~SlowMemory() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(memory_, most);
  }
  SlowMemory(const SlowMemory&) = delete;
  SlowMemory& operator=(const SlowMemory&) = delete;
  [[nodiscard]] const char* data() const { return memory_; }

 private:
  static void wait() {
    const int error = errno;
    const int number = ++told_->stopped;
    while (told_->begun < number) sleep_a_millisecond();
    for (int waited = 0; waited < longest_ && told_->go_on < number; ++waited) sleep_a_millisecond();
    ::mprotect(memory_, most, PROT_READ);
    errno = error;
  }
  static inline char* memory_ = nullptr;
  static inline Told* told_ = nullptr;
  static inline int longest_ = 0;
  struct sigaction before_ = {};
};

struct Piece {
  tr_index offset;
  tr_index bytes;
};

/// Rank 0 writes `slow` and stops in it; then rank 1 calls `meanwhile`, and lets it go on.
template <typename Meanwhile>
void stop_in_write(tr_shared* file, const Common& common, Piece slow, int longest,
                   const Meanwhile& meanwhile) {
  const int before = common->stopped;
  MPI_Barrier(state().comm);
  if (rank() == 0) {
    const SlowMemory memory(common.told(), longest);
    ok(tr_shared_pwrite(file, memory.data(), slow.bytes, slow.offset), "pwrite");
    if (!CHECK_EQ(common->stopped.load(), before + 1)) common->stopped = before + 1;  // rank 1 waits for it
  } else if (rank() == 1) {
    while (common->stopped == before) sleep_a_millisecond();
    common->begun = before + 1;
    meanwhile();
    common->go_on = before + 1;
  }
  ok(tr_shared_sync(file), "sync");
}

tr_shared* open_shared(const std::string& path, const std::string& options) {
  tr_shared* file = nullptr;
  ok(tr_shared_open(path.c_str(), "w+", options.c_str(), &file), "open");
  return file;
}

}  // namespace

/// In strips of a page, in so many strips that a rank locks the page, and in bytes that were written before
/// or not. One of the pieces in the last page needs the last lock of strips and the first one.
MPI_TEST(slow_writer, another_write_of_the_same_bytes_comes_behind_it) {
  constexpr tr_index page = 256 * 1024;
  constexpr Piece pieces[][2] = {{{100, 500}, {100, 500}},
                                 {{900, 6'000}, {3'000, 6'000}},
                                 {{900, 6'000}, {0, 20'000}},
                                 {{0, 20'000}, {900, 6'000}},
                                 {{0, 20'000}, {10'000, 20'000}}};
  const std::string directory = fresh_directory("shared-slow");
  const std::string path = directory + "/file";
  const Session session;
  const Common common;
  const std::string text(most, 'b');
  std::string wanted;
  tr_shared* file = nullptr;
  const auto write_both = [&](tr_index begin, const Piece& slow, const Piece& other) {
    stop_in_write(file, common, {begin + slow.offset, slow.bytes}, 20, [&] {
      ok(tr_shared_pwrite(file, text.data(), other.bytes, begin + other.offset), "pwrite");
    });
    for (const auto& [piece, value] : {std::pair(slow, 'a'), std::pair(other, 'b')}) {
      const auto bytes = static_cast<std::size_t>(piece.bytes);
      wanted.replace(static_cast<std::size_t>(begin + piece.offset), bytes, bytes, value);
    }
  };
  const auto add_page = [&](char value) {
    const tr_index begin = std::ssize(wanted);
    wanted.append(page, value);
    if (value != '\0' && rank() == 1)
      ok(tr_shared_pwrite(file, wanted.data() + begin, page, begin), "pwrite");
    ok(tr_shared_sync(file), "sync");
    return begin;
  };
  // Pages of the second file that are to begin with zeros get frames of the first one that have other bytes.
  for (const auto& values : {std::array{'\0', 'x'}, std::array{'x', '\0'}}) {
    wanted.clear();
    file = open_shared(path, "page=256KiB");
    for (const char before : values)
      for (const auto& [slow, other] : pieces) write_both(add_page(before), slow, other);
    const tr_index begin = add_page('x');
    for (tr_index at = 16 * 1024; at < page; at += 16 * 1024)
      write_both(begin, {at - 1'000, 2'000}, {at - 2'000, 2'000});
    ok(tr_shared_resize(file, std::ssize(wanted)), "resize");
    ok(tr_shared_close(&file), "close");
    if (rank() == 0) CHECK(contents(path) == wanted);
    MPI_Barrier(state().comm);
  }
  remove_directory(directory);
}

MPI_TEST(slow_writer, its_page_stays_while_others_make_room) {
  constexpr std::size_t page = 4096, pages = 400;
  const std::string directory = fresh_directory("shared-slow");
  const std::string path = directory + "/file";
  const Session session;
  const Common common;
  tr_shared* file = open_shared(path, "page=4KiB memory=" + std::to_string(16 * 1024 * size()));
  std::string wanted(pages * page, 'x');
  if (rank() == 0) ok(tr_shared_pwrite(file, wanted.data(), page, 0), "pwrite");
  const Piece slow{100, 500};
  stop_in_write(file, common, slow, 10'000, [&] {
    ok(tr_shared_pwrite(file, wanted.data() + page, (pages - 1) * page, page), "pwrite");
    std::string got((pages - 1) * page, '?');
    tr_index bytes = 0;
    ok(tr_shared_pread(file, got.data(), (pages - 1) * page, page, &bytes), "pread");
    CHECK(got == wanted.substr(page));
  });
  wanted.replace(100, 500, 500, 'a');
  ok(tr_shared_close(&file), "close");
  if (rank() == 0) CHECK(contents(path) == wanted);
  remove_directory(directory);
}

MPI_TEST_MAIN
