// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faces/input/files.hpp"
#include "faces/input/ring.hpp"
#include "ground/node/budget.hpp"

namespace tailrace::input {

/// Counts of one process. Any thread may add.
struct LoadCounts {
  std::atomic<std::int64_t> records{0};  // decoded
  std::atomic<std::int64_t> bytes{0};    // of the files that were read for them
};

/// The memory that a thread needs to decode records. It is drawn on the node's budget while the thread has
/// it. Not thread-safe.
class DrawnScratch {
 public:
  /// `budget` must outlive it.
  explicit DrawnScratch(node::Budget& budget) : budget_(budget), draw_(budget, node::Use::input) {}
  ~DrawnScratch() { release(); }
  DrawnScratch(const DrawnScratch&) = delete;
  DrawnScratch& operator=(const DrawnScratch&) = delete;
  /// Makes room for a record. Code::memory if the budget has less left; refused() returns it from then on,
  /// until room was made.
  Status reserve(Bytes bytes, const std::string& what);
  [[nodiscard]] const Status& refused() const { return refused_; }
  void forget_refusal() { refused_ = Status(); }
  /// Gives the memory back. A thread that waits must not keep it: others of the node may have too little.
  void release();
  /// Blocks for some milliseconds without the memory, if somebody on the node was refused some since it was
  /// drawn: a worker that reads record after record would keep a get from it.
  void make_way();
  /// Returns true if somebody on the node has memory to decode with: it gives that back soon.
  [[nodiscard]] bool is_anyone_decoding() const { return budget_.decoders() > 0; }
  /// Returns the memory, of which at most what reserve() was told may be used.
  [[nodiscard]] sources::Scratch& memory() { return memory_; }

 private:
  node::Budget& budget_;
  sources::Scratch memory_;
  node::Draw draw_;
  std::int64_t refusals_ = 0;  // on the node, when the memory was drawn
  Status refused_;
};

/// Works on the ring of one field, for one process: it needs the memory and the files alone. Any thread may
/// call it, with a DrawnScratch of its own.
class Loader {
 public:
  /// `files` are those of the ring's definition.
  Loader(std::byte* memory, comm::Transport& transport, std::shared_ptr<Files> files, LoadCounts& counts)
      : ring_(memory, transport), files_(std::move(files)), counts_(counts) {}

  [[nodiscard]] Ring& ring() { return ring_; }
  /// Reads and decodes one record of a step that is needed at most `ahead` steps from now. Returns false if
  /// there is none to do, or the budget has no room to decode it: scratch.refused(). Another failure is in
  /// the ring.
  bool work_once(Index ahead, DrawnScratch& scratch);
  /// Does the same with this record. Returns false if another worker has it, or without room.
  bool work_on(Index slot, Index level, DrawnScratch& scratch);

 private:
  bool work(const Ring::Claim& claim, DrawnScratch& scratch);
  Status load(const Ring::Claim& claim, DrawnScratch& scratch, std::uint64_t& version);
  Status load_from(std::shared_ptr<const OpenFile>& file, const Ring::Claim& claim, DrawnScratch& scratch);
  void forget_once(std::int64_t lead);
  Status check_grid(const OpenFile& file, const sources::Grid& grid);
  Status fill_missing(const OpenFile& file, const Ring::Claim& claim, Index missing) const;

  Ring ring_;
  std::shared_ptr<Files> files_;
  LoadCounts& counts_;
  std::mutex mutex_;
  codec::Keys checked_;                                        // of the grid that was found right last
  std::pair<std::int64_t, std::int64_t> opened_anew_{-1, -1};  // step of the program, lead of the file
};

/// Reads records of the step that is needed first, at most one of each ring and some dozens of all. Returns
/// false if there is none.
bool work_on_soonest(std::span<Loader* const> loaders, DrawnScratch& scratch);
/// Reads records of the rings until none is left, or `is_over`: `loaders` returns them each time. Without
/// room to decode it rests and tries again. The scratch has no memory on return, whatever happens.
/// Code::memory if the process has none.
Status work_on_all(const std::function<std::vector<Loader*>()>& loaders, const std::atomic<bool>& is_over,
                   DrawnScratch& scratch);

}  // namespace tailrace::input
