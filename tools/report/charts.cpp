// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "charts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "ground/base/text.hpp"
#include "words.hpp"

namespace tailrace::reports {

namespace {

constexpr double kWidth = 960, kLeft = 210, kRight = 30, kTop = 8, kAxis = 30;

std::string place(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", std::clamp(value, -1e6, 1e6));
  return text.data();
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view style = {}) {
  return cat("<text x=\"", place(x), "\" y=\"", place(y), "\" text-anchor=\"", anchor, "\"",
             style.empty() ? "" : cat(" class=\"", style, "\""), ">", escaped(text), "</text>\n");
}

std::string line_at(double x0, double y0, double x1, double y1, std::string_view style) {
  return cat("<line class=\"", style, "\" x1=\"", place(x0), "\" y1=\"", place(y0), "\" x2=\"", place(x1),
             "\" y2=\"", place(y1), "\"/>\n");
}

std::string begin_of(const std::string& id, const std::string& title, const std::string& description,
                     double height) {
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", place(kWidth), " ", place(height),
             "\" role=\"img\" aria-labelledby=\"", id, "-t ", id, "-d\">\n<title id=\"", id, "-t\">",
             escaped(title), "</title>\n<desc id=\"", id, "-d\">", escaped(description), "</desc>\n");
}

/// Returns a label with its whole text for the pointer.
std::string label_at(double y, const std::string& label) {
  return cat("<g><title>", escaped(label), "</title>",
             text_at(kLeft - 10, y + 4, "end", shortened(label, 28), "label"), "</g>\n");
}

/// Returns 1, 2 or 5 times a power of ten: the distance of some 5 ticks up to `longest`.
double distance_of_ticks(double longest) {
  const double rough = longest / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

/// Returns "0.5 s", "20 ms" or "10 s": ticks are round numbers.
std::string tick_seconds(double seconds) {
  std::array<char, 32> text{};
  const bool is_short = seconds < 0.0999 && seconds > 0;
  std::snprintf(text.data(), text.size(), is_short ? "%.6g ms" : "%.6g s",
                is_short ? seconds * 1e3 : seconds);
  return text.data();
}

std::string tick_text(StackedChart::Axis axis, double value) {
  if (axis == StackedChart::Axis::share) return percent_text(value);
  return axis == StackedChart::Axis::bytes ? bytes_text(value) : tick_seconds(value);
}

double longest_of(const StackedChart& chart) {
  double longest = chart.longest;
  for (const StackedRow& row : chart.rows) {
    double sum = 0;
    for (const Segment& segment : row.segments) sum += segment.value;
    longest = std::max(longest, sum);
  }
  return std::isfinite(longest) && longest > 1e-12 ? longest : 1;
}

/// True of colours on which the page's ink is read, in light and dark.
bool is_pale(std::string_view style) {
  for (const std::string_view pale : {"k-model", "k-idle", "k-assemble", "k-skew", "k-wait_for_messages",
                                      "k-wait_for_storage", "k-wait_for_encoding"}) {
    if (style == pale) return true;
  }
  return false;
}

std::string bar_of(const StackedRow& row, double y, double height, double scale) {
  std::string out;
  double x = kLeft;
  for (const Segment& segment : row.segments) {
    const double width = segment.value * scale;
    if (!(width > 0)) continue;
    out += cat("<rect class=\"", segment.style, "\" x=\"", place(x), "\" y=\"", place(y), "\" width=\"",
               place(std::max(width - 0.6, 0.4)), "\" height=\"", place(height), "\"><title>",
               escaped(segment.title), "</title></rect>\n");
    const double needs = 7.0 * static_cast<double>(characters_in(segment.label)) + 10;
    if (!segment.label.empty() && width > needs)
      out += text_at(x + width / 2, y + height / 2 + 4, "middle", segment.label,
                     is_pale(segment.style) ? "in" : "in strong");
    x += width;
  }
  return out;
}

/// An axis whose ticks are powers of ten, from below the least value to above the largest.
struct Decades {
  explicit Decades(const std::vector<RangeRow>& rows) {
    double least = 1e300, most = 0;
    for (const RangeRow& row : rows) {
      for (const double value : {row.median, row.p99, row.most}) {
        if (value > 0 && std::isfinite(value)) least = std::min(least, value);
        if (std::isfinite(value)) most = std::max(most, value);
      }
    }
    if (most <= 0) least = most = 1;
    first = static_cast<int>(std::floor(std::log10(least)));
    last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(most))));
    first = std::max(first, last - 12);
  }
  [[nodiscard]] double x(double value) const {
    const double low = first, high = last;
    const double at = value > 0 ? std::clamp(std::log10(value), low, high) : low;
    return kLeft + (kWidth - kLeft - kRight) * (at - low) / (high - low);
  }
  int first = 0;
  int last = 1;
};

std::string range_of(const RangeRow& row, const Decades& axis, double y) {
  const auto mark = [&](double value, std::string_view what, const std::string& shape) {
    return cat("<g class=\"", row.style, "\"><title>",
               escaped(cat(row.label, ": ", what, " ", seconds_text(value))), "</title>", shape, "</g>\n");
  };
  const double median = axis.x(row.median), p99 = axis.x(row.p99), most = axis.x(row.most);
  return line_at(median, y, most, y, row.style + " range") +
         mark(row.median, "median",
              cat("<circle cx=\"", place(median), "\" cy=\"", place(y), "\" r=\"6\"/>")) +
         mark(row.p99, "p99",
              cat("<rect x=\"", place(p99 - 2), "\" y=\"", place(y - 8), "\" width=\"4\" height=\"16\"/>")) +
         mark(row.most, "max",
              cat("<path d=\"M", place(most - 6), " ", place(y), " L", place(most), " ", place(y - 6), " L",
                  place(most + 6), " ", place(y), " L", place(most), " ", place(y + 6), " Z\"/>"));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_of_character(text, at);
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    at += character.size();
    if (character == "&")
      out += "&amp;";
    else if (character == "<")
      out += "&lt;";
    else if (character == ">")
      out += "&gt;";
    else if (character == "\"")
      out += "&quot;";
    else if (character == "'")
      out += "&#39;";
    else if (length == 0 || plain(character) != character || character == "\xEF\xBF\xBE" ||
             character == "\xEF\xBF\xBF")
      out += "\xEF\xBF\xBD";  // also the two last ones of a plane, which XML does not take
    else
      out += character;
  }
  return out;
}

std::string svg_of(const StackedChart& chart) {
  const double row = chart.is_dense ? 17 : 30, bar = chart.is_dense ? 13 : 22;
  const double bottom = kTop + row * static_cast<double>(chart.rows.size());
  const double longest = longest_of(chart), scale = (kWidth - kLeft - kRight) / longest;
  std::string out = begin_of(chart.id, chart.title, chart.description, bottom + kAxis);
  const double distance = chart.axis == StackedChart::Axis::share ? longest / 4 : distance_of_ticks(longest);
  for (int tick = 0; distance * tick <= longest * 1.0001; ++tick) {
    const double x = kLeft + distance * tick * scale;
    out += line_at(x, kTop, x, bottom, "grid") +
           text_at(x, bottom + 18, "middle", tick_text(chart.axis, distance * tick));
  }
  double y = kTop;
  for (const StackedRow& each : chart.rows) {
    out += label_at(y + row / 2, each.label) + bar_of(each, y + (row - bar) / 2, bar, scale);
    y += row;
  }
  return out + "</svg>\n";
}

std::string svg_of(const RangeChart& chart) {
  constexpr double row = 30;
  const double bottom = kTop + row * static_cast<double>(chart.rows.size());
  const Decades axis(chart.rows);
  std::string out = begin_of(chart.id, chart.title, chart.description, bottom + kAxis);
  for (int power = axis.first; power <= axis.last; ++power) {
    const double x = axis.x(std::pow(10.0, power));
    out += line_at(x, kTop, x, bottom, "grid") +
           text_at(x, bottom + 18, "middle", tick_seconds(std::pow(10.0, power)));
  }
  double y = kTop;
  for (const RangeRow& each : chart.rows) {
    out += label_at(y + row / 2, each.label) + range_of(each, axis, y + row / 2);
    y += row;
  }
  return out + "</svg>\n";
}

}  // namespace tailrace::reports
