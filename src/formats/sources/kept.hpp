// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/sources/front_end.hpp"

// Inventories are kept between runs, so that a file is looked through once. A kept inventory fits a file as
// long as the file's storage::Identity is the same, and the library that told the records (FrontEnd::maker).
namespace tailrace::sources {

/// Returns the directory that the setting `cache` means: a path, "auto" for $XDG_CACHE_HOME/tailrace or
/// $HOME/.cache/tailrace, or "none". "" = nothing is kept.
std::string cache_directory(std::string_view setting);

/// "fc.grib" -> "fc.grib.inventory", where an inventory beside its file lies.
std::string beside(const std::string& path);
/// Local. Asks the file system for the path. Returns where the inventory of a file lies in `cache`. Code::io
/// if the file has no path in a file system.
Result<std::string> place_in(const std::string& cache, const std::string& path);

/// Local. Blocks on storage. Returns the inventory of the file that is kept beside it or in `cache`. Returns
/// nothing if there is none, or none that fits this file and FrontEnd::maker, or if it cannot be read.
std::optional<Inventory> kept_inventory(const FrontEnd& front_end, const Opening& opening,
                                        const std::string& cache);

/// Local. Blocks on storage. Keeps an inventory of a front end with `maker` at `place`, in a directory that
/// is there. Code::state if the file has changed since `opening`, or so shortly before it that a change may
/// not show: wait for 50 ms then, and open the file again.
Status keep(const FrontEnd& front_end, const Opening& opening, const Inventory& inventory,
            const std::string& place);
/// Local. Blocks on storage. Makes the directory, keeps the inventory there, and removes what was kept
/// longest ago if there are more than `most_kept`.
Status keep_in(const std::string& cache, const FrontEnd& front_end, const Opening& opening,
               const Inventory& inventory);
inline constexpr std::size_t most_kept = 1000;

/// Local. Blocks on storage. Returns the kept inventory, or finds the records and keeps them in `cache`; "" =
/// nowhere. Failures to keep are logged, and no error.
Result<Inventory> kept_or_scanned(const FrontEnd& front_end, const Opening& opening,
                                  const std::string& cache);

}  // namespace tailrace::sources
