// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/mode.hpp"

#include "base/text.hpp"

namespace tailrace::files {

namespace {

Status set_letter(Mode& mode, char letter) {
  const auto set = [&](bool& flag) -> Status {
    if (std::exchange(flag, true)) return {Code::argument, cat("'", letter, "' is said twice")};
    return {};
  };
  switch (letter) {
    case '+':
      return set(mode.update);
    case 'b':
      return set(mode.binary);
    case 'p':
    case 'P':
      return set(mode.parallel);
    case 'l':
    case 'L':
    case 'i':
    case 'I':
      return set(mode.local);
    case 's':
    case 'S':
      return set(mode.async);
    case 'x':
      return {Code::argument, "'x' is not C99's: ask tr_remove, or open with r first"};
    default:
      return {Code::argument, cat("'", letter, "' is none of the letters b, +, p, l, i and s")};
  }
}

Status read_letters(std::string_view text, Mode& mode) {
  if (text.empty()) return {Code::argument, "it is empty; it begins with r, w or a"};
  switch (text.front()) {
    case 'r':
      mode.access = Mode::Access::read;
      break;
    case 'w':
      mode.access = Mode::Access::write;
      break;
    case 'a':
      mode.access = Mode::Access::append;
      break;
    default:
      return {Code::argument, cat("'", text.front(), "' is none of r, w and a, with which a mode begins")};
  }
  for (const char letter : text.substr(1)) TR_TRY(set_letter(mode, letter));
  if (mode.parallel && mode.local) {
    return {Code::argument,
            "parallel (p) means one file of all ranks, local (l, i) one file for each rank: choose one"};
  }
  return {};
}

}  // namespace

std::string Mode::for_libc() const {
  std::string text(1, access == Access::read ? 'r' : access == Access::write ? 'w' : 'a');
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
