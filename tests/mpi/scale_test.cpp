// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Long runs, many streams and many files, in each format, without and with a server: memory, descriptors and
// the work of a step do not grow, and the bytes are the same. With TEST_ALL in the environment there are
// 10,000 steps, 64 streams and 1,000 files; otherwise fewer.
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "mpi/scene.hpp"
#include "support/process_memory.hpp"

using namespace tailrace;
using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

constexpr std::int64_t mebi = std::int64_t{1} << 20;

bool is_thorough() { return std::getenv("TEST_ALL") != nullptr; }

int many(int usual, int thorough) { return is_thorough() ? thorough : usual; }

/// What this process has taken so far.
struct Usage {
  std::int64_t memory = 0;  // bytes of its own and of the node's
  std::int64_t descriptors = 0;
  double work = 0;  // seconds of processor time

  static Usage now() {
    Usage usage;
    usage.memory = process_memory("RssAnon") + process_memory("RssShmem");
    usage.descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    usage.work = seconds(used.ru_utime) + seconds(used.ru_stime);
    return usage;
  }
};

std::vector<std::pair<std::string, std::string>> formats() {
  std::vector<std::pair<std::string, std::string>> all{{"raw", ".raw"}, {"cdf5", ".nc"}};
#ifdef TAILRACE_HAVE_GRIB
  all.emplace_back("grib2", ".grib2");
#endif
#ifdef TAILRACE_HAVE_HDF5
  all.emplace_back("netcdf4", ".nc4");
#endif
#ifdef TAILRACE_HAVE_ZARR
  all.emplace_back("zarr", ".zarr");
#endif
  return all;
}

/// A session over all ranks, with an array on each compute rank.
class Run {
 public:
  Run(const std::string& format, int servers) : format_(format) {
    const std::string settings = "servers=" + std::to_string(servers) + " staging=8MiB";
    CHECK_EQ(tr_init(state().comm, &compute_, settings.c_str()), TR_OK);
    if (!computes()) return;
    array_ = std::make_unique<Array>("block", compute_, TR_F32);
    if (format != "raw") CHECK_EQ(tr_layout_georeference(array_->layout(), grid_keys), TR_OK);
  }
  ~Run() {
    array_.reset();
    CHECK_EQ(tr_finalize(), TR_OK);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  [[nodiscard]] bool computes() const { return compute_ != MPI_COMM_NULL; }
  tr_stream* open(const std::string& pattern) {
    tr_stream* stream = nullptr;
    const std::string options = "base=2026-03-01T00:00Z format=" + format_;
    CHECK_EQ(tr_stream_create(pattern.c_str(), options.c_str(), &stream), TR_OK);
    if (stream == nullptr) fail(__FILE__, __LINE__, tr_error());
    CHECK_EQ(tr_stream_define(stream, "t", array_->layout(), TR_F32, "levels=pressure:500"), TR_OK);
    return stream;
  }
  void step(tr_stream* stream, std::int64_t hour) {
    array_->fill(0, hour * 3600 % 86'400);
    CHECK_EQ(tr_stream_begin(stream, hour * 3600), TR_OK);
    CHECK_EQ(tr_stream_put(stream, "t", array_->data()), TR_OK);
    CHECK_EQ(tr_stream_end(stream), TR_OK);
  }

 private:
  std::string format_;
  MPI_Comm compute_ = MPI_COMM_NULL;
  std::unique_ptr<Array> array_;
};

/// The files below a directory by their names, without indices and the manifest, which tell times.
std::map<std::string, std::string> data_in(const std::string& directory) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().extension() == ".trx" ||
        entry.path().filename() == "manifest.jsonl")
      continue;
    std::ifstream file(entry.path(), std::ios::binary);
    all[std::filesystem::relative(entry.path(), directory).string()] = {std::istreambuf_iterator<char>(file),
                                                                        {}};
  }
  return all;
}

/// Collective. `make` fills a directory with each number of servers; the bytes are the same.
void with_and_without_a_server(const std::string& format, const std::string& what,
                               const std::function<void(const std::string& directory, int servers)>& make) {
  std::map<std::string, std::string> first;
  for (const int servers : {0, 1}) {
    const std::string directory = fresh_directory(what + "-" + format + "-" + std::to_string(servers));
    make(directory, servers);
    quiet_barrier();
    if (rank() == 0) {
      const auto all = data_in(directory);
      CHECK(!all.empty());
      if (servers == 0) first = all;
      if (first != all) fail(__FILE__, __LINE__, format + ": " + what + " has other bytes with a server");
      std::filesystem::remove_all(directory);
    }
    quiet_barrier();
  }
}

void check_flat(const std::string& what, const Usage& early, const Usage& late, std::int64_t steps) {
  // What is kept for a step (where it lies, when it was) is some tens of bytes.
  if (late.memory - early.memory > 2 * mebi + 200 * steps)
    fail(__FILE__, __LINE__,
         what + ": memory grew from " + std::to_string(early.memory) + " to " + std::to_string(late.memory));
  if (late.descriptors > early.descriptors + 2)
    fail(__FILE__, __LINE__,
         what + ": descriptors grew from " + std::to_string(early.descriptors) + " to " +
             std::to_string(late.descriptors));
}

MPI_TEST(scale, a_long_run_takes_no_more_memory_descriptors_or_work_for_its_last_steps) {
  const int steps = many(600, 10'000);
  for (const auto& [format, ending] : formats()) {
    with_and_without_a_server(format, "long", [&](const std::string& directory, int servers) {
      Run run(format, servers);
      if (!run.computes()) return;
      tr_stream* stream = run.open(directory + "/fc" + ending);
      Usage at[11];
      for (int tenth = 0; tenth <= 10; ++tenth) {
        at[tenth] = Usage::now();
        for (int step = tenth * steps / 10; tenth < 10 && step < (tenth + 1) * steps / 10; ++step)
          run.step(stream, step);
      }
      const std::string what = format + ", servers=" + std::to_string(servers);
      check_flat(what, at[1], at[10], steps);
      const double early = std::min(at[2].work - at[1].work, at[3].work - at[2].work);
      const double late = std::min(at[10].work - at[9].work, at[9].work - at[8].work);
      // Waiting for the others takes time, too, and not always the same.
      if (late > 2.5 * early + 0.1 + 5e-5 * steps)
        fail(__FILE__, __LINE__,
             what + ": a tenth of the steps took " + std::to_string(early) + " s, and later " +
                 std::to_string(late));
      CHECK_EQ(tr_stream_close(&stream), TR_OK);
      // The index has one record for each step, and what stands at its beginning.
      if (rank() == 0 && std::filesystem::exists(directory + "/fc" + ending + ".trx"))
        CHECK(std::filesystem::file_size(directory + "/fc" + ending + ".trx") <
              static_cast<std::uintmax_t>(steps) * 400 + 4096);
    });
  }
}

MPI_TEST(scale, many_streams_are_open_at_once) {
  const int streams = many(16, 64);
  for (const auto& [format, ending] : formats()) {
    with_and_without_a_server(format, "streams", [&](const std::string& directory, int servers) {
      Run run(format, servers);
      if (!run.computes()) return;
      std::vector<tr_stream*> open;
      for (int stream = 0; stream < streams; ++stream)
        open.push_back(run.open(directory + "/fc" + std::to_string(stream) + ending));
      for (int step = 0; step < 3; ++step) {
        for (tr_stream* const each : open) run.step(each, step);
      }
      for (tr_stream*& each : open) CHECK_EQ(tr_stream_close(&each), TR_OK);
    });
  }
}

MPI_TEST(scale, a_run_has_many_files) {
  const int files = many(80, 1'000);
  for (const auto& [format, ending] : formats()) {
    with_and_without_a_server(format, "files", [&](const std::string& directory, int servers) {
      Run run(format, servers);
      if (!run.computes()) return;
      tr_stream* stream = run.open(directory + "/fc{lead:05h}" + ending);
      Usage early;
      for (int file = 0; file < files; ++file) {
        // Each rank keeps some finished files open behind the newest one, and no more than that.
        if (file == std::max(60, files / 5)) early = Usage::now();
        run.step(stream, file);
      }
      check_flat(format + ", servers=" + std::to_string(servers), early, Usage::now(), files);
      CHECK_EQ(tr_stream_close(&stream), TR_OK);
    });
  }
}

}  // namespace

MPI_TEST_MAIN
