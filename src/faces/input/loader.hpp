// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "faces/input/files.hpp"
#include "faces/input/ring.hpp"
#include "ground/node/budget.hpp"

namespace tailrace::input {

/// Counts of the records that a process has read. Any thread may add.
struct LoadCounts {
  std::atomic<std::int64_t> records{0};  // decoded
  std::atomic<std::int64_t> bytes{0};    // bytes of the files read for them
};

/// The memory in which a thread decodes records. It counts in the node's budget while the thread has it. Not
/// thread-safe.
class DrawnScratch {
 public:
  /// `budget` must outlive it.
  explicit DrawnScratch(node::Budget& budget) : budget_(budget), draw_(budget, node::Use::input) {}
  ~DrawnScratch() { release(); }
  DrawnScratch(const DrawnScratch&) = delete;
  DrawnScratch& operator=(const DrawnScratch&) = delete;
  /// Takes memory for a record. Code::memory if the budget has less left; refused() then returns the same
  /// error until the next reserve() or forget_refusal().
  Status reserve(Bytes bytes, const std::string& what);
  [[nodiscard]] const Status& refused() const { return refused_; }
  void forget_refusal() { refused_ = Status(); }
  /// Gives the memory back. Call it before waiting: other ranks of the node may have too little.
  void release();
  /// Gives the memory back and blocks for some milliseconds, if another rank of the node was refused memory
  /// meanwhile. Without it, a worker that reads record after record could keep a get waiting.
  void make_way();
  /// True if a thread of the node has memory to decode with, which it will soon give back.
  [[nodiscard]] bool is_anyone_decoding() const { return budget_.decoders() > 0; }
  /// Returns the memory. Use at most the bytes given to reserve().
  [[nodiscard]] sources::Scratch& memory() { return memory_; }

 private:
  node::Budget& budget_;
  sources::Scratch memory_;
  node::Draw draw_;
  std::int64_t refusals_ = 0;  // refusals on the node when the memory was drawn
  Status refused_;
};

/// Reads records into the ring of one field. It needs only the ring's memory and the files. Any thread may
/// call it, with its own DrawnScratch.
class Loader {
 public:
  /// `files` are those of the ring's definition.
  Loader(std::byte* memory, comm::Transport& transport, std::shared_ptr<Files> files, LoadCounts& counts)
      : ring_(memory, transport), files_(std::move(files)), counts_(counts) {}

  [[nodiscard]] Ring& ring() { return ring_; }
  /// Local. Blocks on storage. Reads and decodes one record of a step that is needed at most `ahead` steps
  /// from now. Returns false if there is none to read, or if the budget has no memory left to decode it:
  /// scratch.refused(). Any other error is stored in the ring.
  bool work_once(Index ahead, DrawnScratch& scratch);
  /// Local. Blocks on storage. As work_once, for this record. Returns false also if another worker has it.
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
  codec::Keys checked_;                                        // keys of the last grid that was checked
  std::pair<std::int64_t, std::int64_t> opened_anew_{-1, -1};  // step of the program, lead of the file
};

/// Local. Blocks on storage. Reads records of the step that is needed first, at most one for each ring and 64
/// in all. Returns false if there is none.
bool work_on_soonest(std::span<Loader* const> loaders, DrawnScratch& scratch);
/// Local. Blocks on storage. Reads records of the rings until none is left or `is_over` is true. Calls
/// `loaders` for the rings each time. If there is no memory to decode, rests and tries again. The scratch has
/// no memory on return, in any case. Code::memory if the process has none.
Status work_on_all(const std::function<std::vector<Loader*>()>& loaders, const std::atomic<bool>& is_over,
                   DrawnScratch& scratch);

}  // namespace tailrace::input
