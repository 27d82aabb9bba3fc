// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdarg>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "faces/files/outcome.hpp"
#include "ground/base/status.hpp"

namespace tailrace::files {

/// A part of a scanf format (ISO C99 7.19.6.2) that is scanned by itself: text, or one conversion. To scan
/// the pieces one after another, as long as each is completed, gives the same result as to scan the whole
/// format. In addition, it is then known which conversions were reached, and how much each has stored.
struct ScanPiece {
  enum class Stores {
    nothing,     // text, or an assignment suppressed by *
    value,       // `size` bytes
    characters,  // at most `count` elements of `size` bytes, without an end (%c)
    string,      // elements of `size` bytes up to one that is zero (%s, %[)
    position     // the number of characters read so far, in `size` bytes (%n)
  };
  std::string text;  // a format of its own; empty for %n
  Stores stores = Stores::nothing;
  std::size_t size = 0;
  std::size_t count = 1;
};

/// Cuts a format into pieces. Returns Code::argument if ISO C99 does not have one of the conversions; the
/// text names it.
Result<std::vector<ScanPiece>> parse_scan_format(std::string_view format);

/// Does vfscanf in pieces: stores through the pointers in `arguments` and returns the number of items. The
/// stored bytes come as data, pointer by pointer.
Outcome scan(std::FILE* stream, std::span<const ScanPiece> pieces, std::va_list arguments);

/// Stores the data of scan() on another rank, through the caller's pointers. Returns false if one of them is
/// null.
[[nodiscard]] bool store_scanned(const ByteVector& data, std::va_list arguments);

}  // namespace tailrace::files
