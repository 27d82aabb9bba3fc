// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Streams that are read: the ranks get what was put, whatever layouts, allocations, orders of levels, types,
// leads and numbers of ranks, threads and servers there are. Errors are the same on every rank.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include "mpi/scene.hpp"
#include "support/captured_stderr.hpp"

using namespace tailrace::mpi_test;
using namespace tailrace::scene;

namespace {

constexpr std::int64_t hour = 3600;
constexpr std::int64_t last_hour = 12;
constexpr double accuracy = 0.001;
constexpr double hole = -5000;
const char* const put_levels = "levels=pressure:1000,850,500 accuracy=0.001 ";
const char* const base = "base=2026-03-01T00:00Z ";

bool expect(int code) {
  return CHECK_EQ(code == TR_OK ? std::string("no error") : std::string(tr_error()), std::string("no error"));
}

/// Runs `body` on the first `ranks` ranks of the world, served by `servers` more.
void on_ranks(int ranks, int servers, const std::string& settings,
              const std::function<void(MPI_Comm)>& body) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(state().comm, rank() < ranks + servers ? 0 : MPI_UNDEFINED, rank(), &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm compute = MPI_COMM_NULL;
    const std::string options = "servers=" + std::to_string(servers) + " staging=8MiB " + settings;
    expect(tr_init(part, &compute, options.c_str()));
    if (compute != MPI_COMM_NULL) body(compute);
    expect(tr_finalize());
    MPI_Comm_free(&part);
  }
  quiet_barrier();
}

/// In the field r some elements have no value.
bool is_hole(int field, tr_index element) { return field == 2 && element % 7 == 3; }

const std::vector<std::string> names = {"t", "u", "r"};

/// Puts the fields every three hours: a file for each step, and one with all steps.
void put_all(MPI_Comm compute, const std::string& directory) {
  std::vector<std::unique_ptr<Array>> arrays;
  for (std::size_t field = 0; field < names.size(); ++field) {
    arrays.push_back(std::make_unique<Array>("block", compute, TR_F64));
    expect(tr_layout_georeference(arrays.back()->layout(), grid_keys));
  }
  for (const char* const pattern : {"/bd+{lead:03h}.grib2", "/all.grib2"}) {
    tr_stream* out = nullptr;
    expect(tr_stream_create((directory + pattern).c_str(), base, &out));
    for (std::size_t field = 0; field < names.size(); ++field)
      expect(tr_stream_define(out, names[field].c_str(), arrays[field]->layout(), TR_F64,
                              (put_levels + std::string(field == 2 ? "missing=-5000" : "")).c_str()));
    for (std::int64_t at = 0; at <= last_hour; at += 3) {
      tr_stream_begin(out, at * hour);
      for (int field = 0; field < 3; ++field) {
        Array& array = *arrays[static_cast<std::size_t>(field)];
        array.fill(field, at * hour);
        for (tr_index own = 0; own < array.owned(); ++own)
          for (tr_index level = 0; level < levels; ++level)
            if (is_hole(field, array.element(own))) array.set(own, level, hole);
        tr_stream_put(out, names[static_cast<std::size_t>(field)].c_str(), array.data());
      }
      expect(tr_stream_end(out));
    }
    expect(tr_stream_close(&out));
  }
}

/// Collective over the world. Returns the directory of the files that all cases read.
const std::string& input() {
  static const std::string directory = [] {
    std::string made = fresh_directory("input");
    on_ranks(1, 0, "", [&](MPI_Comm compute) { put_all(compute, made); });
    return made;
  }();
  return directory;
}

/// The levels of `order` are numbers of levels as they were put.
void check_values(const Array& array, int field, double at, const std::vector<tr_index>& order,
                  const std::string& where) {
  double worst = 0;
  for (tr_index own = 0; own < array.owned(); ++own) {
    for (std::size_t l = 0; l < order.size(); ++l) {
      const tr_index element = array.element(own);
      const auto lead = static_cast<std::int64_t>(at * hour);
      // Between two steps of the files values are on a line.
      const auto before = lead / (3 * hour) * (3 * hour);
      const double weight = static_cast<double>(lead - before) / (3.0 * hour);
      double wanted = value(field, before, order[l], element);
      if (weight > 0)
        wanted = (1 - weight) * wanted + weight * value(field, before + 3 * hour, order[l], element);
      if (is_hole(field, element)) wanted = hole;
      const double off = std::fabs(array.get(own, static_cast<tr_index>(l)) - wanted);
      worst = std::isnan(off) ? INFINITY : std::max(worst, off);
    }
  }
  if (!CHECK(worst <= accuracy)) std::fprintf(stderr, "  %s: off by %g\n", where.c_str(), worst);
}

/// What is read, and how.
struct Reading {
  std::string pattern = "/bd+{lead:03h}.grib2";
  std::string options;
  std::string kind = "block";
  int type = TR_F32;
  std::vector<double> hours = {0, 3, 6, 9, 12};
};

void read_and_check(MPI_Comm compute, const Reading& reading) {
  Array array(reading.kind, compute, reading.type);
  CHECK_EQ(array.error(), std::string());
  expect(tr_layout_georeference(array.layout(), grid_keys));
  tr_stream* in = nullptr;
  if (!expect(tr_stream_open((input() + reading.pattern).c_str(), (base + reading.options).c_str(), &in)))
    return;
  const std::string order = "levels=pressure:500,1000,850 missing=-5000 ";
  for (const std::string& name : names)
    expect(
        tr_stream_define(in, name.c_str(), array.layout(), reading.type, (order + array.options()).c_str()));
  for (const double at : reading.hours) {
    tr_stream_begin(in, static_cast<std::int64_t>(at * hour));
    for (int field = 2; field >= 0; --field) {
      array.fill(7, 99);
      tr_stream_get(in, names[static_cast<std::size_t>(field)].c_str(), array.data());
      if (field == 0) continue;
      check_values(array, field, at, {2, 0, 1}, reading.kind + " at " + std::to_string(at));
    }
    if (expect(tr_stream_end(in)))
      check_values(array, 0, at, {2, 0, 1}, reading.kind + " at " + std::to_string(at));
  }
  expect(tr_stream_close(&in));
}

MPI_TEST(input, every_layout_and_allocation_gets_what_was_put) {
  input();
  on_ranks(size(), 0, "io_threads=2", [&](MPI_Comm compute) {
    for (const std::string& kind : kinds) read_and_check(compute, {.kind = kind});
    read_and_check(compute, {.options = "prefetch=0", .kind = "halo", .type = TR_F64});
  });
}

MPI_TEST(input, all_ranks_threads_and_servers_get_the_same) {
  input();
  for (int ranks = 1; ranks <= size(); ++ranks) {
    const std::string threads = ranks % 2 == 0 ? "io_threads=0" : "io_threads=1";
    on_ranks(ranks, ranks < size() && ranks % 3 == 0 ? 1 : 0, threads, [&](MPI_Comm compute) {
      read_and_check(compute, {.pattern = "/all.grib2", .kind = "weighted"});
      // Leads go back, and over steps of the files.
      read_and_check(compute, {.options = "prefetch=3", .kind = "halo", .hours = {12, 9, 6, 0, 9, 3, 3}});
      read_and_check(compute, {.options = "between=linear prefetch=1",
                               .kind = "cyclic",
                               .type = TR_F64,
                               .hours = {0, 1, 1.5, 3, 5.25, 12, 11, 7}});
    });
  }
}

}  // namespace

MPI_TEST_MAIN
