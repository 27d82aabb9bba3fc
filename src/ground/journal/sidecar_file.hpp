// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "ground/journal/position.hpp"
#include "ground/storage/target.hpp"

// The sidecar of a local file as a whole, whatever arrays it tells of (faces/files/sidecar.hpp;
// docs/formats/local-sidecar.md). It is brought back with its file.
namespace tailrace::journal {

std::string sidecar_path(const std::string& path);
/// Returns the text of the sidecar of `path`, empty if there is none.
Result<std::string> sidecar_text(storage::Target& target, const std::string& path);
/// Makes `text` the sidecar of `path`, at once. It is not durable.
Status replace_sidecar(storage::Target& target, const std::string& path, const std::string& text);
/// Brings back the sidecar of a file that goes on, if it was replaced since a checkpoint recorded it.
Status bring_back_sidecar(storage::Target& target, const Position& from);
/// Removes the sidecar of a file that holds no arrays any more, and an unfinished one that a killed process
/// has left.
Status remove_sidecar(storage::Target& target, const std::string& path);

}  // namespace tailrace::journal
