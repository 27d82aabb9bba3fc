// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>

#include "files/growth.hpp"
#include "files/journal.hpp"
#include "files/lasting_file.hpp"
#include "files/mode.hpp"
#include "files/position.hpp"
#include "storage/target.hpp"

namespace tailrace::files {

/// A C stream of this process over a file of `target`, so that the C library itself gives every call its
/// meaning while the bytes take our way to storage (fopencookie(3)). What is no regular file (a pipe, a
/// terminal) is opened by fopen(3).
struct CStream {
  std::FILE* stream = nullptr;
  std::shared_ptr<LastingFile> file;  // nullptr: not ours, and without positions
  std::shared_ptr<Growth> growth;     // where there is a file that is written
  /// Where the file ends at least, for streams that append: others may be writing up to there.
  std::shared_ptr<std::atomic<Bytes>> least_end;
  /// What the file held before is still there: it has to be cut to nothing before anything is written.
  bool is_uncut = false;
};

/// `may_be_uncut`: the caller can cut what is opened for writing later, where it keeps nobody waiting.
/// Cutting waits for the device if that is just being written the old content. `from`: what a checkpoint has
/// recorded of the file, which goes on there whatever the mode (bring_back() says how). What is written over
/// is kept in `journals` first.
[[nodiscard]] Result<CStream> open_stream(storage::Target& target, const std::string& path, const Mode& mode,
                                          bool may_be_uncut, const std::optional<Position>& from,
                                          Journals& journals);

/// fflush for a stream that has something to write; EOF and errno if that fails. To be called before any
/// positioning: when glibc (2.36) flushes by itself there, it takes the position of a cookie stream for the
/// one before the write, and seeks to the wrong place.
int flush_before_seek(std::FILE* stream);

}  // namespace tailrace::files
