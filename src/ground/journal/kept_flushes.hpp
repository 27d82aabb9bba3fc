// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/journal/flushed.hpp"
#include "ground/storage/identity.hpp"

namespace tailrace::journal {

// FILE.undo.kept: the undo files of earlier flushes of a shared file stay for checkpoints that have recorded
// these flushes. docs/formats/undo-files.md#of-earlier-flushes

/// The content of FILE.undo.kept. Whoever writes it has the file open, or has its whole lock.
struct KeptFlushes {
  /// Flushed::open of all opens since this file exists: their generations go on, and compare.
  std::uint64_t open = 0;
  /// While no program has the file open: the last generation that any undo file or flush has had.
  std::int64_t last = 0;
  /// Opens that have ended since a save has recorded the file last.
  std::int64_t opens = 0;
  /// The checkpoints that have recorded flushes: claim_of() each.
  std::vector<std::string> claims = {};
  /// The file was brought back from generation `second` to `first`: nothing leads to those between and to
  /// `second` any more, and the undo files of all of them, also of `first`, count no longer.
  std::vector<std::pair<std::int64_t, std::int64_t>> gone = {};
  /// The lowest generation to which undo files may lead: others were never kept, or somebody has lost them.
  /// Files beside it may say a higher one, see lowest_kept().
  std::int64_t from = 0;
  /// The file had this size, and this time of its last write, when its last program closed it. The other
  /// members are 0; all are if storage does not tell.
  storage::Identity closed = {};
  /// How many undo files each generation had then, the lowest generation first.
  std::vector<std::pair<std::int64_t, std::int64_t>> undo_files = {};
  friend bool operator==(const KeptFlushes&, const KeptFlushes&) = default;
};

/// An open that finds so many ended opens since the last save gives the earlier flushes up: each open may
/// keep the whole file once.
constexpr std::int64_t most_opens = 16;

/// No open of a file has more flushes.
constexpr std::int64_t flushes_of_an_open = std::int64_t{1} << 38;

/// Returns FILE.undo.kept.
std::string kept_path(const std::string& path);
/// Returns how FILE.undo.kept names a checkpoint: relative to the directory of the file, so that both may
/// move together.
std::string claim_of(storage::Target& target, const std::string& path, const std::string& checkpoint);
/// Returns the name of the checkpoint that claim_of() has named so.
std::string claimant(const std::string& path, const std::string& claim);

/// Local, like all functions below; each waits for storage. Returns nothing if there is no FILE.undo.kept,
/// and Code::corrupt if this library did not write it.
Result<std::optional<KeptFlushes>> read_kept(storage::Target& target, const std::string& path);
/// Makes it durable, in one step.
Status write_kept(storage::Target& target, const std::string& path, const KeptFlushes& kept);
/// Gives up all earlier flushes: removes FILE.undo.kept durably, and then the undo files. The caller has the
/// lock, and the file is brought back. Returns the last generation, or 0 if there was no FILE.undo.kept. The
/// next open begins behind it: a save that removes old undo files meanwhile, by their generations, must not
/// meet new ones.
Result<std::int64_t> give_up_kept(storage::Target& target, const std::string& path);
/// Removes from `undo` the undo files that a restore has put back: they count no longer, also where it could
/// not remove them.
void leave_out_gone(const KeptFlushes& kept, std::vector<UndoName>& undo);
/// Returns the lowest generation to which undo files lead.
Result<std::int64_t> lowest_kept(storage::Target& target, const std::string& path, const KeptFlushes& kept);
/// Says durably that nothing leads to flushes before `generation`, of opens of this number. Call it before
/// you remove any undo files that lead there. Needs no lock. Returns Code::state, and says nothing, while
/// somebody brings the file back to such a flush: then remove nothing.
Status raise_lowest_kept(storage::Target& target, const std::string& path, std::uint64_t open,
                         std::int64_t generation);
/// Returns true if a file that no program has open is not what its last program has left.
Result<bool> was_changed(storage::Target& target, const std::string& path, const KeptFlushes& kept);
/// Notes what the closed file is, and its undo files before generation `end`, without `passing` ones of the
/// generation before: they are about to be removed. Call it once all bytes of the file are durable, and
/// before FILE.undo is removed.
Status note_closed(storage::Target& target, const std::string& path, std::int64_t end, std::int64_t passing,
                   KeptFlushes& kept);
/// Returns the highest generation of which undo files are missing that were there, or -1.
std::int64_t highest_missing(const KeptFlushes& kept, const std::vector<UndoName>& undo);
/// Returns Code::corrupt if a restore that is announced or has begun cannot be completed, as undo files of
/// its way are gone, or may be. What somebody says of them once it has begun does not count: whoever says it
/// then sees the restore, and removes nothing.
Status check_can_restore(storage::Target& target, const std::string& path, const Flushed& restore,
                         const KeptFlushes& kept);
/// Returns the highest generation of any undo file of the shared file, or 0.
Result<std::int64_t> highest_undo(storage::Target& target, const std::string& path);
/// Notes that the file has the content of generation `to` again, and that undo files of `last` were used.
void note_brought_back(KeptFlushes& kept, std::int64_t to, std::int64_t last);

/// A flush that a checkpoint has recorded. The path is behind symbolic links; the generation is that of the
/// flush, not of the checkpoint.
struct RecordedFlush {
  std::string path;
  std::int64_t generation = 0;
  Bytes size = 0;
  std::uint64_t sample = 0;  // 0: not known
  std::uint64_t open = 0;    // Flushed::open
  friend bool operator==(const RecordedFlush&, const RecordedFlush&) = default;
};
/// Returns what `look` returns. Calls it again if a file that it has found is gone by the time it reads it: a
/// commit or `tailrace checkpoint prune` removes undo files without any lock, and has said so before. A
/// client of NFS may go on to know files that are gone: after three looks returns what `otherwise` returns.
template <typename Look, typename Otherwise>
auto despite_removals(const Look& look, const Otherwise& otherwise) -> decltype(look()) {
  for (int looks = 0; looks < 3; ++looks) {
    auto found = look();
    if (found.status().error_number() != ENOENT) return found;
  }
  return otherwise();
}
/// Changes nothing. Returns the position of the file at that flush, with the undo files that lead there. It
/// returns nothing if none lead there: the file was begun anew, its undo files were given up or are gone, or
/// somebody else has changed it. `why`, if not nullptr, becomes the reason if undo files were kept.
Result<std::optional<Position>> way_back(storage::Target& target, const RecordedFlush& to,
                                         std::string* why = nullptr);
/// Brings the file back to that flush, durably; the undo files of earlier flushes stay. The caller has the
/// lock. Returns false, and changes nothing, if nothing leads there, also if undo files go while it looks. If
/// it fails or is killed, the next bring_back_flushed() completes it.
Result<bool> bring_back_to(storage::Target& target, const RecordedFlush& to);

}  // namespace tailrace::journal
