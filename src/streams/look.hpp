// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "storage/target.hpp"
#include "streams/parse.hpp"
#include "streams/resume.hpp"

// What can be known of a stream's files before its first step. One rank looks, and all hear of it.
namespace tailrace::streams {

/// Local. The lock of all files that a stream may have: two streams with the same names would replace each
/// other's files. Held until the returned object dies. Makes the directory; Code::state naming the holder,
/// Code::io where nothing can be written.
Result<std::shared_ptr<void>> lock_stream(storage::Target& target, const StreamRequest& request);

/// Local; changes nothing. The first reason why the stream cannot write its files as `existing` asks, or
/// cannot go on from where `resume` says.
Status look_ahead(storage::Target& target, const StreamRequest& request,
                  const std::optional<Position>& resume);

/// The error of existing=fail.
Status exists_already(const std::string& path);

/// What `position` relies on among the files of the stream.
Result<Resuming> resuming_from(Position position, const StreamRequest& request);

/// Whether the file of the position is gone, but the manifest knows that it was whole: whoever waits for
/// finished files may move them, with their index or without.
Result<bool> was_taken_away(storage::Target& target, const Resuming& resuming);

}  // namespace tailrace::streams
