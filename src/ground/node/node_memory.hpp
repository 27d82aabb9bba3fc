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

class DescriptorSocket;

/// Memory that the ranks of one node share. It is one sealed memfd, which the first rank passes to the others
/// over a socket (SCM_RIGHTS, unix(7)). It has no name, so nothing is left behind when processes are killed.
/// Its pages are allocated before it is used (fallocate(2)): a lack of memory is then an error, and never a
/// SIGBUS later.
class NodeMemory {
 public:
  static constexpr Bytes everything = std::numeric_limits<Bytes>::max();
  /// Who allocates the bytes that create() does not allocate. `none`: there are none. `by_any`: any rank, by
  /// add().
  enum class Growth { none, by_any };

  /// Collective over `node`, a line of ranks of one node. Rank i gets a part of `bytes[i]` bytes. Each rank
  /// itself allocates and prefaults the first `at_once` bytes of its part. The other bytes must not be
  /// touched until add() has allocated them. If `ready` is an error, the rank votes with it, and no rank gets
  /// memory. Blocks until all ranks have called it. Returns the same Status on every rank.
  static Result<std::unique_ptr<NodeMemory>> create(comm::Line& node, std::span<const Bytes> bytes,
                                                    bool huge_pages, Bytes at_once = everything,
                                                    const Status& ready = {}, Growth growth = Growth::none);
  /// Local. Maps memory that other ranks of this node have made with Growth::by_any. `descriptor` is the
  /// descriptor of that memory; this function owns it, also if it fails. `told` has what tell() has packed.
  /// The caller has no part of its own, and may call add(). The memory exists until the last process lets go
  /// of it.
  static Result<std::unique_ptr<NodeMemory>> attach(int descriptor, Unpacker& told);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  [[nodiscard]] std::byte* part(int node_rank) const {
    return base_ + offsets_[static_cast<std::size_t>(node_rank)];
  }
  /// Returns `bytes` rounded up to the size of the pages in which memory is allocated.
  [[nodiscard]] Bytes whole_pages(Bytes bytes) const;
  /// Local. Only with Growth::by_any. Allocates `bytes` bytes from `begin` on, in any rank's part, which
  /// nobody has allocated yet. `begin` and `bytes` are multiples of the system's page size. Any thread.
  /// Returns Code::memory if the node has no memory for them.
  Status add(const std::byte* begin, Bytes bytes) { return allocate(begin - base_, begin - base_ + bytes); }
  /// Local. Maps the parts of all ranks, which must have allocated them. Otherwise the first access to each
  /// page would take long.
  void map_all();
  [[nodiscard]] Bytes size() const { return offsets_.back(); }
  /// Packs the sizes of the parts, for attach().
  void tell(Packer& out) const;
  /// Returns the descriptor of the memory, or -1 with Growth::none.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Returns how many bytes this process has mapped in huge pages. Slow.
  [[nodiscard]] Bytes huge_bytes() const;

 private:
  NodeMemory() = default;
  Status open(comm::Line& node, std::span<const Bytes> bytes, Bytes at_once, const Status& ready);
  Status make(DescriptorSocket& socket);
  Status take_from(const DescriptorSocket& socket, comm::Switchboard& board);
  Status map();
  Status map(int rank, Bytes at_once);
  Status allocate(Bytes from, Bytes to);
  std::byte* base_ = nullptr;
  std::vector<Bytes> offsets_;
  bool huge_pages_ = false;
  Growth growth_ = Growth::none;
  int descriptor_ = -1;  // open while something may still be allocated
};

}  // namespace tailrace::node
