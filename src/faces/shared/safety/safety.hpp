// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "faces/files/group.hpp"
#include "faces/shared/definition.hpp"
#include "faces/shared/safety/undo_pages.hpp"

namespace tailrace::shared {

/// Makes one shared file outlive a crash: whenever the program ends, the file has the content of the last
/// flush, whole. docs/design/025-shared-file-safety.md. It belongs to one rank.
class SafeFile {
 public:
  SafeFile(files::Group& group, const Definition& what);

  /// Local. Says how the pages are dealt out. Other calls come after it.
  void place(Bytes page, const std::shared_ptr<const PageDeal>& deal);
  /// Local, on the I/O rank, before the file is opened. Takes the lock, and brings the file back if a program
  /// was killed.
  Status lock();
  /// Returns the name under which the file is written by now.
  [[nodiscard]] const std::string& path() const { return is_renamed_ ? path_ : temporary_; }
  [[nodiscard]] bool has_its_name() const { return is_renamed_; }
  /// Returns the permissions with which the file is made.
  [[nodiscard]] unsigned permissions() const;
  /// Local, on the I/O rank. The open file becomes durable, as the content to go back to.
  Status begin(storage::File& file);
  /// Tells the other ranks of that content.
  void tell(Packer& out) const { out.put(flushed_); }
  /// Collective over the node. Takes what the I/O rank tells, and a share in its lock.
  Status hear(Unpacker& in);
  /// Local, on the I/O rank, if the file could not be opened on another rank.
  void give_up();

  /// Any thread; waits for storage. Call it before bytes of the file are written or cut off. After a failure
  /// they must stay.
  Status keep(storage::File& file, Bytes offset, Bytes bytes);
  /// Collective. All that was stored is durable on all nodes, and is `size` bytes, the same on every rank. It
  /// becomes the content to go back to, or the file that needs none if the program closes it. Returns the
  /// same Status on every rank.
  Status commit(storage::File& file, Bytes size, bool closes, const std::string& call);
  /// Local. Lets go of the lock: this rank stores nothing any more. The I/O rank does it after all others.
  void release() { lock_.reset(); }

 private:
  Status look_at_old();
  void give_rights(storage::File& file);
  Status share_lock();
  Status take_name(storage::File& file);
  Status commit_here(storage::File& file, const journal::Flushed& next, bool closes);

  files::Group& group_;
  storage::Target& target_;
  std::string path_;       // behind links
  std::string temporary_;  // the name before the first flush with safety=rename
  bool is_renamed_;        // true also if there is no temporary name
  unsigned permissions_;   // of a file that replaces none
  // The file that this one replaces is open until then: its name may lead to another one meanwhile.
  std::unique_ptr<storage::File> replaced_;
  std::shared_ptr<void> lock_;  // this rank's share
  bool has_begun_ = false;      // on the I/O rank: what lies beside the file is ours
  journal::Flushed flushed_;
  std::unique_ptr<UndoPages> pages_;
  std::atomic<bool> stored_{false};  // since the last commit
  bool is_doubtful_ = false;         // on the I/O rank: a failed commit may count
  Status failure_;                   // of a commit that may count; guarded by collective calls
};

/// Local. Returns the name of the file to which a name leads, by links.
std::string behind_links(const std::string& path);
/// Local. Brings a file back that a killed program has left, unless another one is writing it: then a program
/// that only reads gets it as it is, and others get Code::state.
Status bring_back_before_opening(storage::Target& target, const Definition& what);

}  // namespace tailrace::shared
