// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdarg>
#include <cstdio>
#include <span>

#include "files/outcome.hpp"
#include "files/scan_format.hpp"

namespace tailrace::files {

/// Does vfscanf in pieces: stores through the pointers in `arguments` and returns the number of items. The
/// stored bytes come as data, pointer by pointer.
Outcome scan(std::FILE* stream, std::span<const ScanPiece> pieces, std::va_list arguments);

/// Stores the same on another rank, through the caller's pointers. Returns false if one of them is null.
[[nodiscard]] bool store_scanned(const ByteVector& data, std::va_list arguments);

}  // namespace tailrace::files
