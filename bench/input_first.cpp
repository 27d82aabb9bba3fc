// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Seconds until a program has one field of a set of GRIB files: the first after its start, and then one of
// the last file. With --way tailrace through the public calls; otherwise as a program with ecCodes does it,
// where rank 0 finds and decodes the message and scatters it: by an index of the file, by one of all files,
// or by looking through the file. Without --way it writes the files; grib_index_build makes indexes.
#include <eccodes.h>
#include <mpi.h>
#include <tailrace.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "clocks.hpp"

namespace {

// A file has the fields t, u and v on levels of 25, 50, ... hPa. The field that is asked for lies in its
// middle.
constexpr const char* fields[] = {"t", "u", "v"};
constexpr long parameters[] = {0, 2, 3};
constexpr long categories[] = {0, 2, 2};
constexpr int wanted_field = 1;
constexpr long every_hours = 3;
constexpr const char* base = "base=2026-03-01T00:00Z";

[[noreturn]] void give_up(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "input_first: %s: %s\n", what.c_str(), why.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::exit(1);
}

void check(int error, const std::string& what) {
  if (error != CODES_SUCCESS) give_up(what, codes_get_error_message(error));
}

/// The files, and which of them a run needs.
struct Set {
  std::string directory;
  long columns = 0, rows = 0, levels = 0, files = 0;

  [[nodiscard]] std::string name(long file) const {
    char text[32];
    std::snprintf(text, sizeof text, "f_%03ld", file * every_hours);
    return text;
  }
  [[nodiscard]] std::string path(long file) const { return directory + "/" + name(file) + ".grib2"; }
  [[nodiscard]] std::string index(long file) const { return directory + "/indexes/" + name(file); }
  [[nodiscard]] std::string index() const { return directory + "/indexes/all"; }
  [[nodiscard]] long wanted_level() const { return 25 * (levels / 2); }
  [[nodiscard]] std::size_t points() const { return static_cast<std::size_t>(columns * rows); }
};

// ---- the files
// -------------------------------------------------------------------------------------------------

codes_handle* new_message(const Set& set) {
  codes_handle* const message = codes_grib_handle_new_from_samples(nullptr, "GRIB2");
  if (message == nullptr) give_up("ecCodes", "has no sample GRIB2");
  check(codes_set_long(message, "Ni", set.columns), "Ni");
  check(codes_set_long(message, "Nj", set.rows), "Nj");
  check(codes_set_long(message, "dataDate", 20260301), "dataDate");
  check(codes_set_long(message, "dataTime", 0), "dataTime");
  check(codes_set_long(message, "bitsPerValue", 16), "bitsPerValue");
  std::size_t length = 13;
  check(codes_set_string(message, "typeOfLevel", "isobaricInhPa", &length), "typeOfLevel");
  return message;
}

void write_file(const Set& set, codes_handle* message, long number, std::vector<double>& values) {
  std::FILE* const file = std::fopen(set.path(number).c_str(), "wb");
  if (file == nullptr) give_up(set.path(number), "cannot be written");
  check(codes_set_long(message, "forecastTime", number * every_hours), "forecastTime");
  for (std::size_t field = 0; field < std::size(fields); ++field) {
    std::size_t length = 1;
    check(codes_set_string(message, "shortName", fields[field], &length), "shortName");
    for (long level = 1; level <= set.levels; ++level) {
      check(codes_set_long(message, "level", 25 * level), "level");
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto x = static_cast<double>(i % static_cast<std::size_t>(set.columns)),
                   y = static_cast<double>(i) / static_cast<double>(set.columns);
        values[i] = static_cast<double>(number + level) +
                    30 * std::sin(x / 9 + static_cast<double>(field)) * std::cos(y / 7);
      }
      check(codes_set_double_array(message, "values", values.data(), values.size()), "values");
      const void* bytes = nullptr;
      check(codes_get_message(message, &bytes, &length), "message");
      if (std::fwrite(bytes, 1, length, file) != length) give_up(set.path(number), "cannot be written");
    }
  }
  if (std::fclose(file) != 0) give_up(set.path(number), "cannot be written");
}

void make(const Set& set) {
  codes_handle* const message = new_message(set);
  std::vector<double> values(set.points());
  for (long number = 0; number < set.files; ++number) write_file(set, message, number, values);
  codes_handle_delete(message);
}

// ---- the ways
// --------------------------------------------------------------------------------------------------

/// One way to a field. A rank's part is what its model would have.
class Way {
 public:
  virtual ~Way() = default;
  /// Returns this rank's part of the field at the step of this file. The first call opens.
  virtual const std::vector<double>& get(long file) = 0;
  virtual void close() {}
};

class ByTailrace final : public Way {
 public:
  ByTailrace(const Set& set, std::string options) : set_(set), options_(std::move(options)) {}

  const std::vector<double>& get(long file) override {
    const std::int64_t lead = file * every_hours * 3600;
    if (stream_ == nullptr)
      open();
    else
      check(tr_stream_seek(stream_, lead));
    check(tr_stream_begin(stream_, lead));
    check(tr_stream_get(stream_, fields[wanted_field], part_.data()));
    check(tr_stream_end(stream_));
    return part_;
  }

  void close() override {
    check(tr_stream_close(&stream_));
    tr_layout_free(&layout_);
  }

 private:
  static void check(int error) {
    if (error != TR_OK) give_up("tailrace", tr_error());
  }

  void open() {
    const tr_index shape[] = {set_.rows, set_.columns};
    tr_index lower[2], upper[2];
    check(tr_layout_block(2, shape, nullptr, &layout_));
    check(tr_layout_bounds(layout_, 0, lower, upper));
    part_.resize(static_cast<std::size_t>((upper[0] - lower[0]) * (upper[1] - lower[1])));
    check(tr_stream_open((set_.directory + "/f_{lead:03h}.grib2").c_str(),
                         (std::string(base) + " " + options_).c_str(), &stream_));
    check(tr_stream_define(stream_, fields[wanted_field], layout_, TR_F64,
                           ("levels=pressure:" + std::to_string(set_.wanted_level())).c_str()));
  }

  const Set& set_;
  const std::string options_;
  tr_layout* layout_ = nullptr;
  tr_stream* stream_ = nullptr;
  std::vector<double> part_;
};

/// Rank 0 decodes; every rank gets some rows.
class ByEccodes : public Way {
 public:
  ByEccodes(const Set& set, MPI_Comm ranks) : set_(set), ranks_(ranks) {
    MPI_Comm_rank(ranks_, &rank_);
    int size = 0;
    MPI_Comm_size(ranks_, &size);
    for (int rank = 0; rank < size; ++rank) {
      const long begin = set_.rows * rank / size, end = set_.rows * (rank + 1) / size;
      offsets_.push_back(static_cast<int>(begin * set_.columns));
      counts_.push_back(static_cast<int>((end - begin) * set_.columns));
    }
    part_.resize(static_cast<std::size_t>(counts_[static_cast<std::size_t>(rank_)]));
    if (rank_ == 0) whole_.resize(set_.points());
  }

  const std::vector<double>& get(long file) final {
    if (rank_ == 0) {
      codes_handle* const message = find(file);
      if (message == nullptr) give_up(set_.path(file), "has no such message");
      std::size_t count = whole_.size();
      check(codes_get_double_array(message, "values", whole_.data(), &count), "values");
      codes_handle_delete(message);
    }
    MPI_Scatterv(whole_.data(), counts_.data(), offsets_.data(), MPI_DOUBLE, part_.data(),
                 static_cast<int>(part_.size()), MPI_DOUBLE, 0, ranks_);
    return part_;
  }

 protected:
  virtual codes_handle* find(long file) = 0;
  const Set& set_;

 private:
  MPI_Comm ranks_;
  int rank_ = 0;
  std::vector<int> counts_, offsets_;
  std::vector<double> part_, whole_;
};

/// The index names the file and the place of the message in it.
class ByIndex final : public ByEccodes {
 public:
  ByIndex(const Set& set, MPI_Comm ranks, bool is_of_all) : ByEccodes(set, ranks), is_of_all_(is_of_all) {}
  ~ByIndex() override {
    if (index_ != nullptr) codes_index_delete(index_);
  }

 protected:
  codes_handle* find(long file) override {
    int error = 0;
    if (!is_of_all_ && index_ != nullptr) codes_index_delete(std::exchange(index_, nullptr));
    const std::string name = is_of_all_ ? set_.index() : set_.index(file);
    if (index_ == nullptr) index_ = codes_index_read(nullptr, name.c_str(), &error);
    check(error, name);
    check(codes_index_select_string(index_, "shortName", fields[wanted_field]), "shortName");
    check(codes_index_select_long(index_, "level", set_.wanted_level()), "level");
    if (is_of_all_) check(codes_index_select_long(index_, "step", file * every_hours), "step");
    codes_handle* const message = codes_handle_new_from_index(index_, &error);
    check(error, name);
    return message;
  }

 private:
  const bool is_of_all_;
  codes_index* index_ = nullptr;
};

/// The cheapest keys are compared, the one that mostly differs first.
class ByScan final : public ByEccodes {
 public:
  using ByEccodes::ByEccodes;

 protected:
  codes_handle* find(long file) override {
    std::FILE* const stream = std::fopen(set_.path(file).c_str(), "rb");
    if (stream == nullptr) give_up(set_.path(file), "cannot be opened");
    const auto is = [](codes_handle* message, const char* key, long expected) {
      long value = -1;
      check(codes_get_long(message, key, &value), key);
      return value == expected;
    };
    codes_handle* found = nullptr;
    for (int error = 0; found == nullptr;) {
      codes_handle* const message = codes_handle_new_from_file(nullptr, stream, PRODUCT_GRIB, &error);
      if (message == nullptr) break;
      if (is(message, "level", set_.wanted_level()) &&
          is(message, "parameterNumber", parameters[wanted_field]) &&
          is(message, "parameterCategory", categories[wanted_field]))
        found = message;
      else
        codes_handle_delete(message);
    }
    std::fclose(stream);
    return found;
  }
};

// ---- the run
// ---------------------------------------------------------------------------------------------------

/// Collective. Seconds from when the first rank could begin until the last one has its part; the sum of all
/// values.
double timed_get(Way& way, long file, MPI_Comm ranks, double& sum) {
  MPI_Barrier(ranks);
  double begin = bench::wall(), first = 0, last = 0;
  const std::vector<double>& part = way.get(file);
  double end = bench::wall(), mine = 0;
  for (const double each : part) mine += each;
  MPI_Allreduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, ranks);
  MPI_Allreduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, ranks);
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, ranks);
  return last - first;
}

std::unique_ptr<Way> way_called(const std::string& name, const Set& set, MPI_Comm ranks,
                                const std::string& options) {
  if (name == "tailrace") return std::make_unique<ByTailrace>(set, options);
  if (name == "scan") return std::make_unique<ByScan>(set, ranks);
  if (name == "index" || name == "index_all")
    return std::make_unique<ByIndex>(set, ranks, name == "index_all");
  give_up(name, "is no way; there are tailrace, scan, index and index_all");
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv);
  const Set set{arguments.text("--directory", "."), arguments.number("--columns", 156),
                arguments.number("--rows", 126), arguments.number("--levels", 40),
                arguments.number("--files", 48)};
  MPI_Init(&argc, &argv);
  MPI_Comm ranks = MPI_COMM_WORLD;
  const std::string name = arguments.text("--way", "make");
  const bool is_ours = name == "tailrace";
  if (name == "make") make(set);
  if (is_ours && tr_init(MPI_COMM_WORLD, &ranks, nullptr) != TR_OK) give_up("tailrace", tr_error());
  if (name != "make") {
    const std::unique_ptr<Way> way = way_called(name, set, ranks, arguments.text("--options", ""));
    double sums[2];
    const double first = timed_get(*way, 0, ranks, sums[0]);
    const double far = timed_get(*way, set.files - 1, ranks, sums[1]);
    way->close();
    int rank = 0;
    MPI_Comm_rank(ranks, &rank);
    if (rank == 0)
      std::printf("{\"first\": %.9f, \"far\": %.9f, \"sums\": [%.17g, %.17g]}\n", first, far, sums[0],
                  sums[1]);
  } else {
    std::printf("{}\n");
  }
  if (is_ours) tr_finalize();
  MPI_Finalize();
  return 0;
}
