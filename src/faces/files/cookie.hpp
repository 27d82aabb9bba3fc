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

/// A C stream of this process over a file of the storage target. The C library gives every call its meaning,
/// and this library moves the bytes to and from storage (fopencookie(3)). A file that is not regular (a pipe,
/// a terminal) is opened by fopen(3) instead.
struct CStream {
  std::FILE* stream = nullptr;                 // nullptr: an aggregator, which has only the file
  std::shared_ptr<journal::LastingFile> file;  // nullptr: C's own stream, without positions
  std::shared_ptr<journal::Growth> growth;     // set if the mode allows writing
  /// For streams that append: the file ends here or later, even if it is still shorter. Other aggregators may
  /// be writing up to here.
  std::shared_ptr<std::atomic<Bytes>> least_end;
  /// The file still has its old contents. It has to be cut to length 0 before anything is written.
  bool is_uncut = false;
  /// It is a standard stream, which is never closed. Set on every rank.
  bool is_adopted = false;
};

/// Local. Opens a stream. `may_be_uncut`: the caller can cut a file opened for writing later, when nobody
/// waits for it; to cut a file takes long if the device is just writing the old contents. `from` is what a
/// checkpoint has recorded of the file: the file goes on there whatever the mode (bring_back() says how).
/// Before the stream writes over bytes, it keeps them in `journals`.
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
