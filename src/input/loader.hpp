// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "input/files.hpp"
#include "input/ring.hpp"

namespace tailrace::input {

/// Counts of one process. Any thread may add.
struct LoadCounts {
  std::atomic<std::int64_t> records{0};  // decoded
  std::atomic<std::int64_t> bytes{0};    // of the files that were read for them
};

/// Works on the ring of one field, for one process: it needs the memory and the files alone. Any thread may
/// call it, with a Scratch of its own.
class Loader {
 public:
  /// `files` are those of the ring's definition.
  Loader(std::byte* memory, comm::Transport& transport, std::shared_ptr<Files> files, LoadCounts& counts)
      : ring_(memory, transport), files_(std::move(files)), counts_(counts) {}

  [[nodiscard]] Ring& ring() { return ring_; }
  /// Reads and decodes one record of a step that is needed at most `ahead` steps from now. Returns false if
  /// there is none to do. A failure is in the ring.
  bool work_once(Index ahead, sources::Scratch& scratch);
  /// Does the same with this record. Returns false if another worker has it.
  bool work_on(Index slot, Index level, sources::Scratch& scratch);

 private:
  void work(const Ring::Claim& claim, sources::Scratch& scratch);
  Status load(const Ring::Claim& claim, sources::Scratch& scratch, std::uint64_t& version);
  Status load_from(std::shared_ptr<const OpenFile>& file, const Ring::Claim& claim,
                   sources::Scratch& scratch);
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

/// Reads one record of the step that is needed first, of any of the rings. Returns false if there is none.
bool work_on_soonest(std::span<Loader* const> loaders, sources::Scratch& scratch);

}  // namespace tailrace::input
