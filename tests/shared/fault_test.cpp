// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// One rank's n-th storage call fails, for n = 1, 2, ... until none does. Every rank hears the same of every
// collective call, somebody is told, nobody hangs, and a file of which nobody was told anything is right.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "faces/shared/shared_file.hpp"
#include "files/world.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::files_test;
using shared::SharedFile;

namespace {

constexpr Bytes piece = 1000;
constexpr int pieces = 60;  // of each rank: more than its pages in memory

ByteVector bytes_of(Bytes number) {
  ByteVector bytes(static_cast<std::size_t>(piece));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(number * 7 + static_cast<Bytes>(i));
  return bytes;
}

/// The results of one run of the program on this rank.
struct Heard {
  std::string all;   // of the collective calls
  int failures = 0;  // of all calls
  bool right = true;

  bool add(const Status& status) {
    all += status.text() + "\n";
    failures += !status.is_ok();
    return status.is_ok();
  }
};

class Program {
 public:
  Program(World& world, std::string path, shared::Safety safety)
      : world_(world), path_(std::move(path)), safety_(safety) {}

  Heard run() {
    if (open("w+")) {
      for (int i = 0; i < pieces; ++i) write(number(i));
      heard_.add(file_->sync());
      for (int i = 0; i < pieces; ++i) check((number(i) + 1) % (pieces * size()));
      heard_.add(file_->flush());
      heard_.add(file_->resize(piece * pieces * size() - 10));
      heard_.add(file_->resize(piece * pieces * size()));
      if (rank() == 0) write(piece_count() - 1);
      heard_.add(file_->close());
    }
    if (open("r")) {
      for (int i = 0; i < pieces; ++i) check(number(i));
      heard_.add(file_->close());
    }
    file_ = nullptr;
    return heard_;
  }

 private:
  static Bytes piece_count() { return pieces * size(); }
  /// Ranks take turns.
  static Bytes number(int i) { return Bytes{i} * size() + rank(); }

  bool open(const std::string& mode) {
    shared::Definition what{path_, *shared::read_mode(mode), 4096, 16384 * size()};
    what.safety = safety_;
    Result<std::unique_ptr<SharedFile>> file = SharedFile::open(world_.own_group(), "open", what);
    if (!heard_.add(file.status())) return false;
    file_ = std::move(*file);
    return true;
  }
  void write(Bytes which) {
    const ByteVector bytes = bytes_of(which);
    const shared::Source sources[] = {{bytes, which * piece}};
    heard_.failures += !file_->write(sources).is_ok();
  }
  void check(Bytes which) {
    ByteVector got(static_cast<std::size_t>(piece));
    const shared::Sink sinks[] = {{got, which * piece}};
    const Result<Bytes> count = file_->read(sinks);
    heard_.failures += !count.is_ok();
    if (count.is_ok() && got != bytes_of(which)) heard_.right = false;
  }

  World& world_;
  std::string path_;
  shared::Safety safety_;
  std::unique_ptr<SharedFile> file_;
  Heard heard_;
};

void every_call(int victim, const std::string& kind, const std::string& options,
                shared::Safety safety = shared::Safety::none) {
  const Scratch scratch;
  for (int n = 1; n < 400; n += n < 40 ? 1 : 7) {
    const std::string fault = "rank=" + std::to_string(victim) + " nth=" + std::to_string(n) + " " + kind;
    bool struck = false;
    Heard heard;
    {
      World world(options + " fault=\"" + fault + "\"");
      heard = Program(world, scratch.path(), safety).run();
      struck = any_rank(world.struck());
    }
    CHECK(same_on_all_ranks(heard.all));
    const bool told = any_rank(heard.failures > 0);
    if (!CHECK(told || !any_rank(!heard.right)))
      std::fprintf(stderr, "rank %d: %s: wrong\n", rank(), fault.c_str());
    if (!CHECK(told == struck))
      std::fprintf(stderr, "rank %d: %s: struck %d, told %d\n", rank(), fault.c_str(), struck, told);
    if (!struck) return;
  }
  World world(options);
  const Heard afterwards = Program(world, scratch.path(), safety).run();
  CHECK_EQ(afterwards.failures, 0);
  CHECK(afterwards.right);
}

// ---- pages that are stored while the program writes on

constexpr Bytes ahead = Bytes{4} << 20;  // pages that are stored ahead together

/// A file that its last rank alone writes, so that this rank's thread stores ahead.
class Writer {
 public:
  Writer(World& world, const std::string& path, shared::Safety safety = shared::Safety::none) {
    shared::Definition what{path, *shared::read_mode("w+"), Bytes{256} << 10, Bytes{64} << 20};
    what.safety = safety;
    file_ = std::move(*SharedFile::open(world.own_group(), "open", what));
  }
  SharedFile& operator*() const { return *file_; }
  SharedFile* operator->() const { return file_.get(); }

  /// Writes runs of bytes that differ with `round`, in small pieces.
  void write(Bytes runs, Bytes round) {
    if (rank() != size() - 1) return;
    ByteVector bytes(4096);
    for (Bytes at = 0; at < runs * ahead; at += std::ssize(bytes)) {
      std::ranges::fill(bytes, byte_at(at, round));
      const shared::Source sources[] = {{bytes, at}};
      CHECK(file_->write(sources).is_ok());
    }
  }
  [[nodiscard]] static std::byte byte_at(Bytes at, Bytes round) {
    return static_cast<std::byte>((at / 4096) % 251 + round);
  }

 private:
  std::unique_ptr<SharedFile> file_;
};

/// Waits until the bytes are in the file, up to a time in which storage would have taken them many times.
bool comes_to_have(const std::string& path, Bytes bytes, double seconds) {
  for (double waited = 0; waited < seconds; waited += 0.01) {
    std::error_code unknown;
    if (static_cast<Bytes>(std::filesystem::file_size(path, unknown)) >= bytes && !unknown) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool holds(const Scratch& scratch, Bytes runs, Bytes round) {
  const std::string bytes = scratch.bytes();
  if (std::ssize(bytes) != runs * ahead) return false;
  for (Bytes at = 0; at < std::ssize(bytes); ++at)
    if (static_cast<std::byte>(bytes[static_cast<std::size_t>(at)]) != Writer::byte_at(at, round))
      return false;
  return true;
}

}  // namespace

MPI_TEST(shared_ahead, whole_pages_are_in_the_file_before_the_program_asks_for_it) {
  for (const bool has_threads : {true, false}) {
    const Scratch scratch;
    World world(has_threads ? "" : "io_threads=0");
    Writer file(world, scratch.path());
    file.write(2, 1);
    CHECK_EQ(comes_to_have(scratch.path(), 2 * ahead, has_threads ? 30 : 0.1), has_threads);
    CHECK(file->close().is_ok());
    CHECK(holds(scratch, 2, 1));
  }
}

MPI_TEST(shared_ahead, what_is_written_again_is_stored_ahead_once) {
  for (const auto safety : {shared::Safety::none, shared::Safety::journal}) {
    const Scratch scratch;
    World world(cat("fault=\"rank=", size() - 1, " nth=", size() == 1 ? 10 : 4, " calls=write\""));
    Writer file(world, scratch.path(), safety);
    file.write(3, 1);
    CHECK(comes_to_have(scratch.path(), 3 * ahead, 30));
    CHECK(file->sync().is_ok());
    for (Bytes round = 2; round < 5; ++round) file.write(3, round);
    CHECK(file->close().is_ok());
    CHECK(!any_rank(world.struck()));
    CHECK(holds(scratch, 3, 4));
  }
}

MPI_TEST(shared_ahead, what_cannot_be_stored_ahead_is_stored_later) {
  if (size() == 1) return;
  const Scratch scratch;
  World world(cat("fault=\"rank=", size() - 1, " nth=1 calls=write\""));
  Writer file(world, scratch.path());
  file.write(3, 1);
  CHECK(file->close().is_ok());
  CHECK(any_rank(world.struck()));
  CHECK(holds(scratch, 3, 1));
}

MPI_TEST(shared_ahead, a_full_disk_is_told_by_the_flush_on_every_rank) {
  const Scratch scratch;
  World world("fault=\"fault=enospc nth=1 calls=write for=good\"");
  Writer file(world, scratch.path());
  file.write(2, 1);
  const Status flushed = file->flush();
  CHECK(!flushed.is_ok());
  CHECK(same_on_all_ranks(flushed.text()));
  const Status closed = file->close();
  CHECK(!closed.is_ok());
  CHECK(same_on_all_ranks(closed.text()));
}

MPI_TEST(shared_fault, of_the_first_rank_is_told) {
  for (const char* kind : {"", "fault=enospc calls=write for=good", "calls=read"}) every_call(0, kind, "");
}

MPI_TEST(shared_fault, of_the_last_rank_is_told) {
  if (size() == 1) return;
  for (const char* kind : {"", "calls=read for=good"})
    every_call(size() - 1, kind, "aggregators=2 io_threads=0");
}

/// An undo file that counts no longer and cannot be removed is no failure: it is only told in the log.
MPI_TEST(shared_fault, of_what_makes_a_file_safe_is_told) {
  for (const auto safety : {shared::Safety::journal, shared::Safety::rename}) {
    for (const int victim : {0, size() - 1}) {
      every_call(victim, "calls=open,write,sync,truncate,rename,sync_directory", "aggregators=2", safety);
      every_call(victim, "calls=open,write,sync,truncate,rename,sync_directory for=good", "aggregators=2",
                 safety);
    }
  }
}

MPI_TEST_MAIN
