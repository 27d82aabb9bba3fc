// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tailrace::fuzz {

/// A part of an input, which stands for one file. A line "=== NAME" begins a part. An input that does not
/// begin with such a line is one part without a name.
struct Piece {
  std::string_view name;
  std::span<const std::byte> bytes;
};
std::vector<Piece> pieces_of(std::span<const std::byte> input);

/// Aborts with the text `what` unless `good`.
void must(bool good, const char* what);

// Each of these functions must return for any bytes. It aborts if the results contradict one another.

/// Reads the input as a file or a store of any format, with all values of small grids. The piece "" is the
/// file, "index" the index beside it, "inventory" an inventory of it; other pieces are objects of a store.
/// First makes the checksums of indexes and inventories match. Returns true if there are records, and all can
/// be read.
bool read_source_input(std::span<const std::byte> bytes);

/// Reads lines as the units, the calendar and the numbers of a time axis. Returns true if all are times.
bool read_times_input(std::span<const std::byte> bytes);

/// Reads the pieces "idx", "index" and "5b7b6.idx" as listings of a small GRIB file, and completes and cuts
/// them; reads the piece "manifest" as a manifest. Returns true if the library could have written one of
/// them.
bool read_listing_input(std::span<const std::byte> bytes);

}  // namespace tailrace::fuzz
