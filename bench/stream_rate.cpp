// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Output at full rate, with one compute rank and one server, each on a core of its own, or on one rank alone
// without a server. In turn with it run loops over ecCodes that encode and write the same fields, with
// handles cloned and kept, on the core that encodes, while the library has nothing to do. All end when fsync
// has returned.
//   --columns --rows --levels (records a step)  --steps N  --packing simple|ccsds  --bits N  --type f32|f64
//   --file PATH  --newest LIBRARY --newest-path DIRECTORIES (another ecCodes, in a process of its own)
#include <fcntl.h>
#include <mpi.h>
#include <tailrace.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "clocks.hpp"
#include "eccodes_loop.hpp"
#include "give_up.hpp"
#include "peer_process.hpp"
#include "synthetic_model.hpp"

namespace {

constexpr int caller_core = 0;
constexpr int encoding_core = 1;

void check(int code) {
  if (code == TR_OK) return;
  std::fprintf(stderr, "bench: %s\n", tr_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// All records of a step, one after another, as the model holds them.
template <typename T>
std::vector<T> joined(const std::vector<std::vector<double>>& records) {
  std::vector<T> values;
  for (const std::vector<double>& each : records) values.insert(values.end(), each.begin(), each.end());
  return values;
}

/// A file whose pages go back to the system just before the library's turn. The peers empty their files just
/// before their turns, so both sides then write to pages of late use. A virtual machine's host takes other
/// free pages away, and getting one back takes several times as long.
class RecentPages {
 public:
  explicit RecentPages(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_ < 0) bench::give_up(path_.c_str(), std::strerror(errno));
  }
  ~RecentPages() { ::close(file_); }
  RecentPages(const RecentPages&) = delete;
  RecentPages& operator=(const RecentPages&) = delete;

  void take(std::uintmax_t bytes) {
    const std::vector<char> some(1 << 20);
    for (std::uintmax_t done = 0; done < bytes; done += some.size()) {
      if (::pwrite(file_, some.data(), some.size(), static_cast<off_t>(done)) <= 0)
        bench::give_up(path_.c_str(), std::strerror(errno));
    }
  }
  void give_back() {
    if (::ftruncate(file_, 0) != 0) bench::give_up(path_.c_str(), std::strerror(errno));
  }

 private:
  std::string path_;
  int file_;
};

class Rates {
 public:
  /// `core` is the core of this rank.
  Rates(const bench::Arguments& given, int core)
      : core_(core),
        levels_(given.number("--levels", 40)),
        file_(given.text("--file", "rate.grib2")),
        what_{given.number("--columns", 1000), given.number("--rows", 1000),
              given.text("--packing", "simple"), given.number("--bits", 16)},
        is_float_(given.text("--type", "f64") == "f32"),
        records_(bench::weather_records(levels_, what_.rows, what_.columns)),
        recent_pages_(file_ + ".pages"),
        cloning_(bench::linked_eccodes(), what_, file_ + ".cloned"),
        keeping_(bench::linked_eccodes(), what_, file_ + ".kept", bench::EccodesLoop::Handles::kept) {
    if (is_float_)
      floats_ = joined<float>(records_);
    else
      doubles_ = joined<double>(records_);
    if (given.has("--newest")) start_newest(given);
  }

  void open() {
    const tr_index extents[] = {what_.rows, what_.columns};
    check(tr_layout_block(2, extents, nullptr, &layout_));
    check(tr_layout_georeference(layout_,
                                 ("keys=\"" + bench::grid_keys(what_.columns, what_.rows) + "\"").c_str()));
    const bool is_grib1 = bench::is_grib1(what_.packing);
    const std::string options =
        std::string("base=2026-03-01T00:00Z ") + (is_grib1 ? "format=grib1 " : "") +
        "packing=" + what_.packing.substr(is_grib1 ? std::string("grib1_").size() : 0);
    check(tr_stream_create(file_.c_str(), options.c_str(), &stream_));
    const std::string levels =
        "bits=" + std::to_string(what_.bits) + " levels=hybrid:1-" + std::to_string(levels_);
    check(tr_stream_define(stream_, "t", layout_, is_float_ ? TR_F32 : TR_F64, levels.c_str()));
  }

  /// Returns the time from the first put until the step is durable: the processor time is that of this rank,
  /// which does everything if there is no server.
  bench::Span step(long number) {
    recent_pages_.give_back();
    const double begin = bench::wall(), used = bench::process_cpu();
    check(tr_stream_begin(stream_, number * 3600));
    check(
        tr_stream_put(stream_, "t", is_float_ ? static_cast<const void*>(floats_.data()) : doubles_.data()));
    check(tr_stream_end(stream_));
    check(tr_stream_wait(stream_, TR_DURABLE));
    return {bench::wall() - begin, bench::process_cpu() - used};
  }

  bench::Span cloned_step(long number) { return peer_step(cloning_, number); }
  bench::Span kept_step(long number) { return peer_step(keeping_, number); }
  /// Fills the file of recent pages again. Call this function at the end of a turn, outside of all measured
  /// times.
  void end_turn() { recent_pages_.take(std::filesystem::file_size(file_ + ".kept")); }
  [[nodiscard]] bench::PeerProcess* newest() { return newest_ ? &*newest_ : nullptr; }

  void close() {
    check(tr_stream_close(&stream_));
    check(tr_layout_free(&layout_));
  }
  [[nodiscard]] double points() const { return static_cast<double>(what_.columns * what_.rows * levels_); }

 private:
  /// Returns the time of a loop over ecCodes. Its file grows, as the stream's does.
  bench::Span peer_step(bench::EccodesLoop& peer, long number) {
    bench::pin_to_core(encoding_core);
    const bench::Span seconds = peer.write_step(records_, number);
    bench::pin_to_core(core_);
    return seconds;
  }
  void start_newest(const bench::Arguments& given) {
    const auto text = [](std::int64_t number) { return std::to_string(number); };
    newest_.emplace("eccodes_turns",
                    std::vector<std::string>{
                        "--library", given.text("--newest", ""), "--core", text(encoding_core), "--columns",
                        text(what_.columns), "--rows", text(what_.rows), "--levels", text(levels_),
                        "--packing", what_.packing, "--bits", text(what_.bits), "--file", file_ + ".newest"},
                    given.text("--newest-path", ""));
  }

  int core_;
  long levels_;
  std::string file_;
  bench::Written what_;
  bool is_float_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<std::vector<double>> records_;
  RecentPages recent_pages_;
  bench::EccodesLoop cloning_, keeping_;
  std::optional<bench::PeerProcess> newest_;
  tr_layout* layout_ = nullptr;
  tr_stream* stream_ = nullptr;
};

void print(const char* name, const bench::Span& span) {
  std::printf("\"%s\": %.6f, \"%s.cpu\": %.6f, ", name, span.wall, name, span.cpu);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bench::Arguments arguments(argc, argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int core = rank == 0 && ranks > 1 ? caller_core : encoding_core;
  bench::pin_to_core(core);
  MPI_Comm compute = MPI_COMM_NULL;
  check(tr_init(MPI_COMM_WORLD, &compute, nullptr));
  if (compute != MPI_COMM_NULL) {
    Rates rates(arguments, core);
    rates.open();
    std::printf("{\"points\": %.0f, \"version\": \"%s\", ", rates.points(),
                bench::linked_eccodes().version().c_str());
    if (rates.newest() != nullptr) std::printf("\"newest\": \"%s\", ", rates.newest()->about().c_str());
    std::printf("\"steps\": [");
    for (long number = 0; number < arguments.number("--steps", 6); ++number) {
      std::printf("%s{", number == 0 ? "" : ", ");
      print("ours", rates.step(number));
      print("cloned", rates.cloned_step(number));
      print("kept", rates.kept_step(number));
      if (bench::PeerProcess* const newest = rates.newest()) {
        const std::vector<double> told = newest->turn();
        print("newest.cloned", {told.at(0), told.at(1)});
        print("newest.kept", {told.at(2), told.at(3)});
      }
      rates.end_turn();
      std::printf("\"number\": %ld}", number);
    }
    std::printf("]}\n");
    rates.close();
  }
  check(tr_finalize());
  MPI_Finalize();
  return 0;
}
