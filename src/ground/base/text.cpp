// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace tailrace {

namespace {

/// Words of other programs, each with this library's word of the same meaning.
constexpr std::pair<std::string_view, std::string_view> foreign_words[] = {
    {"append", "continue"},
    {"resume", "continue"},
    {"restart", "continue"},
    {"clobber", "overwrite"},
    {"truncate", "overwrite"},
    {"error", "fail"},
    {"avg", "average"},
    {"mean", "average"},
    {"average", "mean"},
    {"avg", "mean"},
    {"sum", "accum"},
    {"total", "accum"},
    {"snapshot", "instant"},
    {"skip", "omit"},
    {"point", "instant"},
    {"_fillvalue", "missing"},
    {"fill_value", "missing"},
    {"fillvalue", "missing"},
    {"missing_value", "missing"},
    {"precision", "accuracy"},
    {"tolerance", "accuracy"},
    {"compression", "compress"},
};

std::string changed_case(std::string_view text, char first, char last, int shift) {
  std::string out(text);
  for (char& c : out) {
    if (c >= first && c <= last) c = static_cast<char>(c + shift);
  }
  return out;
}

}  // namespace

std::string lower_case(std::string_view text) { return changed_case(text, 'A', 'Z', 'a' - 'A'); }

std::string upper_case(std::string_view text) { return changed_case(text, 'a', 'z', 'A' - 'a'); }

void text_detail::append(std::string& out, double part) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, part);
  if (error == std::errc{}) out.append(buffer, end);
}

std::string size_text(Bytes bytes) {
  if (bytes < 1024) return counted(bytes, "byte");
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.5; value /= 1024) ++unit;
  const double step = value < 10 ? 100 : value < 100 ? 10 : 1;
  return cat(std::round(value * step) / step, units[unit]);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // The rows of the table for the last letter but one, for the last letter, and for the current letter.
  std::vector<std::size_t> older(b.size() + 1), old(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(older, old);
    std::swap(old, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, old[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], older[j - 2] + 1);
    }
  }
  return row[b.size()];
}

bool is_slip_of(std::string_view word, std::string_view known) {
  if (word == known || word.empty()) return false;
  const std::size_t shorter = std::min(word.size(), known.size());
  // A word of one or two letters would be near to too many others.
  const std::size_t most = shorter <= 2 ? 0 : shorter <= 4 ? 1 : 2;
  return edit_distance(lower_case(word), lower_case(known)) <= most;
}

std::size_t distance_of_words(std::string_view word, std::string_view known) {
  const std::string one = lower_case(word), other = lower_case(known);
  for (const auto& [foreign, ours] : foreign_words) {
    if (one == foreign && other == ours) return 0;
  }
  if (is_slip_of(one, other) || one == other) return edit_distance(one, other);
  const std::size_t shorter = std::min(one.size(), other.size());
  const std::size_t more = std::max(one.size(), other.size()) - shorter;
  const bool begins = one.compare(0, shorter, other, 0, shorter) == 0;
  // Farther than any slip.
  return begins && shorter > 0 && (shorter >= 3 || more == 1) ? other.size() + more : not_near;
}

}  // namespace tailrace
