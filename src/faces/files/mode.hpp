// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include "ground/base/status.hpp"

namespace tailrace::files {

/// An open mode, read from its letters: C's own (ISO C99 7.19.5.3) first, then, in any order, `b` and `+` and
/// ours: `p` or `P` parallel, `l`, `L`, `i` or `I` local, `s` or `S` asynchronous.
struct Mode {
  enum class Access { read, write, append };
  Access access = Access::read;
  bool update = false;  // +
  bool binary = false;
  bool parallel = false;
  bool local = false;
  bool async = false;

  [[nodiscard]] bool reads() const { return access == Access::read || update; }
  [[nodiscard]] bool writes() const { return access != Access::read || update; }
  /// Returns C's own letters, for fopen(3).
  [[nodiscard]] std::string for_libc() const;
};

/// Reads a mode. Returns Code::argument if a letter or combination makes no sense; the text says which one,
/// and why.
Result<Mode> parse_mode(std::string_view text);

}  // namespace tailrace::files
