// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdarg>
#include <cstdio>
#include <span>

#include "files/outcome.hpp"
#include "files/scan_format.hpp"

namespace tailrace::files {

/// vfscanf in pieces: stores through the pointers in `arguments` and returns the number of items, with what
/// was stored, pointer by pointer, as data.
Outcome scan(std::FILE* stream, std::span<const ScanPiece> pieces, std::va_list arguments);

/// Another rank's end of it: the same through the caller's pointers. False if one of them is null.
[[nodiscard]] bool store_scanned(const ByteVector& data, std::va_list arguments);

}  // namespace tailrace::files
