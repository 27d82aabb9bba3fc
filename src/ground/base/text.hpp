// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>

#include "ground/base/types.hpp"

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

/// Returns "1 step", "2 steps". Pass `many` if the plural takes more than an s: "2 processes".
template <std::integral T>
std::string counted(T count, std::string_view one, std::string_view many = {}) {
  if (count == 1) return cat(count, " ", one);
  return many.empty() ? cat(count, " ", one, "s") : cat(count, " ", many);
}

/// Change the case of ASCII letters only, independently of the locale.
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

/// Returns a size rounded to three digits, as "512 bytes", "64KiB", "1.5GiB".
std::string size_text(Bytes bytes);

/// Returns how many edits turn `a` into `b`: a letter left out, added, replaced, or swapped with the next
/// one.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// True if `word` is probably a slip of the pen for `known`. They may differ in case, and besides in 1 letter
/// if the shorter has 3 or 4 letters, in 2 letters if it is longer.
bool is_slip_of(std::string_view word, std::string_view known);
/// Returns a number that is smaller the nearer the words are, or `not_near`. Near to `known` are: its slips,
/// words that begin with it or that it begins with, and words of other programs with the same meaning.
inline constexpr std::size_t not_near = SIZE_MAX;
std::size_t distance_of_words(std::string_view word, std::string_view known);
/// Returns the entry of `known` that `word` probably means, or "" if none is near.
template <typename Range>
std::string nearest(std::string_view word, const Range& known) {
  const auto distance = [word](std::string_view each) { return distance_of_words(word, each); };
  const auto best = std::ranges::min_element(known, {}, distance);
  if (best == std::ranges::end(known) || distance(*best) == not_near) return {};
  return std::string(*best);
}
/// Returns the end of an error about `word`: `; did you mean "NEAREST"? REST`, or, if no entry is near, ";
/// REST". `rest` begins with a small letter, such as "it may be a, b"; it may be "".
template <typename Range>
std::string did_you_mean(std::string_view word, const Range& known, std::string_view rest = {}) {
  const std::string near = nearest(word, known);
  if (near.empty()) return rest.empty() ? std::string() : cat("; ", rest);
  std::string text = cat("; did you mean \"", near, "\"?");
  if (!rest.empty()) text += cat(" ", upper_case(rest.substr(0, 1)), rest.substr(1));
  return text;
}

}  // namespace tailrace
