// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/sources/front_end.hpp"
#include "formats/sources/source.hpp"

// Files of any writer, of any format that the registry can read.
namespace tailrace::sources {

/// Local. Blocks on storage. Opens a file of any format that this build reads, recognised by its first bytes,
/// and finds its records. An index beside the file (index_path) is used if there is one; only records of
/// committed steps are then found. Without an index, an inventory kept for this file is used, beside it or in
/// `cache`. Otherwise the headers of the file are read, and the inventory is kept in `cache` ("" = it is not
/// kept). Code::io if there is no such file, Code::format if no format fits, Code::corrupt if the file
/// contradicts itself, Code::state if its writer has just begun it.
Result<std::shared_ptr<const Source>> open(const std::shared_ptr<storage::Target>& target,
                                           const std::string& path, const std::string& cache);

/// Local. Returns success if `grid` has this shape and agrees with `georeference` in every key that both
/// state. Code::layout names the first difference, expected and got.
Status check_grid(const Grid& grid, const std::vector<Index>& shape, const codec::Georeference& georeference);

/// Returns the front ends of the registry's formats, in the order in which they are asked.
std::span<const FrontEnd* const> front_ends();

/// Local. Blocks on storage. Opens the file or directory `path`, and reads the index beside it. Code::io if
/// there is nothing, or a pipe or a device; Code::corrupt if the index is damaged or lists more bytes than
/// the file has.
Result<Opening> look_at(const std::shared_ptr<storage::Target>& target, const std::string& path);

/// Local. Returns the front end that reads the file. Blocks on storage if it has to look for objects in a
/// directory. Code::format if no front end fits, Code::unsupported if this build lacks it.
Result<const FrontEnd*> front_end_of(const Opening& opening);

}  // namespace tailrace::sources
