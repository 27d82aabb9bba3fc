// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Staging memory that holds a few records of a step of a thousand: ranks that run ahead wait, the wait is
// counted and reported, and the bytes are right.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "mpi/scene.hpp"
#include "support/captured_stderr.hpp"
#include "support/process_memory.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

constexpr tr_index side = 64;
constexpr tr_index many = 1000;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns the number behind `"key": ` in a report, or -1 if there is none.
double number_in(const std::string& report, const std::string& key) {
  const std::size_t found = report.find("\"" + key + "\":");
  return found == std::string::npos ? -1 : std::atof(report.c_str() + found + key.size() + 3);
}

double element(tr_index level, tr_index index) { return static_cast<double>(level * side * side + index); }

void write(MPI_Comm compute, const std::string& path, int late_rank) {
  const tr_index shape[] = {side, side};
  tr_layout* layout = nullptr;
  tr_stream* stream = nullptr;
  CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_OK);
  CHECK_EQ(tr_stream_create(path.c_str(), "format=raw base=2026-03-01T00:00Z", &stream), TR_OK);
  const std::string levels_text = "levels=pressure:1-" + std::to_string(many);
  CHECK_EQ(tr_stream_define(stream, "t", layout, TR_F64, levels_text.c_str()), TR_OK);
  tr_index lower[2];
  tr_index upper[2];
  CHECK_EQ(tr_layout_bounds(layout, 0, lower, upper), TR_OK);
  std::vector<double> values;
  for (tr_index level = 0; level < many; ++level) {
    for (tr_index y = lower[0]; y < upper[0]; ++y) {
      for (tr_index x = lower[1]; x < upper[1]; ++x) values.push_back(element(level, y * side + x));
    }
  }
  for (int step = 0; step < 2; ++step) {
    if (rank_of(compute) == late_rank) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    tr_stream_begin(stream, step * 600);
    tr_stream_put(stream, "t", values.data());
    CHECK_EQ(tr_stream_end(stream), TR_OK);
  }
  CHECK_EQ(tr_stream_close(&stream), TR_OK);
  tr_layout_free(&layout);
}

void check_bytes(const std::string& path) {
  const std::vector<std::byte> got = contents(path);
  CHECK_EQ(got.size(), static_cast<std::size_t>(2 * many * side * side * 8));
  const auto* numbers = reinterpret_cast<const double*>(got.data());
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < got.size() / 8; ++i) {
    if (numbers[i] != static_cast<double>(i % static_cast<std::size_t>(many * side * side))) ++wrong;
  }
  CHECK_EQ(wrong, 0);
}

}  // namespace

MPI_TEST(staging, of_a_few_records_holds_a_rank_that_is_1000_puts_ahead) {
  for (const int late_rank : {0, 2}) {
    const std::string directory = fresh_directory("ahead" + std::to_string(late_rank));
    const std::string report_path = directory + "/report.json";
    // A name that can be foreseen may be somebody else's link.
    if (rank() == 0) {
      std::ofstream(directory + "/precious") << "precious";
      std::filesystem::create_symlink("precious", report_path + ".tmp");
    }
    quiet_barrier();
    MPI_Comm compute = MPI_COMM_NULL;
    CHECK_EQ(tr_init(state().comm, &compute, ("servers=1 staging=512KiB report=" + report_path).c_str()),
             TR_OK);
    if (compute != MPI_COMM_NULL) write(compute, directory + "/fc.raw", late_rank);
    CHECK_EQ(tr_finalize(), TR_OK);
    quiet_barrier();
    if (rank() != 0) continue;
    check_bytes(directory + "/fc.raw");
#if TAILRACE_HAVE_JSON
    const std::string report = text_of(report_path);
    CHECK(text_of(directory + "/precious") == "precious");
    CHECK(number_in(report, "staging_full_count") > 0);
    CHECK(number_in(report, "workspace_peak_bytes") <= 512.0 * 1024 / 4);
#endif
    std::filesystem::remove_all(directory);
  }
}

/// Returns what tr_stream_define says of a field of this shape under these settings, or nothing if it is
/// taken.
std::string told_of(tr_index rows, tr_index columns, const std::string& settings, const std::string& format) {
  MPI_Comm compute = MPI_COMM_NULL;
  std::string told;
  CHECK_EQ(tr_init(state().comm, &compute, settings.c_str()), TR_OK);
  if (compute != MPI_COMM_NULL) {
    const tr_index shape[] = {rows, columns};
    tr_layout* layout = nullptr;
    tr_stream* stream = nullptr;
    CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_OK);
    CHECK_EQ(tr_stream_create("never-made", ("base=2026-03-01T00:00Z " + format).c_str(), &stream), TR_OK);
    const bool grib = format.find("grib2") != std::string::npos;
    if (grib) CHECK_EQ(tr_layout_georeference(layout, "keys='gridType=unstructured_grid'"), TR_OK);
    if (tr_stream_define(stream, "t", layout, TR_F32, grib ? "accuracy=0.01" : "") != TR_OK)
      told = tr_error();
    CHECK_EQ(tr_stream_close(&stream), TR_OK);
    tr_layout_free(&layout);
  }
  CHECK_EQ(tr_finalize(), TR_OK);
  return told;
}

void names_the_value_that_suffices(const std::string& format) {
  for (const bool servers : {false, true}) {
    const std::string served = servers ? "servers=1 " : "";
    const std::string told = told_of(700, 700, served + "staging=2MiB", format);
    const bool computes = !(servers && rank() == state().size - 1);
    int sufficient = 0;
    if (computes) {
      const std::size_t at = told.find("set TAILRACE_STAGING=");
      if (CHECK(at != std::string::npos)) sufficient = std::atoi(told.c_str() + at + 21);
      CHECK(sufficient > 2);
      CHECK(servers || told.find("server") == std::string::npos);
    }
    MPI_Bcast(&sufficient, 1, MPI_INT, 0, state().comm);
    CHECK_EQ(told_of(700, 700, served + "staging=" + std::to_string(sufficient) + "MiB", format),
             std::string());
  }
}

/// Returns how often `text` says `word`.
int times(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// Runs two streams of two steps each under these settings. Returns what this rank's stderr has heard
/// of warnings.
std::string heard_under(const std::string& settings) {
  const std::string directory = fresh_directory("warned");
  CapturedStderr captured;
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, settings.c_str()), TR_OK);
  if (compute != MPI_COMM_NULL) {
    write(compute, directory + "/one.raw", -1);
    write(compute, directory + "/two.raw", -1);
  }
  CHECK_EQ(tr_finalize(), TR_OK);
  quiet_barrier();
  if (rank() == 0) std::filesystem::remove_all(directory);
  return without_summaries(captured.text());
}

MPI_TEST(staging, that_a_step_does_not_fit_is_said_once_for_each_stream) {
  const int server = state().size - 1;  // its third compute rank has 22 of the 64 rows, the others 21
  const std::string heard = heard_under("servers=1 staging=8MiB");
  const std::string said = "its share of the staging memory is 2 MiB";
  int sufficient = 0;
  if (rank() == server) {
    CHECK_EQ(times(heard, said), 2);
    CHECK_EQ(times(heard, "/one.raw, step at lead 0 s: rank 2 puts 11 MiB in it"), 1);
    CHECK_EQ(times(heard, "/two.raw, step at lead 0 s: rank 2 puts 11 MiB in it"), 1);
    const std::size_t at = heard.find("set TAILRACE_STAGING=");
    if (CHECK(at != std::string::npos)) sufficient = std::atoi(heard.c_str() + at + 21);
  } else {
    CHECK_EQ(heard, std::string());
  }
  MPI_Bcast(&sufficient, 1, MPI_INT, server, state().comm);
  CHECK(sufficient > 32);
  CHECK_EQ(heard_under("servers=1 staging=" + std::to_string(sufficient) + "MiB"), std::string());
  CHECK_EQ(
      times(heard_under("servers=1 staging=" + std::to_string(sufficient / 2) + "MiB"), "staging memory"),
      rank() == server ? 2 : 0);
  CHECK_EQ(heard_under("staging=8MiB"), std::string());  // without servers nothing is staged
}

/// Writes a step of `levels` levels of one element a rank. Returns the warnings that this rank's stderr
/// has heard of it.
std::string heard_of_levels(tr_index levels, const std::string& settings) {
  const std::string directory = fresh_directory("levels");
  CapturedStderr captured;
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, settings.c_str()), TR_OK);
  if (compute != MPI_COMM_NULL) {
    const tr_index shape[] = {state().size - 1};
    tr_layout* layout = nullptr;
    tr_stream* stream = nullptr;
    CHECK_EQ(tr_layout_block(1, shape, nullptr, &layout), TR_OK);
    CHECK_EQ(tr_stream_create((directory + "/fc.raw").c_str(), "format=raw base=2026-03-01T00:00Z", &stream),
             TR_OK);
    const std::string levels_text = "levels=height:1-" + std::to_string(levels);
    CHECK_EQ(tr_stream_define(stream, "t", layout, TR_I32, levels_text.c_str()), TR_OK);
    std::vector<std::int32_t> values;
    for (tr_index level = 0; level < levels; ++level)
      values.push_back(static_cast<std::int32_t>(level * shape[0]) + rank_of(compute));
    tr_stream_begin(stream, 0);
    tr_stream_put(stream, "t", values.data());
    CHECK_EQ(tr_stream_end(stream), TR_OK);
    CHECK_EQ(tr_stream_close(&stream), TR_OK);
    tr_layout_free(&layout);
  }
  CHECK_EQ(tr_finalize(), TR_OK);
  quiet_barrier();
  if (rank() == 0) {
    const std::vector<std::byte> got = contents(directory + "/fc.raw");
    const auto* numbers = reinterpret_cast<const std::int32_t*>(got.data());
    std::size_t right = 0;
    while (right < got.size() / 4 && numbers[right] == static_cast<std::int32_t>(right)) ++right;
    CHECK_EQ(right, static_cast<std::size_t>(levels * (state().size - 1)));
    std::filesystem::remove_all(directory);
  }
  return without_summaries(captured.text());
}

MPI_TEST(staging, of_fewer_levels_than_a_step_has_is_waited_for_and_said) {
  const int server = state().size - 1;
  const std::string at_most = heard_of_levels(20000, "servers=1 staging=64MiB");
  const std::string few = heard_of_levels(2000, "servers=1 staging=1MiB");
  int sufficient = 0;
  if (rank() == server) {
    CHECK_EQ(
        times(at_most, "puts 20000 levels in it, and its share of the staging memory takes 16384 at a time"),
        1);
    CHECK_EQ(times(at_most, "TAILRACE_STAGING"), 0);
    CHECK_EQ(times(few, "puts 2000 levels in it, and its share of the staging memory takes 58"), 1);
    const std::size_t at = few.find("set TAILRACE_STAGING=");
    if (CHECK(at != std::string::npos)) sufficient = std::atoi(few.c_str() + at + 21);
  }
  MPI_Bcast(&sufficient, 1, MPI_INT, server, state().comm);
  CHECK(sufficient > 1);
  CHECK_EQ(heard_of_levels(2000, "servers=1 staging=" + std::to_string(sufficient) + "MiB"), std::string());
}

#if TAILRACE_HAVE_GRIB
/// Returns the bytes of a file for which two fields of these sizes were defined. The first may be refused.
std::vector<std::byte> bytes_behind(const std::string& path, tr_index refused_side) {
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, "servers=1 staging=8MiB"), TR_OK);
  if (compute != MPI_COMM_NULL) {
    const tr_index large[] = {refused_side, refused_side}, small[] = {side, side};
    const char* const grid = "keys='gridType=unstructured_grid'";
    tr_layout* whole = nullptr;
    tr_layout* part = nullptr;
    tr_stream* stream = nullptr;
    CHECK_EQ(tr_layout_block(2, small, nullptr, &part), TR_OK);
    CHECK_EQ(tr_layout_georeference(part, grid), TR_OK);
    CHECK_EQ(tr_stream_create(path.c_str(), "base=2026-03-01T00:00Z", &stream), TR_OK);
    if (refused_side > 0) {
      CHECK_EQ(tr_layout_block(2, large, nullptr, &whole), TR_OK);
      CHECK_EQ(tr_layout_georeference(whole, grid), TR_OK);
      CHECK_EQ(tr_stream_define(stream, "u", whole, TR_F64, "levels=pressure:500"), TR_ERR_MEMORY);
      tr_layout_free(&whole);
    }
    CHECK_EQ(tr_stream_define(stream, "t", part, TR_F64, "levels=pressure:850"), TR_OK);
    tr_index count = 0;
    CHECK_EQ(tr_layout_count(part, &count), TR_OK);
    const std::vector<double> values(static_cast<std::size_t>(count), 280.0 + rank_of(compute));
    tr_stream_begin(stream, 600);
    tr_stream_put(stream, "t", values.data());
    CHECK_EQ(tr_stream_end(stream), TR_OK);
    CHECK_EQ(tr_stream_close(&stream), TR_OK);
    tr_layout_free(&part);
  }
  CHECK_EQ(tr_finalize(), TR_OK);
  quiet_barrier();
  return rank() == 0 ? contents(path) : std::vector<std::byte>();
}

// Servers take what compute rank 0 has prepared field by field.
MPI_TEST(staging, that_refuses_a_field_leaves_nothing_of_it_behind) {
  const std::string directory = fresh_directory("refused");
  const std::vector<std::byte> alone = bytes_behind(directory + "/alone.grib2", 0);
  const std::vector<std::byte> behind = bytes_behind(directory + "/behind.grib2", 3000);
  CHECK(rank() != 0 || !alone.empty());
  CHECK(alone == behind);
  quiet_barrier();
  if (rank() == 0) std::filesystem::remove_all(directory);
}
#endif

MPI_TEST(staging, that_is_too_small_names_the_value_that_suffices) {
  names_the_value_that_suffices("format=raw");
#if TAILRACE_HAVE_GRIB
  names_the_value_that_suffices("format=grib2 packing=simple");
  names_the_value_that_suffices("format=grib2 packing=ccsds");
#endif
}

#if TAILRACE_HAVE_GRIB
// A tenth of a degree: a record of 26 MB. A server gathers and encodes one in three times as much.
MPI_TEST(staging, of_a_server_holds_a_record_of_grib2_in_three_times_its_size) {
  constexpr tr_index rows = 1801, columns = 3600;
  constexpr tr_index four_for_the_servers_quarter = 4;
  const tr_index staging = four_for_the_servers_quarter * 3 * rows * columns * 4;
  for (const char* format : {"format=grib2 packing=simple", "format=grib2 packing=ccsds"}) {
    CHECK_EQ(told_of(rows, columns, "servers=1 staging=" + std::to_string(staging), format), std::string());
  }
}
#endif

/// Creates a stream and closes it. Returns the code of tr_stream_create.
int created(const std::string& name) {
  tr_stream* stream = nullptr;
  const int code = tr_stream_create(name.c_str(), "format=raw base=2026-03-01T00:00Z", &stream);
  if (stream != nullptr) CHECK_EQ(tr_stream_close(&stream), TR_OK);
  return code;
}

MPI_TEST(staging, is_allocated_for_two_steps_of_the_fields_that_are_defined) {
  constexpr std::int64_t mebibyte = 1 << 20;
  constexpr std::int64_t lane = 512 * mebibyte / 4 * 3 / 3;  // of three compute ranks
  const std::int64_t before = tailrace::process_memory("RssShmem");
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, "servers=1 staging=512MiB"), TR_OK);
  if (compute != MPI_COMM_NULL) {
    CHECK_EQ(created("never-made"), TR_OK);
    CHECK(tailrace::process_memory("RssShmem") - before < 8 * mebibyte);
    const tr_index shape[] = {3 * 1024, 512};
    tr_layout* layout = nullptr;
    tr_stream* stream = nullptr;
    CHECK_EQ(tr_layout_block(2, shape, nullptr, &layout), TR_OK);
    CHECK_EQ(tr_stream_create("never-made", "format=raw base=2026-03-01T00:00Z", &stream), TR_OK);
    CHECK_EQ(tr_stream_define(stream, "t", layout, TR_F32, "levels=hybrid:1-5"), TR_OK);
    const std::int64_t defined = tailrace::process_memory("RssShmem") - before;
    CHECK(defined >= 2 * 5 * 2 * mebibyte);
    CHECK(defined < lane / 4);
    CHECK_EQ(tr_stream_close(&stream), TR_OK);
    tr_layout_free(&layout);
  }
  CHECK_EQ(tr_finalize(), TR_OK);
}

/// While it lives, the calling process sees a node that has 1 MiB to give. Needs root.
class LittleMemory {
 public:
  LittleMemory() {
    const std::string path = "meminfo-" + std::to_string(::getpid());
    std::ofstream(path) << "MemAvailable: 1024 kB\n";
    is_there_ = ::unshare(CLONE_NEWNS) == 0 &&
                ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                ::mount(path.c_str(), "/proc/meminfo", nullptr, MS_BIND, nullptr) == 0;
    std::filesystem::remove(path);
  }
  ~LittleMemory() {
    if (is_there_) ::umount2("/proc/meminfo", MNT_DETACH);
  }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }

 private:
  bool is_there_ = false;
};

MPI_TEST(staging, that_one_rank_cannot_have_is_refused_on_all_and_may_be_asked_for_again) {
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, "servers=1 staging=64MiB"), TR_OK);
  if (compute != MPI_COMM_NULL) {
    std::optional<LittleMemory> little;
    if (rank_of(compute) == 1) little.emplace();
    int is_there = little && little->is_there() ? 1 : 0;
    MPI_Bcast(&is_there, 1, MPI_INT, 1, compute);
    if (is_there != 0) {
      CHECK_EQ(created("never-made"), TR_ERR_MEMORY);
      const std::string told = tr_error();
      CHECK(told.find("tr_stream_create(\"never-made\"") != std::string::npos);
      CHECK(told.find("of which 1048576 are to be had: set TAILRACE_STAGING lower") != std::string::npos);
    }
    little.reset();
    CHECK_EQ(created("never-made"), TR_OK);
  }
  CHECK_EQ(tr_finalize(), TR_OK);
}

/// While it lives, the calling process runs on one CPU. With the same CPU on all ranks they share a core.
class OneCpu {
 public:
  OneCpu() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before_)) ++cpu;
    MPI_Bcast(&cpu, 1, MPI_INT, 0, state().comm);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCpu() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_ = {};
};

/// Compute rank 0, which owns little, puts its second field when the others have put all of theirs. Their
/// staging memory does not hold the first one.
void put_in_lockstep(MPI_Comm compute, tr_stream* stream, const std::vector<double>& values) {
  CHECK_EQ(tr_stream_begin(stream, 0), TR_OK);
  CHECK_EQ(tr_stream_put(stream, "t", values.data()), TR_OK);
  const int ranks = state().size - 1;
  for (int other = 1; rank_of(compute) == 0 && other < ranks; ++other)
    MPI_Recv(nullptr, 0, MPI_BYTE, other, 0, compute, MPI_STATUS_IGNORE);
  CHECK_EQ(tr_stream_put(stream, "u", values.data()), TR_OK);
  if (rank_of(compute) != 0) MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, compute);
}

// Ranks that share cores leave their servers alone until a step ends, unless somebody waits for them.
MPI_TEST(staging, of_ranks_on_one_core_holds_up_nobody_who_waits_for_another) {
  constexpr tr_index rows = 400, levels = 20;
  const std::string directory = fresh_directory("lockstep");
  const OneCpu one;
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, "servers=1 staging=2MiB"), TR_OK);
  if (compute != MPI_COMM_NULL) {
    tr_layout* layout = nullptr;
    tr_stream* stream = nullptr;
    const tr_index shape[] = {rows, side};
    const double weights[] = {0.01, 1, 1}, whole[] = {1};
    const int grid[] = {3, 1};
    const double* const both[] = {weights, whole};
    CHECK_EQ(tr_layout_weighted(2, shape, nullptr, grid, both, &layout), TR_OK);
    CHECK_EQ(tr_stream_create((directory + "/fc.raw").c_str(), "format=raw base=2026-03-01T00:00Z", &stream),
             TR_OK);
    CHECK_EQ(tr_stream_define(stream, "t", layout, TR_F64, "levels=height:1-20"), TR_OK);
    CHECK_EQ(tr_stream_define(stream, "u", layout, TR_F64, "levels=height:1"), TR_OK);
    tr_index count = 0;
    CHECK_EQ(tr_layout_count(layout, &count), TR_OK);
    const std::vector<double> values(static_cast<std::size_t>(count * levels), 1.5);
    put_in_lockstep(compute, stream, values);
    CHECK_EQ(tr_stream_end(stream), TR_OK);
    CHECK_EQ(tr_stream_close(&stream), TR_OK);
    tr_layout_free(&layout);
  }
  CHECK_EQ(tr_finalize(), TR_OK);
  quiet_barrier();
  if (rank() != 0) return;
  const std::vector<std::byte> got = contents(directory + "/fc.raw");
  const auto* numbers = reinterpret_cast<const double*>(got.data());
  CHECK_EQ(std::count(numbers, numbers + got.size() / 8, 1.5), (levels + 1) * rows * side);
  std::filesystem::remove_all(directory);
}

MPI_TEST(staging, of_a_whole_step_makes_nobody_wait) {
  const std::string directory = fresh_directory("roomy");
  const std::string report_path = directory + "/report.json";
  MPI_Comm compute = MPI_COMM_NULL;
  CHECK_EQ(tr_init(state().comm, &compute, ("servers=1 staging=256MiB report=" + report_path).c_str()),
           TR_OK);
  if (compute != MPI_COMM_NULL) write(compute, directory + "/fc.raw", 1);
  CHECK_EQ(tr_finalize(), TR_OK);
  quiet_barrier();
  if (rank() != 0) return;
  check_bytes(directory + "/fc.raw");
#if TAILRACE_HAVE_JSON
  CHECK_EQ(number_in(text_of(report_path), "staging_full_count"), 0.0);
#endif
  std::filesystem::remove_all(directory);
}

MPI_TEST_MAIN
