// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faces/checkpoint/copy.hpp"
#include "faces/streams/resume/resume.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/journal/kept_flushes.hpp"
#include "ground/journal/position.hpp"

namespace tailrace::restart {

/// A file that the program writes without the library, and that a checkpoint covers (tr_checkpoint_covers).
/// It only grows: cutting brings it back.
struct CoveredFile {
  std::string path;
  Bytes size = 0;
  std::uint64_t sample = 0;  // checksum of the first and the last bytes within `size`
  bool is_restart = false;   // the program's restart file of this one generation: later saves have others
  friend bool operator==(const CoveredFile&, const CoveredFile&) = default;
};

/// The last flush of a shared file that is open with safety=, or was. Undo files lead back there until no
/// copy needs them.
using SharedFlush = journal::RecordedFlush;

/// Packs flushes with their number, and unpacks them. Code::corrupt for other bytes.
void put_flushes(Packer& out, const std::vector<SharedFlush>& all);
Result<std::vector<SharedFlush>> get_flushes(Unpacker& in);

/// How a shared file stands to a recorded flush.
struct FlushStanding {
  bool is_left_open = false;  // a program has ended without closing it: it goes back to its last flush
  /// The file has the bytes of the flush or, if it is left open, goes back to them. Of a flush that an early
  /// version has recorded, without Flushed::open, only the size and the sample tell.
  bool is_there = false;
  bool leads_back = false;  // a load or restore brings the file to the flush
  Bytes size = 0;
  Bytes put_back = 0;     // if undo files lead back: how many bytes they change
  std::string text = {};  // for people
};

/// Local; changes nothing; waits for storage. The file is open in no program.
Result<FlushStanding> standing_of(storage::Target& target, const SharedFlush& from);
/// Undo files of a shared file that nobody needs. Call journal::raise_lowest_kept() before they are removed.
struct UselessFlushFiles {
  std::string path;         // of the shared file
  std::uint64_t open = 0;   // Flushed::open
  std::int64_t needed = 0;  // the lowest generation that a copy needs
  std::vector<std::string> files = {};
};
/// Local; waits for storage. Returns the undo files of shared files that no copy of any checkpoint needs to
/// bring them back; none while copies of another checkpoint are not found or not whole. Looks at the shared
/// files that copies of the checkpoint at these paths have recorded.
Result<std::vector<UselessFlushFiles>> useless_flush_files(storage::Target& target,
                                                           const std::string& checkpoint,
                                                           const std::vector<std::string>& copies);

/// A checkpoint that FILE.undo.kept of a shared file names, and of which no copy under its name has recorded
/// the file. While it is named, no undo files of the file go: its copies may lie in given places.
struct AbsentCheckpoint {
  std::string name;
  std::string path;  // of the shared file
};
/// Local; waits for storage. Returns those of the shared files that copies at these paths have recorded.
/// `checkpoint` itself is none.
Result<std::vector<AbsentCheckpoint>> absent_checkpoints(storage::Target& target,
                                                         const std::string& checkpoint,
                                                         const std::vector<std::string>& copies);
/// Local; waits for storage. A copy of the checkpoint is about to record this flush of a file that the
/// program has closed, or has not opened: from now on undo files that lead there stay for the checkpoint.
/// Durable on return. Returns Code::state if another program has the file open, or has begun it anew.
Status claim_closed(storage::Target& target, const SharedFlush& flush, const std::string& checkpoint);

/// Local; waits for storage. The checkpoint was removed for good: no undo files of the shared file stay for
/// it any more. If they stayed for no other one, they go. Durable on return. Returns Code::state, and changes
/// nothing, while a program has the file or the checkpoint open, or if a copy with the checkpoint's name has
/// recorded the file or is not whole, and Code::argument if no undo files stay for it.
Status forget_checkpoint(storage::Target& target, const std::string& path, const std::string& checkpoint);

/// The positions of a program's outputs, as a copy has recorded them (docs/formats/checkpoint.md).
struct Recorded {
  std::vector<streams::Position> streams;
  std::vector<journal::Position> files;
  std::vector<CoveredFile> covered = {};
  std::vector<SharedFlush> shared = {};

  /// Returns no bytes if there is no output.
  [[nodiscard]] ByteVector pack() const;
  /// Returns Code::corrupt if the bytes are damaged, and Code::unsupported if a later version has written
  /// them.
  static Result<Recorded> unpack(std::span<const std::byte> bytes);
};

/// Local, like the functions below. Returns what a save records of a covered file now. A file that is not
/// there has no bytes.
Result<CoveredFile> covered_now(storage::Target& target, const std::string& path);
/// Changes nothing. Returns how many bytes the file has behind those that were recorded. Returns
/// Code::corrupt if it has fewer, or if it did not only grow, as far as its first and last recorded bytes
/// tell.
Result<Bytes> behind_covered(storage::Target& target, const CoveredFile& from);
/// Cuts the file back to the recorded bytes, durably, or returns the error of behind_covered().
Status cut_covered(storage::Target& target, const CoveredFile& from);

/// Returns the oldest generation whose undo files a copy needs. Returns 0 if the copy's positions cannot be
/// read: it may need all of them.
std::int64_t oldest_undo(const checkpoint::Copy& copy);
/// Notes for each recorded file which of the undo files beside the copy bring it back.
Status find_undo_files(storage::Target& target, const checkpoint::Copy& copy, Recorded& recorded);

}  // namespace tailrace::restart
