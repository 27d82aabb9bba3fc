// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ground/journal/undo_file.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::journal {

// The files beside a shared file that make it outlive a crash; docs/formats/undo-files.md#of-shared-files

/// The content of FILE.undo. At its last flush the shared file FILE had `size` bytes. The undo files of
/// `generation` hold the bytes that were written over since.
struct Flushed {
  std::int64_t generation = 0;
  Bytes size = 0;
  friend bool operator==(const Flushed&, const Flushed&) = default;
};

/// Returns FILE.undo, which is also the name of the undo files.
std::string flushed_path(const std::string& path);
/// Returns the name of FILE by which its undo files know it: they lie beside it, wherever that is.
std::string name_beside(const std::string& path);

/// Local, like all that follow. Takes the lock of a program that writes the file. Does not wait: returns
/// Code::state naming the holder if it is taken. Removes FILE.undo.new, which a killed program may have left.
Result<std::shared_ptr<void>> lock_flushed(storage::Target& target, const std::string& path);
/// Takes a share in the lock, for a process that stores: it may outlive the one that has taken the lock.
/// `own` is what lock_flushed() has returned, or nullptr.
Result<std::shared_ptr<void>> share_flushed(storage::Target& target, const std::string& path,
                                            std::shared_ptr<void> own);
/// Returns true if a program may have ended without closing the file: FILE.undo, or FILE.undo.new, is there.
Result<bool> is_left_open(storage::Target& target, const std::string& path);
/// Returns nothing if there is no FILE.undo, and Code::corrupt if it is none of ours.
Result<std::optional<Flushed>> read_flushed(storage::Target& target, const std::string& path);
/// Writes `flushed`, durably, so that commit_flushed() need only rename it.
Status prepare_flushed(storage::Target& target, const std::string& path, const Flushed& flushed);
/// Makes what was prepared count, at once and durably. After a failure either may count.
Status commit_flushed(storage::Target& target, const std::string& path);

/// Brings the file back to its last flushed content if a program has ended without closing it; the caller has
/// the lock. Returns true if there was anything to do. It may be repeated, whatever ended it.
Result<bool> bring_back_flushed(storage::Target& target, const std::string& path);
/// Removes undo files that count no longer. Returns the highest generation of any, 0 if there was none. The
/// removals are not durable.
Result<std::int64_t> drop_undo_files(storage::Target& target, const std::string& path);

}  // namespace tailrace::journal
