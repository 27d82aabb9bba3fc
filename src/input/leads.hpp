// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "input/definition.hpp"
#include "input/request.hpp"
#include "sources/source.hpp"
#include "storage/target.hpp"

namespace tailrace::input {

/// Opens a file for reading.
using Opener = std::function<Result<std::shared_ptr<const sources::Source>>(const std::string& path)>;

/// Local. Finds the files of the pattern and their steps: by their names, if a name tells the lead, and by
/// their inventories otherwise. Without base= the first file's reference time is the base time. `cache` is
/// for later readers. Code::io with ENOENT if no file has such a name and the stream does not follow.
Result<FilesDefinition> find_steps(storage::Target& target, const OpenRequest& request,
                                   const std::string& cache, const Opener& open);

/// Returns the steps that a file has of this stream, ascending.
std::vector<std::int64_t> leads_in(const sources::Inventory& inventory, const FilesDefinition& files);

}  // namespace tailrace::input
