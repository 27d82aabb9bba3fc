// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "faces/files/group.hpp"
#include "faces/shared/definition.hpp"
#include "faces/shared/safety/undo_pages.hpp"
#include "ground/journal/kept_flushes.hpp"

namespace tailrace::shared {

/// Makes one shared file outlive a crash: whenever the program ends, the file has the whole content of the
/// last flush, or can be brought back to it. docs/design/025-shared-file-safety.md. Each rank has a SafeFile.
class SafeFile {
 public:
  SafeFile(files::Group& group, const Definition& what);

  /// Local. Tells which pages belong to which rank. Call it before all other functions.
  void place(Bytes page, const std::shared_ptr<const PageDeal>& deal);
  /// Local, on the I/O rank, before the file is opened. Takes the lock, and brings the file back to its last
  /// flush if a killed program has left it. Returns Code::state if another program has the lock.
  Status lock();
  /// Returns the name that the file has at this time: with safety=rename a temporary one until the first
  /// flush.
  [[nodiscard]] const std::string& path() const { return is_renamed_ ? path_ : temporary_; }
  [[nodiscard]] bool has_its_name() const { return is_renamed_; }
  /// Returns the permissions with which a new file is created.
  [[nodiscard]] unsigned permissions() const;
  /// Local, on the I/O rank, once the file is open; waits for storage. Makes the content that the file has
  /// now durable, as the one to which a crash leads.
  Status begin(storage::File& file);
  /// Packs what hear() needs. On the I/O rank, after begin().
  void tell(Packer& out) const { out.put(flushed_).put(kept_.has_value()); }
  /// Collective over the node. Unpacks what tell() has packed on the I/O rank, and takes a share of its lock.
  Status hear(Unpacker& in);
  /// Local, on the I/O rank, if opening has failed on another rank: removes the files that begin() has made.
  void give_up();

  /// Any thread; waits for storage. Call it before bytes of the file are written over or cut off: keeps the
  /// bytes of the last flush in an undo file. If it fails, the caller must not change these bytes.
  Status keep(storage::File& file, Bytes offset, Bytes bytes);
  /// Collective over the group; blocks until all ranks have called it. Before it, all stored bytes must be
  /// durable on all nodes. Makes the content of the file, `size` bytes on every rank, the one to which a
  /// crash leads; with `closes` the file needs no undo files any more. Returns the same Status on every rank.
  Status commit(storage::File& file, Bytes size, bool closes, const std::string& call);
  /// Local, on the I/O rank. Returns the last flush, or nothing if the file has not its name yet. The sample
  /// is 0 if the flushed bytes could not be read.
  struct LastFlush {
    std::string path;
    journal::Flushed flushed;
  };
  [[nodiscard]] std::optional<LastFlush> last_flush() const;
  /// The same, if earlier flushes are kept for checkpoints.
  [[nodiscard]] std::optional<LastFlush> kept_flush() const { return kept_ ? last_flush() : std::nullopt; }
  /// Local, on every rank, within a collective call; the I/O rank may wait for storage. The checkpoint is
  /// about to record the last flush: from now on undo files lead back there, over flushes and closes, until
  /// no copy of the checkpoint needs them. Durable on return.
  Status keep_for(const std::string& checkpoint);
  /// Local. Gives back this rank's share of the lock: the rank stores nothing any more. The I/O rank gives
  /// its share back after all others.
  void release() { lock_.reset(); }

 private:
  Status look_at_old();
  void give_rights(storage::File& file);
  Status share_lock();
  Status take_kept();
  Status give_up_kept();
  Status leave_kept(std::int64_t generation, std::int64_t passing);
  Status check_temporary(storage::File& file) const;
  Status take_name(storage::File& file);
  Result<std::uint64_t> sample_now(Bytes size) const;
  Status commit_here(storage::File& file, const journal::Flushed& next, bool closes, std::int64_t passing);

  files::Group& group_;
  storage::Target& target_;
  std::string path_;       // behind symbolic links
  std::string temporary_;  // the name before the first flush with safety=rename
  bool is_renamed_;        // the file has its name; always without safety=rename
  bool begins_anew_;       // the open empties the file
  unsigned permissions_;   // of a new file that replaces none
  // The old file, which stays open until the new one has its name: its name may lead to another file by then.
  std::unique_ptr<storage::File> replaced_;
  std::shared_ptr<void> lock_;  // this rank's share
  bool has_begun_ = false;      // on the I/O rank: the files beside the file are this program's
  journal::Flushed flushed_;    // the sample on the I/O rank alone
  /// On the I/O rank: FILE.undo.kept, if there is any.
  std::optional<journal::KeptFlushes> kept_;
  std::int64_t given_up_ = 0;  // the last generation of earlier flushes that this open has given up
  std::unique_ptr<UndoPages> pages_;
  std::atomic<bool> stored_{false};  // since the last commit
  bool is_doubtful_ = false;         // on the I/O rank: if the commit fails now, it may still count
  Status failure_;  // of a commit that may count all the same; only collective calls change it
};

/// Local. Brings a file that a killed program has left back to its last flush. If another program is writing
/// the file, returns Code::state to a program that writes, and nothing is done for one that only reads.
Status bring_back_before_opening(storage::Target& target, const Definition& what);

}  // namespace tailrace::shared
