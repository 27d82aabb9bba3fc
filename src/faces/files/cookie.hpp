// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>

#include "faces/files/mode.hpp"
#include "ground/journal/growth.hpp"
#include "ground/journal/journal.hpp"
#include "ground/journal/lasting_file.hpp"
#include "ground/journal/position.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::files {

/// A C stream of this process over a file of `target`. The C library itself gives every call its meaning
/// while the bytes take our way to storage (fopencookie(3)). fopen(3) opens what is no regular file (a pipe,
/// a terminal).
struct CStream {
  std::FILE* stream = nullptr;  // nullptr: an aggregator that has the file open beside the I/O rank's stream
  std::shared_ptr<journal::LastingFile> file;  // nullptr: a stream that is not ours, without positions
  std::shared_ptr<journal::Growth> growth;     // set if the file is written
  /// The file ends here at least, for streams that append: others may be writing up to there.
  std::shared_ptr<std::atomic<Bytes>> least_end;
  /// The file still has its old contents. It has to be cut to nothing before anything is written.
  bool is_uncut = false;
  /// It is a standard stream, which is never closed. Set on every rank.
  bool is_adopted = false;
};

/// `may_be_uncut`: the caller can cut a file opened for writing later, when nobody waits for it. Cutting
/// waits for the device if the device is just writing the old contents. `from` is what a checkpoint has
/// recorded of the file; the file goes on there whatever the mode (bring_back() says how). Bytes that are
/// written over are kept in `journals` first.
[[nodiscard]] Result<CStream> open_stream(storage::Target& target, const std::string& path, const Mode& mode,
                                          bool may_be_uncut, const std::optional<journal::Position>& from,
                                          journal::Journals& journals);

/// Calls fflush on a stream that has something to write. Returns EOF and sets errno if that fails. Call it
/// before any positioning: when glibc (2.36) flushes by itself there, it takes the position of a cookie
/// stream for the one before the write, and seeks to the wrong place.
int flush_before_seek(std::FILE* stream);
/// Flushes the stream as flush_before_seek() does and moves it to `position`. Returns false and sets errno if
/// either fails.
[[nodiscard]] bool seek_to(std::FILE* stream, Bytes position);

}  // namespace tailrace::files
