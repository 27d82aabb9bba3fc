// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include "own_file.hpp"

// Files of the library's own streams whose numbers of each step look like something else.
namespace tailrace::variables::test {

/// Returns own_stream() with a number of each step that readers of other programs' files take for a
/// coordinate of a map; with `has_model_times` the steps are at times from no date, and the number looks like
/// a date.
inline OwnStream own_stream_with_number(const std::string& format, bool has_model_times) {
  OwnStream own = own_stream(format);
  own.fields.push_back(own_field("lat", ElementType::f64, {}, {}));
  own.fields.back().attributes = {{"units", has_model_times ? "days since 1990-01-01" : "degrees_north"}};
  if (!has_model_times) return own;
  own.stream.time = TimeAxis::of_model();
  own.leads = {0, *TimeAxis::code_of(0.25), *TimeAxis::code_of(0.75)};
  return own;
}

/// Expects all fields of own_stream_with_number() at all steps.
inline void expect_number(const Source& source, const OwnStream& own) {
  EXPECT_EQ(source.inventory().time, own.stream.time);
  const std::vector<Record> t = records_of(source, "t"), lat = records_of(source, "lat");
  ASSERT_EQ(t.size(), 6U);
  ASSERT_EQ(lat.size(), 3U);
  for (std::size_t step = 0; step < 3; ++step) {
    EXPECT_EQ(all_of(source, lat[step]).values, std::vector<double>{own_value(step, 3, 0, 0)});
    EXPECT_EQ(all_of(source, t[2 * step + 1]).values[3], own_value(step, 0, 1, 3));
    if (own.stream.time.is_model()) EXPECT_EQ(lat[step].valid, own.leads[step]);
  }
}

}  // namespace tailrace::variables::test
