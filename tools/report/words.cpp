// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "ground/base/text.hpp"

namespace tailrace::reports {

namespace {

std::string printed(const char* format, double value) {
  std::array<char, 400> text{};  // 1e308 has 309 digits
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// Returns three digits of a value below 1000.
std::string three_digits(double value) {
  if (value < 9.995) return printed("%.2f", value);
  return printed(value < 99.95 ? "%.1f" : "%.0f", value);
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

/// Returns where the character of that number begins.
std::size_t place_of(std::string_view text, std::size_t character) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!begins_character(text[at])) continue;
    if (character == 0) return at;
    --character;
  }
  return at;
}

std::vector<std::size_t> widths_of(const Cells& table) {
  std::vector<std::size_t> widths;
  for (const auto& line : table) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], characters_in(line[i]));
  }
  return widths;
}

void add_cell(const std::string& cell, std::size_t width, bool is_left, std::string& line) {
  const std::string blanks(width - characters_in(cell), ' ');
  line += cat("  ", is_left ? cell + blanks : blanks + cell);
}

}  // namespace

std::string count_text(double count) {
  if (!std::isfinite(count)) return std::string(unknown);
  std::string digits = printed("%.0f", std::fabs(count));
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return count <= -0.5 ? "-" + digits : digits;
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return std::string(unknown);
  if (seconds == 0) return "0 s";
  if (seconds < 0) return "-" + seconds_text(-seconds);
  if (seconds < 0.00005) return "<0.1 ms";
  if (seconds < 0.0995) return printed(seconds < 0.00995 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
  if (seconds < 599.5) return three_digits(seconds) + " s";
  const auto minutes = std::llround(std::min(seconds, 1e15) / 60);
  if (minutes < 120) return cat(minutes, " min");
  return cat(count_text(static_cast<double>(minutes / 60)), " h ", minutes % 60, " min");
}

std::string whole_seconds_text(double seconds) {
  const double whole = std::floor(seconds);
  return whole >= 0 && whole < 600 ? cat(static_cast<int>(whole), " s") : seconds_text(whole);
}

std::string seconds_number(double seconds) {
  if (!std::isfinite(seconds)) return std::string(unknown);
  const double size = std::fabs(seconds);
  if (size == 0) return "0";
  if (size < 0.00005) return "<0.0001";
  if (size < 0.00995) return printed("%.4f", seconds);
  if (size < 99.995) return printed("%.2f", seconds);
  return size < 999.95 ? printed("%.1f", seconds) : count_text(seconds);
}

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes)) return std::string(unknown);
  if (bytes < 0) return "-" + bytes_text(-bytes);
  if (bytes < 999.5) return count_of(bytes, "byte");
  constexpr std::array units{"kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  for (bytes /= 1000; bytes >= 999.5 && unit + 1 < units.size(); ++unit) bytes /= 1000;
  return cat(bytes < 999.5 ? three_digits(bytes) : count_text(bytes), " ", units.at(unit));
}

std::string percent_text(double share) {
  if (!std::isfinite(share)) return std::string(unknown);
  const double percent = share * 100;
  if (percent == 0) return "0 %";
  if (std::fabs(percent) < 0.1) return percent > 0 ? "<0.1 %" : "-<0.1 %";
  if (percent > 99 && percent < 100) return printed("%.1f %%", std::min(percent, 99.9));
  if (std::fabs(percent) < 9.95) return printed("%.1f %%", percent);
  return count_text(percent) + " %";
}

std::string change_text(double before, double after) {
  if (!std::isfinite(before) || !std::isfinite(after) || before < 0 || after < 0) return std::string(unknown);
  if (before == after) return "same";
  if (before == 0) return std::string(unknown);
  const double change = after / before - 1;
  if (!std::isfinite(change)) return std::string(unknown);
  if (after / before >= 10) return cat("x ", count_text(after / before));
  if (std::fabs(change) < 0.0005) return "same";
  if (std::fabs(change) < 0.00995) return printed("%+.1f %%", change * 100);
  return cat(change > 0 ? "+" : "", percent_text(change));
}

std::string ratio_text(double captured, double written) {
  if (!(written > 0) || !(captured > 0)) return std::string(unknown);
  const double ratio = captured / written;
  return cat(ratio < 999 ? three_digits(ratio) : count_text(ratio), " : 1");
}

std::string count_of(double count, std::string_view one, std::string_view many) {
  const std::string number = count_text(count);
  if (number == "1") return cat("1 ", one);
  return many.empty() ? cat(number, " ", one, "s") : cat(number, " ", many);
}

std::size_t length_of_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
  }
  // Longer spellings of short characters, halves of surrogates, and what lies behind the last character.
  if ((first == 0xE0 && byte(at + 1) < 0xA0) || (first == 0xED && byte(at + 1) >= 0xA0)) return 0;
  if ((first == 0xF0 && byte(at + 1) < 0x90) || (first == 0xF4 && byte(at + 1) >= 0x90)) return 0;
  return length;
}

std::size_t length_of_mover(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at), second = byte(at + 1), third = byte(at + 2);
  if (first < 0x20 || first == 0x7F) return 1;
  if (first == 0xC2 && second >= 0x80 && second < 0xA0) return 2;  // the 32 control characters behind ASCII
  if (first == 0xD8 && second == 0x9C) return 2;                   // U+061C, a mark of direction
  if (first != 0xE2) return 0;
  // U+200E and U+200F, marks of direction; U+2028 to U+202E, ends of lines and turns; U+2066 to U+2069,
  // turns.
  const bool turns = second == 0x80 && (third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE));
  return turns || (second == 0x81 && third >= 0xA6 && third <= 0xA9) ? 3 : 0;
}

std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_of_mover(text, at);
    out += length > 0 ? '?' : text[at];
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string as_utf8(std::string text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_of_character(text, at);
    if (length == 0) text[at] = '?';
    at += std::max<std::size_t>(length, 1);
  }
  return text;
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string shortened(std::string_view text, std::size_t most) {
  const std::size_t all = characters_in(text);
  if (all <= most) return std::string(text);
  const std::size_t kept = most - 3, behind = kept / 2;
  return cat(text.substr(0, place_of(text, kept - behind)), "...", text.substr(place_of(text, all - behind)));
}

std::string cut(std::string_view text, std::size_t most) {
  return std::string(text.substr(0, place_of(text, most)));
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t length = characters_in(word);
    if (column > 0 && column + 1 + length > width) {
      out += cat("\n", indent);
      column = indent.size();
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += length;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::size_t width_of(const Cells& table) {
  std::size_t sum = 0;
  for (const std::size_t width : widths_of(table)) sum += width + 2;
  return sum;
}

std::string table_text(const Cells& table, std::size_t left, std::size_t width) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::string out;
  for (std::size_t begin = 0; begin < widths.size();) {
    // The first column tells what a line is about: each part begins with it.
    const bool repeats = begin > 0;
    std::size_t end = begin, used = repeats ? widths[0] + 2 : 0;
    while (end < widths.size() && (end == begin || used + widths[end] + 2 <= width))
      used += widths[end++] + 2;
    for (const auto& line : table) {
      std::string text;
      if (repeats && !line.empty()) add_cell(line[0], widths[0], left > 0, text);
      for (std::size_t i = begin; i < std::min(end, line.size()); ++i)
        add_cell(line[i], widths[i], i < left, text);
      text.erase(text.find_last_not_of(' ') + 1);
      out += text + "\n";
    }
    begin = end;
  }
  return out;
}

std::string table_markdown(const Cells& table) {
  std::string out;
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (const std::string& cell : table[i]) out += cat("| ", cell, " ");
    out += "|\n";
    if (i != 0) continue;
    for (std::size_t column = 0; column < table[i].size(); ++column) out += "|---";
    out += "|\n";
  }
  return out;
}

}  // namespace tailrace::reports
