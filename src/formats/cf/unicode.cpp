// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/unicode.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tailrace::cf {

namespace {

struct Range {
  char32_t first, last;
};
/// Characters that NFC keeps (NFC_Quick_Check is Yes in DerivedNormalizationProps.txt), and does not join
/// with the character before.
constexpr std::array<Range, 15> kept_by_nfc{{{0x20, 0x7e},
                                             {0xa1, 0x2ff},       // Latin, phonetic letters
                                             {0x370, 0x373},      // Greek
                                             {0x388, 0x3ff},      // Greek
                                             {0x400, 0x482},      // Cyrillic
                                             {0x48a, 0x52f},      // Cyrillic
                                             {0x5d0, 0x5ea},      // Hebrew
                                             {0x620, 0x64a},      // Arabic
                                             {0x1e00, 0x1eff},    // Latin
                                             {0x2070, 0x209c},    // raised and lowered digits
                                             {0x2190, 0x22ff},    // arrows, mathematics
                                             {0x3041, 0x3096},    // Hiragana
                                             {0x309b, 0x30ff},    // Katakana
                                             {0x3400, 0x9fff},    // Chinese characters
                                             {0xac00, 0xd7a3}}};  // Hangul

/// Takes a character from the front of the text. Returns nothing if it is no UTF-8, or not in its shortest
/// form.
std::optional<char32_t> take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const bool is_first = first < 0x80 || (first >= 0xc0 && first < 0xf8);
  if (!is_first || text.size() < length) return std::nullopt;
  char32_t character = length == 1 ? first : first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return std::nullopt;
    character = character << 6 | (next & 0x3fU);
  }
  text.remove_prefix(length);
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  return character < least[length] ? std::nullopt : std::optional(character);
}

}  // namespace

bool is_normal_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::optional<char32_t> character = take_character(text);
    if (!character) return false;
    const auto has = [&](const Range& range) {
      return range.first <= *character && *character <= range.last;
    };
    if (!std::ranges::any_of(kept_by_nfc, has)) return false;
  }
  return true;
}

}  // namespace tailrace::cf
