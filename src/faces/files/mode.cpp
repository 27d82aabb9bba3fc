// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/mode.hpp"

#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

/// The letters stand in the order of Mode::Access.
constexpr std::string_view access_letters = "rwa";

Status set_letter(Mode& mode, char letter) {
  const auto set = [&](bool& flag) -> Status {
    if (std::exchange(flag, true)) return {Code::argument, cat("'", letter, "' is said twice")};
    return {};
  };
  const auto is_one_of = [&](std::string_view letters) { return letters.find(letter) != letters.npos; };
  if (letter == '+') return set(mode.update);
  if (letter == 'b') return set(mode.binary);
  if (is_one_of("pP")) return set(mode.parallel);
  if (is_one_of("lLiI")) return set(mode.local);
  if (is_one_of("sS")) return set(mode.async);
  if (letter == 'x') return {Code::argument, "'x' is not C99's: ask tr_remove, or open with r first"};
  return {Code::argument, cat("'", letter, "' is none of the letters b, +, p, l, i and s")};
}

Status read_letters(std::string_view text, Mode& mode) {
  if (text.empty()) return {Code::argument, "it is empty; it begins with r, w or a"};
  const std::size_t access = access_letters.find(text.front());
  if (access == access_letters.npos)
    return {Code::argument, cat("'", text.front(), "' is none of r, w and a, with which a mode begins")};
  mode.access = static_cast<Mode::Access>(access);
  for (const char letter : text.substr(1)) TR_TRY(set_letter(mode, letter));
  if (mode.parallel && mode.local) {
    return {Code::argument,
            "parallel (p) means one file of all ranks, local (l, i) one file for each rank: choose one"};
  }
  return {};
}

}  // namespace

std::string Mode::for_libc() const {
  std::string text(1, access_letters[static_cast<std::size_t>(access)]);
  if (update) text += '+';
  if (binary) text += 'b';
  return text;
}

Result<Mode> parse_mode(std::string_view text) {
  Mode mode;
  TR_TRY(read_letters(text, mode).in(cat("the mode \"", text, "\"")));
  return mode;
}

}  // namespace tailrace::files
