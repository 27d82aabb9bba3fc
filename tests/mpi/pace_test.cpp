// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A stream keeps its pace beside another one's file that waits: all its steps become durable on the one
// server that both have, before the other file is let go.
#include <dlfcn.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "mpi/scene.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

constexpr int type = TR_F64;
constexpr int steps = 8;

void wait_for_file(const std::filesystem::path& path) {
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Storage of the file "slow/fc.raw" does not answer before "slow/go" exists. "slow/waits" says that somebody
/// waits.
void enter_storage(int descriptor) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  char name[4096];
  const ssize_t length = ::readlink(link.c_str(), name, sizeof name);
  const std::filesystem::path path(std::string(name, length > 0 ? static_cast<std::size_t>(length) : 0));
  const std::filesystem::path directory = path.parent_path();
  if (path.filename() != "fc.raw" || directory.filename() != "slow") return;
  if (std::filesystem::exists(directory / "go")) return;
  std::ofstream(directory / "waits") << "yes";
  wait_for_file(directory / "go");
}

template <typename Function>
Function* next_of(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// A stream with one field.
class Output {
 public:
  Output(MPI_Comm compute, const std::string& path, const std::string& options)
      : array_("block", compute, type) {
    const std::string all = "format=raw base=2026-03-01T00:00Z " + options;
    if (!CHECK_EQ(tr_stream_create(path.c_str(), all.c_str(), &stream_), TR_OK))
      std::fprintf(stderr, "  %s\n", tr_error());
    CHECK_EQ(tr_stream_define(stream_, "t", array_.layout(), type, "levels=pressure:1000,850,500"), TR_OK);
  }
  void step(int number) {
    array_.fill(0, number * 3600);
    CHECK_EQ(tr_stream_begin(stream_, number * 3600), TR_OK);
    CHECK_EQ(tr_stream_put(stream_, "t", array_.data()), TR_OK);
    CHECK_EQ(tr_stream_end(stream_), TR_OK);
  }
  void wait() { CHECK_EQ(tr_stream_wait(stream_, TR_DURABLE), TR_OK); }
  void close() { CHECK_EQ(tr_stream_close(&stream_), TR_OK); }

 private:
  Array array_;
  tr_stream* stream_ = nullptr;
};

std::vector<std::byte> bytes_of(int first, int count) {
  std::vector<std::byte> bytes;
  for (int step = first; step < first + count; ++step) {
    for (tr_index level = 0; level < levels; ++level) append_record(0, type, step * 3600, level, bytes);
  }
  return bytes;
}

void in_a_session(const std::function<void(MPI_Comm)>& body) {
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, "servers=last:1 threads=1 staging=16MiB"), TR_OK);
  if (compute != MPI_COMM_NULL) body(compute);
  CHECK_EQ(tr_finalize(), TR_OK);
  quiet_barrier();
}

/// Writes a whole stream. Each step becomes durable before the next begins.
void write_briskly(MPI_Comm compute, const std::string& path) {
  Output brisk(compute, path, "");
  for (int step = 0; step < steps; ++step) {
    brisk.step(step);
    brisk.wait();
  }
  brisk.close();
  CHECK(contents(path) == bytes_of(0, steps));
}

/// The stream at `path` waits from its second step at the latest, until there is the file `go`. The file
/// `waits` tells that it waits.
void write_beside(MPI_Comm compute, const std::string& path, const std::string& options,
                  const std::string& other, const std::filesystem::path& waits,
                  const std::filesystem::path& go) {
  Output slow(compute, path, options);
  slow.step(0);
  slow.step(1);
  if (rank_of(compute) == 0) wait_for_file(waits);
  MPI_Barrier(compute);
  write_briskly(compute, other);
  MPI_Barrier(compute);
  if (rank_of(compute) == 0) std::ofstream(go) << "go";
  slow.wait();
  slow.close();
}

/// A small file system that the calling process has for itself. It needs root; others see it below /proc.
class SmallDisk {
 public:
  static constexpr std::size_t bytes = 256 << 10;
  explicit SmallDisk(const std::string& path) : path_(path) {
    const std::string size = "size=" + std::to_string(bytes);
    is_there_ = ::unshare(CLONE_NEWNS) == 0 &&
                ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                ::mount("none", path.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }
  ~SmallDisk() {
    if (is_there_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }

 private:
  const std::string path_;
  bool is_there_ = false;
};

/// Writes as many bytes as there is room for.
void fill_disk(const std::string& path) {
  std::ofstream filler(path);
  const std::vector<char> page(4096, 'x');
  while (filler.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) continue;
}

/// The disk is full before the step `full_at`, and until every step of another stream is durable.
void write_beside_full_disk(const std::string& directory, int full_at) {
  const int server = size() - 1;
  std::optional<SmallDisk> disk;
  if (rank() == server) disk.emplace(directory + "/full");
  if (any_rank(disk && !disk->is_there())) return skip("a small file system needs root");
  long process = ::getpid();
  MPI_Bcast(&process, 1, MPI_LONG, server, state().comm);
  const std::string seen = "/proc/" + std::to_string(process) + "/root" + directory + "/full";
  in_a_session([&](MPI_Comm compute) {
    Output slow(compute, directory + "/full/fc.raw", "on_full=wait:1h");
    for (int step = 0; step < 2; ++step) {
      if (step == full_at && rank_of(compute) == 0) fill_disk(seen + "/filler");
      MPI_Barrier(compute);
      slow.step(step);
      if (step < full_at) slow.wait();
    }
    write_briskly(compute, directory + "/brisk.raw");
    MPI_Barrier(compute);
    if (rank_of(compute) == 0) std::filesystem::remove(seen + "/filler");
    slow.wait();
    slow.close();
  });
  if (rank() == server) CHECK(contents(directory + "/full/fc.raw") == bytes_of(0, 2));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ssize_t pwritev(int descriptor, const iovec* parts,
                                                                  int count, off_t offset) {
  static auto* const real = next_of(&::pwritev, "pwritev");
  enter_storage(descriptor);
  return real(descriptor, parts, count, offset);
}

extern "C" __attribute__((visibility("default"))) int fsync(int descriptor) {
  static auto* const real = next_of(&::fsync, "fsync");
  enter_storage(descriptor);
  return real(descriptor);
}

MPI_TEST(pace, is_kept_beside_a_file_whose_hook_hangs) {
  const std::string directory = std::filesystem::absolute(fresh_directory("hook"));
  const std::string hook =
      "touch " + directory + "/hooked; until [ -e " + directory + "/go ]; do sleep 0.01; done";
  in_a_session([&](MPI_Comm compute) {
    write_beside(compute, directory + "/fc_{lead:02h}.raw", "hook='" + hook + "'", directory + "/brisk.raw",
                 directory + "/hooked", directory + "/go");
  });
  if (rank() != 0) return;
  CHECK(contents(directory + "/fc_00.raw") == bytes_of(0, 1));
  CHECK(contents(directory + "/fc_01.raw") == bytes_of(1, 1));
}

MPI_TEST(pace, is_kept_beside_a_file_on_storage_that_does_not_answer) {
  const std::string directory = std::filesystem::absolute(fresh_directory("held"));
  if (rank() == 0) std::filesystem::create_directory(directory + "/slow");
  quiet_barrier();
  in_a_session([&](MPI_Comm compute) {
    write_beside(compute, directory + "/slow/fc.raw", "", directory + "/brisk.raw", directory + "/slow/waits",
                 directory + "/slow/go");
  });
  if (rank() == 0) CHECK(contents(directory + "/slow/fc.raw") == bytes_of(0, 2));
}

MPI_TEST(pace, is_kept_beside_a_file_whose_disk_is_full) {
  for (const int full_at : {0, 1}) {
    const std::string directory =
        std::filesystem::absolute(fresh_directory("full" + std::to_string(full_at)));
    if (rank() == 0) std::filesystem::create_directory(directory + "/full");
    quiet_barrier();
    write_beside_full_disk(directory, full_at);
  }
}

MPI_TEST_MAIN
