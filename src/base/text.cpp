// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace tailrace {

namespace {

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
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace tailrace
