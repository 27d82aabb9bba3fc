// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Numbers as people write them, and texts of strangers as terminals may have them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tailrace::reports {

/// What stands in place of a figure that a report does not have.
inline constexpr std::string_view unknown = "-";

/// Returns "0.4 ms", "0.42 s", "312 s", "52 min" or "3 h 12 min".
std::string seconds_text(double seconds);
/// Returns the same without a fraction of a second: "40 s".
std::string whole_seconds_text(double seconds);
/// Returns seconds for a column of them: "0.0042", "2.35", "309.3", "12,345".
std::string seconds_number(double seconds);
/// Returns "871 bytes", "184 MB" or "3.92 GB", by powers of 1000.
std::string bytes_text(double bytes);
/// Returns "71 %", "4.2 %" or "<0.1 %" of the share 0.71, 0.042 or 0.0002.
std::string percent_text(double share);
/// Returns the change from `before` to `after`: "+12 %", "-3.1 %", "x 4.2", "same"; `unknown` from nothing.
std::string change_text(double before, double after);
/// Returns "12,345".
std::string count_text(double count);
/// Returns "1.9 : 1", or `unknown` if nothing was written.
std::string ratio_text(double captured, double written);

/// Returns "12,345 steps" or "1 step", of any number. Pass `many` if the plural takes more than an s.
std::string count_of(double count, std::string_view one, std::string_view many = {});

/// Returns the text without what moves a terminal, or turns the order of its characters round: control
/// characters become "?".
std::string plain(std::string_view text);
/// Returns the length of the UTF-8 character at `at`, or 0 if there is none.
std::size_t length_of_character(std::string_view text, std::size_t at);
/// Returns the length of the character at `at` if it ends lines or turns their direction, otherwise 0.
std::size_t length_of_mover(std::string_view text, std::size_t at);
/// Returns the text with "?" in place of each byte that is no UTF-8.
std::string as_utf8(std::string text);
/// Returns the number of characters of UTF-8 in `text`.
std::size_t characters_in(std::string_view text);
/// Returns at most `most` characters of the text: "..." stands for the middle of a longer one.
std::string shortened(std::string_view text, std::size_t most);
/// Returns the first `most` characters of the text.
std::string cut(std::string_view text, std::size_t most);
/// Returns the text with line ends, so that no line has more than `width` characters; later lines begin with
/// `indent`. Words that are longer stay whole.
std::string wrapped(std::string_view text, std::size_t width, std::string_view indent);

/// Cells of a table: the first line is its head. The first `left` columns are flush left, the others right.
using Cells = std::vector<std::vector<std::string>>;
/// Returns the table as lines that begin with two blanks; each column is as wide as its widest cell. What has
/// more than `width` characters is cut into tables below each other, which all begin with the first column.
std::string table_text(const Cells& table, std::size_t left, std::size_t width = 100000);
/// Returns the characters of the longest line of table_text().
std::size_t width_of(const Cells& table);
/// Returns the table in Markdown.
std::string table_markdown(const Cells& table);

}  // namespace tailrace::reports
