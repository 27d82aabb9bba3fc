// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/sources/front_end.hpp"

// Inventories are kept between runs, so that the headers of a file are read once. A kept inventory is used as
// long as two things are unchanged: the file's storage::Identity, and the library that found the records
// (FrontEnd::maker).
namespace tailrace::sources {

/// Returns the directory that the setting `cache` names: a path, "auto" for $XDG_CACHE_HOME/tailrace or
/// $HOME/.cache/tailrace, or "none". "" = inventories are not kept.
std::string cache_directory(std::string_view setting);

/// Returns the name of an inventory beside its file: "fc.grib" -> "fc.grib.inventory".
std::string beside(const std::string& path);
/// Local. Returns the name in `cache` of the inventory of the file `path`. Asks the file system for the
/// absolute path. Code::io if the file has no path in a file system.
Result<std::string> place_in(const std::string& cache, const std::string& path);

/// Local. Blocks on storage. Returns the inventory that is kept beside the file or in `cache`. Returns
/// nothing if there is none, if none fits this file and FrontEnd::maker, or if it cannot be read.
std::optional<Inventory> kept_inventory(const FrontEnd& front_end, const Opening& opening,
                                        const std::string& cache);

/// Local. Blocks on storage. Writes an inventory to the file `place`, whose directory must exist. The front
/// end must have a `maker`. Code::state if the file has changed since `opening`, or if it changed so shortly
/// before that another change may not show in its identity. The caller may then wait for 50 ms, open the file
/// again and retry.
Status keep(const FrontEnd& front_end, const Opening& opening, const Inventory& inventory,
            const std::string& place);
/// Local. Blocks on storage. Makes the directory `cache` and keeps the inventory there. Removes the oldest
/// inventories if there are more than `most_kept`. Errors as of `keep`.
Status keep_in(const std::string& cache, const FrontEnd& front_end, const Opening& opening,
               const Inventory& inventory);
inline constexpr std::size_t most_kept = 1000;

/// Local. Blocks on storage. Returns the kept inventory. If there is none, finds the records and keeps them
/// in `cache` ("" = does not keep them). A failure to keep them is logged and is no error.
Result<Inventory> kept_or_scanned(const FrontEnd& front_end, const Opening& opening,
                                  const std::string& cache);

}  // namespace tailrace::sources
