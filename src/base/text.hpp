// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace tailrace {

namespace text_detail {
inline void append(std::string& out, std::string_view part) { out += part; }
inline void append(std::string& out, char part) { out += part; }
template <std::integral T>
requires(!std::same_as<T, char>) void append(std::string& out, T part) { out += std::to_string(part); }
void append(std::string& out, double part);
}  // namespace text_detail

/// Joins the parts as text: strings as they are, integers in decimal, doubles in the shortest form that reads
/// back to the same value.
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (text_detail::append(out, parts), ...);
  return out;
}

/// "1 step", "2 steps". Pass `many` if the plural is more than an s: "2 processes".
template <std::integral T>
std::string counted(T count, std::string_view one, std::string_view many = {}) {
  if (count == 1) return cat(count, " ", one);
  return many.empty() ? cat(count, " ", one, "s") : cat(count, " ", many);
}

/// The letters of ASCII in the other case, whatever the locale.
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

/// Returns a size rounded to three digits, as "512 bytes", "64KiB", "1.5GiB".
std::string size_text(Bytes bytes);

std::size_t edit_distance(std::string_view a, std::string_view b);
/// Returns the entry of `known` with the smallest edit distance to `word`: the key probably meant by a
/// misspelt one. Returns nothing if `known` is empty.
template <typename Range>
std::string nearest(std::string_view word, const Range& known) {
  const auto distance = [word](std::string_view each) { return edit_distance(word, each); };
  const auto best = std::ranges::min_element(known, {}, distance);
  return best == std::ranges::end(known) ? std::string() : std::string(*best);
}

}  // namespace tailrace
