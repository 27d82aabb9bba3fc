// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Charts as inline SVG. Colours are classes of the page's style; every mark has a title with its number, and
// a table on the page has all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tailrace::reports {

/// Returns the text for HTML and XML: marks are escaped; control characters, and bytes that are no UTF-8, are
/// replaced.
std::string escaped(std::string_view text);

/// A part of a bar.
struct Segment {
  std::string style;  // a class of the page, as "k-encode"
  double value = 0;
  std::string title;  // what a pointer shows
  std::string label;  // what stands in it if there is room
};
struct StackedRow {
  std::string label;
  std::vector<Segment> segments;
};
/// Bars of segments. `longest` is the length of the axis; 0 takes it from the rows.
struct StackedChart {
  std::string id;  // of the page, unique
  std::string title;
  std::string description;
  std::vector<StackedRow> rows;
  double longest = 0;
  enum class Axis { share, seconds, bytes } axis = Axis::share;
  bool is_dense = false;  // low rows: there are many
};
std::string svg_of(const StackedChart& chart);

/// Median, p99 and max of a stream on a line.
struct RangeRow {
  std::string label;
  std::string style;
  double median = 0;
  double p99 = 0;
  double most = 0;
};
struct RangeChart {
  std::string id;
  std::string title;
  std::string description;
  std::vector<RangeRow> rows;
};
/// Returns the chart over a logarithmic axis of seconds.
std::string svg_of(const RangeChart& chart);

}  // namespace tailrace::reports
