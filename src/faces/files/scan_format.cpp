// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/scanf_pieces.hpp"

#include <algorithm>
#include <cwchar>

#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

using Stores = ScanPiece::Stores;

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view format) : format_(format) {}

  Result<std::vector<ScanPiece>> pieces() {
    std::vector<ScanPiece> list;
    while (at_ < format_.size()) {
      const std::size_t begin = at_;
      skip_text();
      if (at_ > begin) list.push_back({std::string(format_.substr(begin, at_ - begin))});
      if (at_ == format_.size()) break;
      ScanPiece piece;
      TR_TRY(read_conversion(piece));
      // The blanks that %s skips are read by themselves, so that the length of what it stores is known.
      if (piece.text.ends_with('s')) list.push_back({" "});
      list.push_back(std::move(piece));
    }
    return list;
  }

 private:
  /// Skips text up to a conversion. "%%" is text as well, a per cent sign to be read.
  void skip_text() {
    while (at_ < format_.size() && (format_[at_] != '%' || next() == '%')) at_ += format_[at_] == '%' ? 2 : 1;
    at_ = std::min(at_, format_.size());
  }

  [[nodiscard]] char next() const { return at_ + 1 < format_.size() ? format_[at_ + 1] : '\0'; }
  [[nodiscard]] char here() const { return at_ < format_.size() ? format_[at_] : '\0'; }
  bool take(char letter) {
    if (here() != letter) return false;
    ++at_;
    return true;
  }

  Status read_conversion(ScanPiece& piece) {
    const std::size_t percent = at_++;
    const bool suppressed = take('*');
    std::size_t width = 0;
    const bool has_width = is_digit(here());
    while (is_digit(here())) width = width * 10 + static_cast<std::size_t>(format_[at_++] - '0');
    const std::string_view length = read_length();
    const char letter = here();
    ++at_;
    if (letter == '[') skip_set();
    at_ = std::min(at_, format_.size());
    const std::string_view conversion = format_.substr(percent, at_ - percent);
    if (!describe(letter, length, piece)) return refuse(conversion);
    if (piece.stores == Stores::characters && has_width) piece.count = width;
    if (suppressed) piece.stores = Stores::nothing;
    if (letter != 'n') piece.text = conversion;  // scan() counts the characters of all pieces
    return {};
  }

  std::string_view read_length() {
    for (const std::string_view length : {"hh", "h", "ll", "l", "j", "z", "t", "L"}) {
      if (format_.substr(at_).starts_with(length)) {
        at_ += length.size();
        return length;
      }
    }
    return {};
  }

  /// A bracket that stands first in a set belongs to it: "%[]a]", "%[^]a]".
  void skip_set() {
    take('^');
    take(']');
    while (at_ < format_.size() && format_[at_] != ']') ++at_;
    if (at_ == format_.size()) unclosed_ = true;
    ++at_;
  }

  bool describe(char letter, std::string_view length, ScanPiece& piece) const {
    const auto is_one_of = [&](std::string_view letters) { return letters.find(letter) != letters.npos; };
    if (is_one_of("diouxX")) return set(piece, Stores::value, integer_size(length));
    if (is_one_of("aAeEfFgG")) return set(piece, Stores::value, real_size(length));
    switch (letter) {
      case 'n':
        return set(piece, Stores::position, integer_size(length));
      case 'p':
        return set(piece, Stores::value, length.empty() ? sizeof(void*) : 0);
      case 'c':
        return set(piece, Stores::characters, character_size(length));
      case 's':
        return set(piece, Stores::string, character_size(length));
      case '[':
        return !unclosed_ && set(piece, Stores::string, character_size(length));
      default:
        return false;
    }
  }

  /// A size of 0 stands for a length that the conversion does not take.
  static bool set(ScanPiece& piece, Stores stores, std::size_t size) {
    piece.stores = stores;
    piece.size = size;
    return size > 0;
  }

  static std::size_t integer_size(std::string_view length) {
    if (length.empty()) return sizeof(int);
    if (length == "hh") return sizeof(char);
    if (length == "h") return sizeof(short);
    if (length == "l") return sizeof(long);
    if (length == "ll") return sizeof(long long);
    if (length == "j") return sizeof(std::intmax_t);
    if (length == "z") return sizeof(std::size_t);
    if (length == "t") return sizeof(std::ptrdiff_t);
    return 0;
  }

  static std::size_t real_size(std::string_view length) {
    if (length.empty()) return sizeof(float);
    if (length == "l") return sizeof(double);
    if (length == "L") return sizeof(long double);
    return 0;
  }

  static std::size_t character_size(std::string_view length) {
    if (length.empty()) return sizeof(char);
    return length == "l" ? sizeof(wchar_t) : 0;
  }

  [[nodiscard]] Status refuse(std::string_view conversion) const {
    if (unclosed_) return {Code::argument, cat("the set \"", conversion, "\" has no closing bracket")};
    return {Code::argument, cat("\"", conversion, "\" is no conversion of ISO C99 7.19.6.2 (in the format \"",
                                format_, "\")")};
  }

  std::string_view format_;
  std::size_t at_ = 0;
  bool unclosed_ = false;
};

}  // namespace

Result<std::vector<ScanPiece>> parse_scan_format(std::string_view format) { return Parser(format).pieces(); }

}  // namespace tailrace::files
