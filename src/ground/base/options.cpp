// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ground/base/option_table.hpp"
#include "ground/base/text.hpp"

namespace tailrace {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }
bool is_quote(char c) { return c == '"' || c == '\''; }

Status option_error(std::string_view text, std::size_t position, std::string_view what) {
  return {Code::settings, cat("options \"", text, "\", position ", position + 1, ": ", what)};
}

/// Reads key=value entries from left to right.
class OptionScanner {
 public:
  OptionScanner(std::string_view text, bool commas) : text_(text), commas_(commas) {}

  bool skip_separators() {
    while (at_ < text_.size() && is_separator(text_[at_])) ++at_;
    return at_ < text_.size();
  }
  Status take(Option& option) {
    TR_TRY(take_key(option.key));
    return take_value(option);
  }
  [[nodiscard]] std::size_t position() const { return at_; }

 private:
  [[nodiscard]] bool is_separator(char c) const { return is_blank(c) || (commas_ && c == ','); }

  Status take_key(std::string& key) {
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] != '=' && !is_separator(text_[at_]) && !is_quote(text_[at_]))
      ++at_;
    key = text_.substr(first, at_ - first);
    if (at_ == text_.size() || text_[at_] != '=') {
      return option_error(text_, first,
                          cat("expected key=value without blanks around \"=\", got \"", text_.substr(first),
                              "\"; a value with blanks stands in quotes"));
    }
    if (key.empty()) return option_error(text_, first, "there is no key before \"=\"");
    ++at_;
    return {};
  }

  Status take_value(Option& option) {
    if (at_ < text_.size() && is_quote(text_[at_])) return take_quoted(option.value);
    const std::size_t first = at_;
    while (at_ < text_.size() && !is_separator(text_[at_])) {
      if (is_quote(text_[at_])) {
        return option_error(text_, at_,
                            cat("a quote inside of the value of \"", option.key,
                                "\"; put the whole value into quotes of the other kind"));
      }
      ++at_;
    }
    option.value = text_.substr(first, at_ - first);
    if (option.value.empty()) {
      return option_error(
          text_, first,
          cat("\"", option.key, "\" has no value; write ", option.key, "=\"\" for an empty one"));
    }
    return {};
  }

  Status take_quoted(std::string& value) {
    const std::size_t first = at_;
    const char quote = text_[at_++];
    for (;; ++at_) {
      if (at_ == text_.size())
        return option_error(text_, first, "the quote that begins here is never closed");
      if (text_[at_] == quote) {
        if (at_ + 1 == text_.size() || text_[at_ + 1] != quote) break;
        ++at_;
      }
      value += text_[at_];
    }
    ++at_;
    if (at_ < text_.size() && !is_separator(text_[at_])) {
      return option_error(text_, at_, "a blank is missing behind the closing quote");
    }
    return {};
  }

  std::string_view text_;
  bool commas_;
  std::size_t at_ = 0;
};

Status scan(std::string_view text, bool commas, std::vector<Option>& entries) {
  OptionScanner scanner(text, commas);
  while (scanner.skip_separators()) {
    const std::size_t position = scanner.position();
    Option option;
    TR_TRY(scanner.take(option));
    if (std::ranges::find(entries, option.key, &Option::key) != entries.end())
      return option_error(text, position, cat("\"", option.key, "\" is given twice; keep one of them"));
    entries.push_back(std::move(option));
  }
  return {};
}

struct SizeUnit {
  std::string_view name;  // in lower case
  double bytes;
};
constexpr SizeUnit kSizeUnits[] = {
    {"", 1},      {"b", 1},        {"kb", 1e3},        {"mb", 1e6},           {"gb", 1e9},
    {"tb", 1e12}, {"kib", 1024.0}, {"mib", 1048576.0}, {"gib", 1073741824.0}, {"tib", 1099511627776.0}};

// Appends the numbers of one entry of a list: one number, or a range of whole numbers such as "1-40".
Status append_range(std::string_view entry, std::size_t most, std::vector<double>& out) {
  const auto bad = [&] {
    return Status(Code::settings, cat("\"", entry, "\" is no number and no range such as 1-40"));
  };
  double first = 0;
  auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), first);
  if (error != std::errc{} || !std::isfinite(first)) return bad();
  std::string_view rest = entry.substr(static_cast<std::size_t>(end - entry.data()));
  double last = first;
  if (!rest.empty()) {
    if (rest.front() != '-') return bad();
    rest.remove_prefix(1);
    const Result<double> parsed = parse_real(rest);
    if (!parsed.is_ok() || *parsed != std::floor(*parsed) || first != std::floor(first)) return bad();
    last = *parsed;
  }
  // The comparison is negated so that it also refuses infinities and ranges too long for a count.
  if (!(std::abs(last - first) < static_cast<double>(most)) ||
      out.size() + static_cast<std::size_t>(std::abs(last - first)) >= most) {
    return {Code::settings, cat("\"", entry, "\" makes the list longer than ", most, " numbers")};
  }
  const double step = last < first ? -1 : 1;
  // Counted, since from 2^53 on a double plus 1 is the same double.
  const auto steps = static_cast<std::size_t>(std::abs(last - first));
  for (std::size_t i = 0; i <= steps; ++i) out.push_back(first + step * static_cast<double>(i));
  return {};
}

std::string as_code(std::string_view text) { return text.empty() ? "" : cat("`", text, "`"); }

/// The cells of one line in a table of options.
std::vector<std::string> cells_of(const OptionInfo& info) {
  return {as_code(info.key), std::string(info.default_value.empty() ? "–" : info.default_value),
          std::string(info.unit), as_code(info.example), std::string(info.meaning)};
}

/// Keys that cannot be left out come first.
std::vector<OptionInfo> in_order_of_pages(std::vector<OptionInfo> options) {
  std::ranges::stable_partition(options,
                                [](const OptionInfo& info) { return info.default_value == required_option; });
  return options;
}

/// Returns the text without Markdown's marks: code stands as it is, and a link is its text.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`' || (text[i] == '[' && text.find("](", i) != std::string_view::npos)) continue;
    if (text.substr(i).starts_with("](")) {
      i = std::min(text.find(')', i), text.size());
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Returns the number of characters of a text in UTF-8.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// Breaks the text between words into lines of at most `width` characters. A longer word has a line of its
/// own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (const std::string& word : split(text, ' ')) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (columns_of(line) + 1 + columns_of(word) <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

/// One line of a plain table: each column but the last is filled with blanks up to its width.
std::string plain_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    if (i + 1 < cells.size()) line.append(widths[i] + 2 - std::min(widths[i], columns_of(cells[i])), ' ');
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

Result<Options> Options::parse(std::string_view text) {
  Options options;
  TR_TRY(scan(text, false, options.entries_));
  return options;
}

Result<Options> Options::parse_list(std::string_view text) {
  Options options;
  TR_TRY(scan(text, true, options.entries_));
  return options;
}

const std::string* Options::find(std::string_view key) const {
  const auto found = std::ranges::find(entries_, key, &Option::key);
  return found == entries_.end() ? nullptr : &found->value;
}

std::string quote_option(std::string_view value) {
  const auto is_special = [](char c) { return is_blank(c) || is_quote(c) || c == ','; };
  if (!value.empty() && std::ranges::none_of(value, is_special)) return std::string(value);
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string text_of(const Option& option) { return cat(option.key, "=", quote_option(option.value)); }

Status settings_error(std::string_view text) { return {Code::settings, std::string(text)}; }

Status unknown_word(std::string_view what, std::string_view word,
                    const std::vector<std::string_view>& known) {
  std::string list;
  for (const std::string_view each : known)
    list += cat(!list.empty() ? ", " : known.size() == 1 ? "the only one is " : "it may be ", each);
  return settings_error(cat("unknown ", what, " \"", word, "\"", did_you_mean(word, known, list)));
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (text.empty() || end != last || error == std::errc::invalid_argument) {
    return Status(Code::settings, cat("\"", text, "\" is no whole number"));
  }
  if (error != std::errc{} || value < least || value > most) {
    return Status(Code::settings, cat(text, " is out of range; it may be ", least, " to ", most));
  }
  return value;
}

Result<double> parse_real(std::string_view text) {
  double value = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (digits.empty() || end != last || error != std::errc{} ||
      (text.starts_with('+') && digits.front() == '-')) {
    return Status(Code::settings, cat("\"", text, "\" is no number"));
  }
  return value;
}

Result<Bytes> parse_bytes(std::string_view text) {
  const Status bad(Code::settings,
                   cat("\"", text, "\" is no size; give bytes as 4096, 64KiB, 512MiB, 1.5GiB or 2GB"));
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (text.empty() || text.front() == '-' || error != std::errc{} || !std::isfinite(number)) return bad;
  std::string_view rest = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const SizeUnit& unit : kSizeUnits) {
    if (lower_case(rest) != unit.name) continue;
    const double bytes = number * unit.bytes;
    if (bytes != std::floor(bytes))
      return Status(Code::settings, cat("\"", text, "\" is no whole number of bytes"));
    if (bytes > 9.0e18) return Status(Code::settings, cat("\"", text, "\" is more than 64 bits hold"));
    return static_cast<Bytes>(bytes);
  }
  return bad;
}

Result<bool> parse_boolean(std::string_view text) {
  const std::string word = lower_case(text);
  if (word == "on" || word == "yes" || word == "true" || word == "1") return true;
  if (word == "off" || word == "no" || word == "false" || word == "0") return false;
  return Status(Code::settings, cat("\"", text, "\" is neither on nor off"));
}

Result<std::size_t> parse_choice(std::string_view text, const std::vector<std::string_view>& known) {
  const auto found = std::ranges::find(known, text);
  if (found == known.end()) return unknown_word("value", text, known);
  return static_cast<std::size_t>(found - known.begin());
}

Result<std::vector<double>> parse_number_list(std::string_view text, std::size_t most) {
  std::vector<double> out;
  for (const std::string& entry : split(text, ',')) TR_TRY(append_range(entry, most, out));
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t first = 0;;) {
    const std::size_t end = text.find(separator, first);
    parts.emplace_back(trim(text.substr(first, end - first)));
    if (end == std::string_view::npos) return parts;
    first = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string options_markdown(const std::vector<OptionInfo>& options) {
  std::vector<std::vector<std::string>> lines{{"option", "default", "unit", "example", "means"},
                                              {"---", "---", "---", "---", "---"}};
  for (const OptionInfo& info : in_order_of_pages(options)) lines.push_back(cells_of(info));
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += "|";
    for (std::size_t column = 0; column < lines[i].size(); ++column) {
      const auto is_empty = [&](const auto& line) { return line[column].empty(); };
      if (std::all_of(lines.begin() + 2, lines.end(), is_empty)) continue;
      const std::string& cell = lines[i][column];
      out += i == 1 ? cat(cell, "|") : cell.empty() ? " |" : cat(" ", cell, " |");
    }
    out += "\n";
  }
  return out;
}

std::string options_text(const std::vector<OptionInfo>& options, std::size_t width) {
  constexpr std::size_t widest_default = 20, narrowest_meaning = 24;
  struct Entry {
    std::string key;
    std::vector<std::string> defaults, meaning;
  };
  std::vector<Entry> entries{{"option", {"default"}, {"means"}}};
  std::vector<std::size_t> widths{6, 7, 0};
  const auto sorted = in_order_of_pages(options);
  for (const OptionInfo& info : sorted) {
    const std::string value = info.default_value.empty() ? "–" : plain(info.default_value);
    Entry entry{std::string(info.key), wrapped(value, widest_default), {}};
    if (!info.unit.empty())
      for (std::string& line : wrapped(cat("(", info.unit, ")"), widest_default))
        entry.defaults.push_back(std::move(line));
    widths[0] = std::max(widths[0], columns_of(entry.key));
    for (const std::string& line : entry.defaults) widths[1] = std::max(widths[1], columns_of(line));
    entries.push_back(std::move(entry));
  }
  const std::size_t left = widths[0] + widths[1] + 4;
  const std::size_t rest = std::max(width > left ? width - left : 0, narrowest_meaning);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    entries[i + 1].meaning = wrapped(plain(sorted[i].meaning), rest);
    if (!sorted[i].example.empty()) entries[i + 1].meaning.push_back(cat("Example: ", sorted[i].example));
  }
  std::string out;
  for (const Entry& entry : entries) {
    const auto part = [](const std::vector<std::string>& lines, std::size_t at) {
      return at < lines.size() ? lines[at] : std::string();
    };
    for (std::size_t i = 0; i < std::max(entry.defaults.size(), entry.meaning.size()); ++i)
      out += plain_line({i == 0 ? entry.key : "", part(entry.defaults, i), part(entry.meaning, i)}, widths);
  }
  return out;
}

}  // namespace tailrace
