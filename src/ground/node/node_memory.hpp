// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::node {

class Handover;

/// Memory that the ranks of one node share. It is one sealed memfd, handed round over a socket (SCM_RIGHTS,
/// unix(7)): it has no name, and nothing is left behind when processes are killed. Its pages exist before it
/// is used (fallocate(2)): a full memory is an error here and never a SIGBUS later.
class NodeMemory {
 public:
  static constexpr Bytes everything = std::numeric_limits<Bytes>::max();
  /// Says who allocates what is not allocated at once: nobody, since there is none, or any rank, by add().
  enum class Growth { none, by_any };

  /// Collective over `node`, a line of ranks of one node. Rank i gets `bytes[i]` bytes. It allocates and
  /// prefaults the first `at_once` of them itself. Nobody may touch the others before add() has returned. If
  /// `ready` is an error, the rank votes with it, and no rank gets memory. Returns the same Status on every
  /// rank.
  static Result<std::unique_ptr<NodeMemory>> create(comm::Line& node, std::span<const Bytes> bytes,
                                                    bool huge_pages, Bytes at_once = everything,
                                                    const Status& ready = {}, Growth growth = Growth::none);
  /// Local. Maps memory that other ranks of this node have made with Growth::by_any. Takes `descriptor` over,
  /// which must be theirs, also if it fails. `told` has what tell() has packed. The caller has no part of its
  /// own, and may add(): the memory lives until the last of them lets go of it.
  static Result<std::unique_ptr<NodeMemory>> attach(int descriptor, Unpacker& told);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  [[nodiscard]] std::byte* part(int node_rank) const {
    return base_ + offsets_[static_cast<std::size_t>(node_rank)];
  }
  /// Returns `bytes`, rounded up to the pages in which memory is allocated.
  [[nodiscard]] Bytes whole_pages(Bytes bytes) const;
  /// Local, with Growth::by_any. Allocates `bytes` bytes that nobody has allocated yet, from `begin` on, in
  /// any rank's part; both are multiples of the system's page. Any thread. Returns Code::memory if they
  /// cannot be had.
  Status add(const std::byte* begin, Bytes bytes) { return allocate(begin - base_, begin - base_ + bytes); }
  /// Local. Maps the parts of all ranks, once they have allocated them: a first access would take long.
  void map_all();
  [[nodiscard]] Bytes size() const { return offsets_.back(); }
  /// Packs the sizes of the parts, for attach().
  void tell(Packer& out) const;
  /// Returns the descriptor of the memory, or -1 with Growth::none.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Slow. Returns the bytes that this process has mapped in huge pages.
  [[nodiscard]] Bytes huge_bytes() const;

 private:
  NodeMemory() = default;
  Status open(comm::Line& node, std::span<const Bytes> bytes, Bytes at_once, const Status& ready);
  Status make(Handover& handover);
  Status take_from(const Handover& handover, comm::Switchboard& board);
  Status map();
  Status map(int rank, Bytes at_once);
  Status allocate(Bytes from, Bytes to);
  std::byte* base_ = nullptr;
  std::vector<Bytes> offsets_;
  bool huge_pages_ = false;
  Growth growth_ = Growth::none;
  int descriptor_ = -1;  // while something may be allocated
};

}  // namespace tailrace::node
