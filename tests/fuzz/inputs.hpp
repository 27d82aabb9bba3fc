// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tailrace::fuzz {

/// A part of an input that stands for a file: lines "=== NAME" begin one. An input without such a line at its
/// beginning is one part without a name.
struct Piece {
  std::string_view name;
  std::span<const std::byte> bytes;
};
std::vector<Piece> pieces_of(std::span<const std::byte> input);

/// Aborts, and says what was promised, unless it is `good`.
void must(bool good, const char* what);

// Each function takes any bytes, returns, and aborts if the result contradicts itself.

/// Reads the input as a file, or a store, of any format, with all values of small grids. Pieces: "" is the
/// file, "index" the index beside it, "inventory" an inventory of it, and others are objects in the directory
/// of its name. Checksums of indexes and inventories are made to match. Returns true if there are records,
/// and all are read.
bool read_source_input(std::span<const std::byte> bytes);

/// Reads lines as the units, the calendar and the numbers of a time axis. Returns true if all are times.
bool read_times_input(std::span<const std::byte> bytes);

/// Reads the pieces "idx", "index" and "5b7b6.idx" as listings of a small GRIB file and completes and cuts
/// them, and the piece "manifest" as a manifest. Returns true if one of them is ours.
bool read_listing_input(std::span<const std::byte> bytes);

}  // namespace tailrace::fuzz
