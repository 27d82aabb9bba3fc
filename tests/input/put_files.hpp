// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Writes the files that tests of input streams read, by a stream, and checks the values that tests get from
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "input/ranks.hpp"
#include "mpi/scene.hpp"

namespace tailrace::input_test {

using namespace tailrace::mpi_test;
using namespace tailrace::scene;

inline constexpr std::int64_t last_hour = 12;
inline constexpr double accuracy = 0.001;
inline const char* const put_levels = "levels=pressure:1000,850,500 accuracy=0.001 ";
inline const char* const own_levels = "levels=pressure:1000,850,500";

/// True for elements without a value: some of the field r.
inline bool is_hole(int field, tr_index element) { return field == 2 && element % 7 == 3; }

inline const std::vector<std::string> names = {"t", "u", "r"};

/// Writes the fields every three hours to a file for each step, and to files of several formats with all
/// steps.
inline void put_all(MPI_Comm compute, const std::string& directory) {
  std::vector<std::unique_ptr<Array>> arrays;
  for (std::size_t field = 0; field < names.size(); ++field) {
    arrays.push_back(std::make_unique<Array>("block", compute, TR_F64));
    expect(tr_layout_georeference(arrays.back()->layout(), grid_keys));
  }
  for (const std::string pattern : {"/bd+{lead:03h}.grib2", "/all.grib2", "/all.raw", "/all.nc"}) {
    tr_stream* out = nullptr;
    const bool is_raw = pattern == "/all.raw";
    expect(tr_stream_create((directory + pattern).c_str(),
                            (base + std::string(is_raw ? "format=raw" : "")).c_str(), &out));
    for (std::size_t field = 0; field < names.size(); ++field)
      expect(tr_stream_define(
          out, names[field].c_str(), arrays[field]->layout(), TR_F64,
          (std::string(is_raw ? own_levels : put_levels) + (field == 2 ? " missing=-5000" : "")).c_str()));
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
inline const std::string& input() {
  static const std::string directory = [] {
    std::string made = fresh_directory("input");
    on_ranks(1, 0, "", [&](MPI_Comm compute) { put_all(compute, made); });
    return made;
  }();
  return directory;
}

/// Checks the values of an array at hour `at`. `order` has for each of its levels the number that it has
/// among the levels that were put.
inline void check_values(const Array& array, int field, double at, const std::vector<tr_index>& order,
                         const std::string& where) {
  double worst = 0;
  for (tr_index own = 0; own < array.owned(); ++own) {
    for (std::size_t l = 0; l < order.size(); ++l) {
      const tr_index element = array.element(own);
      const auto lead = static_cast<std::int64_t>(at * hour);
      // Between two steps of the files, values are interpolated linearly.
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

}  // namespace tailrace::input_test
