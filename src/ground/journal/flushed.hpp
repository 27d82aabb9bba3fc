// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ground/journal/undo_file.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::journal {

// The files beside a shared file with which it survives a crash; docs/formats/undo-files.md#of-shared-files

/// The content of FILE.undo before a restore to an earlier flush was announced in it.
struct BeforeRestore {
  std::int64_t generation = -1;  // -1: there was none, the file was closed
  Bytes size = 0;
  std::uint64_t sample = 0;
  std::int64_t through = 0;  // above `generation`: another restore was under way
  friend bool operator==(const BeforeRestore&, const BeforeRestore&) = default;
};

/// The content of FILE.undo. At its last flush the shared file FILE had `size` bytes. The undo files of
/// `generation` hold the bytes that were overwritten since that flush.
struct Flushed {
  std::int64_t generation = 0;
  Bytes size = 0;
  std::uint64_t sample = 0;  // sample_of() the flushed bytes; 0: it is not known
  /// Random. Opens of the file have the same number as long as there is FILE.undo.kept (kept_flushes.hpp),
  /// and their generations go on. Otherwise generations begin anew with each open, and its number is another
  /// one: only generations with the same number can be compared. 0: FILE.undo is of an early version.
  std::uint64_t open = 0;
  /// A restore to an earlier flush is under way: the undo files of `generation` and of all later ones, up to
  /// this one, have to be put back. 0: those of `generation` alone.
  std::int64_t through = 0;
  /// With `through`: the restore has put nothing back yet. It begins once whoever restores has seen that all
  /// undo files of its way are there; if they are not, FILE.undo becomes again what it was. Nothing: it has
  /// begun, and has to be completed.
  std::optional<BeforeRestore> announced = {};
  friend bool operator==(const Flushed&, const Flushed&) = default;
};

/// Returns FILE.undo, with which the names of the undo files begin, too.
std::string flushed_path(const std::string& path);
/// Returns the name of the lock that lock_flushed() takes.
std::string flushed_lock_path(const std::string& path);
/// Returns FILE without its directory. Undo files know FILE by this name, because they lie in the same
/// directory, wherever it is.
std::string name_beside(const std::string& path);

/// Local, like all functions below. Takes the lock that a program which writes the file holds. Does not wait:
/// if the lock is taken, returns Code::state and names the holder. Removes FILE.undo.new, which a killed
/// program may have left.
Result<std::shared_ptr<void>> lock_flushed(storage::Target& target, const std::string& path);
/// Takes a share in the lock, for a process that stores pages: it may live longer than the process that has
/// taken the lock. `own` is the result of lock_flushed(), or nullptr.
Result<std::shared_ptr<void>> share_flushed(storage::Target& target, const std::string& path,
                                            std::shared_ptr<void> own);
/// True if a program may have ended without closing the file, because FILE.undo or FILE.undo.new exists.
Result<bool> is_left_open(storage::Target& target, const std::string& path);
/// Reads FILE.undo. Returns nothing if there is none, and Code::corrupt if this library did not write it.
Result<std::optional<Flushed>> read_flushed(storage::Target& target, const std::string& path);
/// Writes `flushed` durably to FILE.undo.new, so that commit_flushed() only has to rename it.
Status prepare_flushed(storage::Target& target, const std::string& path, const Flushed& flushed);
/// Makes the prepared content FILE.undo, atomically and durably. After a failure either the old or the new
/// content may be in effect.
Status commit_flushed(storage::Target& target, const std::string& path);

/// True if a restore to an earlier flush is announced or has begun.
inline bool is_restore(const Flushed& flushed) { return flushed.through > flushed.generation; }
/// Says durably that an announced restore has begun: all undo files of its way are there, and stay.
Status begin_restore(storage::Target& target, const std::string& path, Flushed announced);
/// Makes FILE.undo what it was before a restore was announced that has changed nothing.
Status take_back_restore(storage::Target& target, const std::string& path, const Flushed& announced);

/// Brings the file back to its last flushed content, if a program has ended without closing it, or completes
/// a restore to an earlier flush. A restore that was announced, and whose undo files have gone before it has
/// changed anything, is taken back. Keeps the undo files of earlier flushes if there is FILE.undo.kept. The
/// caller has the lock. Returns true if there was anything to do. If it fails or is killed, it can be
/// repeated.
Result<bool> bring_back_flushed(storage::Target& target, const std::string& path);
/// Removes all undo files, which are not needed any more. Returns the highest generation of any of them, or 0
/// if there was none. The removals are not durable.
Result<std::int64_t> drop_undo_files(storage::Target& target, const std::string& path);

}  // namespace tailrace::journal
