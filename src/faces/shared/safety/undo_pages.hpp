// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "faces/shared/pages/page_deal.hpp"
#include "ground/comm/line.hpp"
#include "ground/journal/flushed.hpp"
#include "ground/node/budget.hpp"
#include "ground/node/node_memory.hpp"
#include "ground/node/shared_lock.hpp"

namespace tailrace::shared {

/// Keeps the bytes that the pages of a node had at the last flush in undo files, before the pages are written
/// over. Each rank that stores pages has undo files of its own. All ranks of the node know which pages were
/// kept, since no page may be kept twice: the second record could have bytes that were written after the
/// flush.
class UndoPages {
 public:
  struct Owner {
    std::string path;  // of the shared file
    int rank = 0;
    int ranks = 1;
    Bytes page = 0;
    std::shared_ptr<const PageDeal> deal;
  };

  UndoPages(comm::Line& node, storage::Target& target, node::Budget& budget, Owner owner);

  /// Collective over the node: makes room for the notes about the pages of a file of `size` bytes. Returns
  /// the same Status on every rank of the node.
  Status prepare(Bytes size);
  /// Begins with newly flushed content, for which all ranks of the node have called prepare(): all its pages
  /// are changeable. No rank may store meanwhile: all ranks are in one collective call, and agree afterwards.
  void begin(const journal::Flushed& flushed);
  /// Returns how many undo files of this rank go after the next flush, if those of earlier flushes stay.
  [[nodiscard]] std::int64_t passing_files() {
    const std::lock_guard lock(mutex_);
    return keeps_ ? std::ssize(passing_.files) : 0;
  }
  /// Removes this rank's undo files of the flush before the last one that nobody needs any more.
  void drop();
  /// Local. A checkpoint may have recorded the last flush, or the content that the file had when it was
  /// opened: from now on undo files stay over flushes, as far as they are needed to go back to the recorded
  /// flushes.
  void keep_earlier();

  /// Any thread; waits for storage. Call it before these bytes are written over or cut off. Once it returns,
  /// the flushed bytes of their pages are durable in undo files. Leaves out pages of other nodes, which keep
  /// theirs. If it fails, the caller must not change these bytes.
  Status keep(storage::File& file, Bytes offset, Bytes bytes);

 private:
  /// A page has one of these states. Memory of zeros is `changeable`.
  enum class State : std::uint8_t {
    changeable,
    being_kept,
    kept,
    again,  // changeable, and undo files that stay have what it had at the flush that was recorded last
  };
  using Note = std::atomic<State>;
  /// The notes about all flushed pages of the node, in memory that its ranks share.
  struct Notes {
    explicit Notes(node::Budget& budget) : drawn(budget, node::Use::pages) {}
    node::Draw drawn;
    std::unique_ptr<node::NodeMemory> memory;
    Index pages = 0;
  };
  class Claim;
  /// The undo files of one kind that this rank has made since the last begin().
  struct Writing {
    std::unique_ptr<journal::UndoWriter> writer;
    std::vector<std::string> files = {};
  };

  [[nodiscard]] Note& note(Index near) const;
  [[nodiscard]] Note& note_of(Index page) const { return note(owner_.deal->place_of_page(page).near); }
  [[nodiscard]] Index pages_of_node(Bytes size) const;
  [[nodiscard]] Index own_from(Index page) const;
  void claim_ahead(Index from, Claim& claim) const;
  Status keep_pages(storage::File& file, Index first, Index last);
  Result<Bytes> read(storage::File& file, std::span<std::byte> into, Bytes at) const;
  Status keep_claimed(storage::File& file, const Claim& claim);
  [[nodiscard]] State after_flush(State state) const;
  Status add(Writing& to, storage::File& file, Bytes begin, Bytes end);

  comm::Line& node_;
  comm::Transport& transport_;
  storage::Target& target_;
  node::Budget& budget_;
  const Owner owner_;
  journal::Flushed flushed_;
  std::unique_ptr<Notes> notes_;
  std::unique_ptr<Notes> next_;   // made by prepare() for the next begin()
  std::mutex mutex_;              // guards the members below
  bool keeps_ = false;            // undo files of earlier flushes stay
  bool is_recorded_ = false;      // a checkpoint may have recorded the last flush, or the content at the open
  Writing staying_;               // what is needed to go back to earlier flushes, too
  Writing passing_;               // what is needed until the next flush alone
  std::vector<std::string> old_;  // passing ones from before the last begin()
  std::atomic<Bytes> kept_{0};    // bytes that were kept since the last begin()
};

}  // namespace tailrace::shared
