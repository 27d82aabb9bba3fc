// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Long runs, many streams and many files, in each format, without and with a server: memory, descriptors and
// the work of a step do not grow, and the bytes are the same. With TEST_ALL in the environment there are
// 10,000 steps, 64 streams and 1,000 files; otherwise fewer.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "mpi/scene.hpp"
#include "support/process_memory.hpp"

using namespace tailrace;
using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

constexpr std::int64_t mebi = std::int64_t{1} << 20;

bool is_thorough() { return std::getenv("TEST_ALL") != nullptr; }

int many(int usual, int thorough) { return is_thorough() ? thorough : usual; }

/// What a process has taken so far.
struct Usage {
  std::int64_t memory = 0;  // bytes
  std::int64_t descriptors = 0;
  double work = 0;  // seconds of processor time

  /// Of this process, with the node's memory that it has touched.
  static Usage now() {
    Usage usage = of("self");
    usage.memory += process_memory("RssShmem");
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    usage.work = seconds(used.ru_utime) + seconds(used.ru_stime);
    return usage;
  }
  /// Of another process of this machine. A server touches the lanes bit by bit: they have their own limit.
  static Usage of(const std::string& process) {
    const std::string proc = "/proc/" + process;
    Usage usage;
    usage.memory = memory_in(proc + "/status", "RssAnon");
    usage.descriptors = std::distance(std::filesystem::directory_iterator(proc + "/fd"), {});
    // Behind the name, which may hold anything: utime and stime are the fields 14 and 15 (proc(5)).
    std::ifstream file(proc + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    double user = 0, system = 0;
    fields >> user >> system;
    usage.work = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    return usage;
  }
};

/// What this process has taken, and the servers at which it looks, by their names.
using Usages = std::map<std::string, Usage>;

std::vector<std::pair<std::string, std::string>> formats() {
  std::vector<std::pair<std::string, std::string>> all{{"raw", ".raw"}, {"cdf5", ".nc"}};
#ifdef TAILRACE_HAVE_GRIB
  all.emplace_back("grib2", ".grib2");
  all.emplace_back("grib1", ".grib1");
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
    const std::vector<int> processes = processes_of_this_machine();
    CHECK_EQ(tr_init(state().comm, &compute_, settings.c_str()), TR_OK);
    if (!computes()) return;
    if (rank_of(compute_) == 0) find_servers(processes);
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
  /// The first compute rank looks at the servers of its machine, too.
  [[nodiscard]] Usages usages() const {
    Usages all{{"this rank", Usage::now()}};
    for (const int process : servers_)
      all["the server in process " + std::to_string(process)] = Usage::of(std::to_string(process));
    return all;
  }
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
  /// Collective. Returns the process of each rank, 0 for one on another machine.
  static std::vector<int> processes_of_this_machine() {
    struct Place {
      char name[MPI_MAX_PROCESSOR_NAME] = {};
      int process = ::getpid();
    } mine;
    int length = 0;
    MPI_Get_processor_name(mine.name, &length);
    std::vector<Place> places(static_cast<std::size_t>(state().size));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, state().comm);
    std::vector<int> processes;
    for (const Place& place : places)
      processes.push_back(std::string(place.name) == mine.name ? place.process : 0);
    return processes;
  }
  /// Servers are the ranks that do not compute.
  void find_servers(const std::vector<int>& processes) {
    MPI_Group all = MPI_GROUP_NULL, computing = MPI_GROUP_NULL;
    MPI_Comm_group(state().comm, &all);
    MPI_Comm_group(compute_, &computing);
    for (int each = 0; each < state().size; ++each) {
      int number = 0;
      MPI_Group_translate_ranks(all, 1, &each, computing, &number);
      const int process = processes[static_cast<std::size_t>(each)];
      if (number == MPI_UNDEFINED && process != 0) servers_.push_back(process);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&computing);
  }

  std::string format_;
  std::vector<int> servers_;  // their processes
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

/// `more` bytes may be kept, and `files` be open, for what has come since.
void check_flat(const std::string& what, const Usages& early, const Usages& late, std::int64_t more,
                std::int64_t files = 0) {
  for (const auto& [process, after] : late) {
    const Usage& before = early.at(process);
    if (after.memory - before.memory > 2 * mebi + more)
      fail(__FILE__, __LINE__,
           what + ": memory of " + process + " grew from " + std::to_string(before.memory) + " to " +
               std::to_string(after.memory));
    if (after.descriptors > before.descriptors + 2 + files)
      fail(__FILE__, __LINE__,
           what + ": descriptors of " + process + " grew from " + std::to_string(before.descriptors) +
               " to " + std::to_string(after.descriptors));
  }
}

/// What is kept for a step (where it lies, when it was) is some tens of bytes.
constexpr std::int64_t bytes_of_a_step = 200;

/// A stream that is open, with its codec: on its root its file is open twice, with the index and the lock.
constexpr std::int64_t bytes_of_a_stream = 512 * 1024;
constexpr std::int64_t files_of_a_stream = 4;
/// A process keeps so many files open that it has written (OpenFiles::most_open), whenever it comes to them.
constexpr std::int64_t most_kept = 16;

/// Compares the work of the last steps with that of the first ones. `at` has the usages after each tenth.
void check_work(const std::string& what, const Usages (&at)[11], std::int64_t steps) {
  for (const auto& [process, last] : at[10]) {
    const auto tenth = [&](int number) {
      return at[number].at(process).work - at[number - 1].at(process).work;
    };
    const double early = std::min(tenth(2), tenth(3)), late = std::min(tenth(10), tenth(9));
    // Waiting for the others takes time, too, and not always the same.
    if (late > 2.5 * early + 0.1 + 5e-5 * static_cast<double>(steps))
      fail(__FILE__, __LINE__,
           what + ": a tenth of the steps took " + process + " " + std::to_string(early) + " s, and later " +
               std::to_string(late));
  }
}

MPI_TEST(scale, a_long_run_takes_no_more_memory_descriptors_or_work_for_its_last_steps) {
  const int steps = many(600, 10'000);
  for (const auto& [format, ending] : formats()) {
    with_and_without_a_server(format, "long", [&](const std::string& directory, int servers) {
      Run run(format, servers);
      if (!run.computes()) return;
      tr_stream* stream = run.open(directory + "/fc" + ending);
      Usages at[11];
      for (int tenth = 0; tenth <= 10; ++tenth) {
        // Steps that a server has not come to yet have their bytes and their work still before them.
        if (tenth > 0) CHECK_EQ(tr_stream_wait(stream, TR_DURABLE), TR_OK);
        at[tenth] = run.usages();
        for (int step = tenth * steps / 10; tenth < 10 && step < (tenth + 1) * steps / 10; ++step)
          run.step(stream, step);
      }
      const std::string what = format + ", servers=" + std::to_string(servers);
      check_flat(what, at[1], at[10], bytes_of_a_step * steps);
      check_work(what, at, steps);
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
      const Usages before = run.usages();
      std::vector<tr_stream*> open;
      for (int stream = 0; stream < streams; ++stream)
        open.push_back(run.open(directory + "/fc" + std::to_string(stream) + ending));
      Usages early;
      for (int step = 0; step < 12; ++step) {
        for (tr_stream* const each : open) run.step(each, step);
        if (step != 5 && step != 11) continue;
        for (tr_stream* const each : open) CHECK_EQ(tr_stream_wait(each, TR_DURABLE), TR_OK);
        if (step == 5) early = run.usages();
      }
      const std::string what =
          std::to_string(streams) + " streams, " + format + ", servers=" + std::to_string(servers);
      check_flat(what + ", while they are open", before, run.usages(), streams * bytes_of_a_stream,
                 streams * files_of_a_stream);
      check_flat(what + ", after more steps", early, run.usages(), 6 * streams * bytes_of_a_step, most_kept);
      for (tr_stream*& each : open) CHECK_EQ(tr_stream_close(&each), TR_OK);
      check_flat(what + ", after they were closed", before, run.usages(), streams * bytes_of_a_stream);
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
      Usages early;
      for (int file = 0; file < files; ++file) {
        // Each rank keeps some finished files open behind the newest one, and no more than that.
        if (file == std::max(60, files / 5)) early = run.usages();
        run.step(stream, file);
      }
      check_flat(format + ", servers=" + std::to_string(servers), early, run.usages(),
                 bytes_of_a_step * files, most_kept);
      CHECK_EQ(tr_stream_close(&stream), TR_OK);
    });
  }
}

}  // namespace

MPI_TEST_MAIN
