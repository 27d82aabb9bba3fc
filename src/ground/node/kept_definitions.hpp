// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

namespace tailrace::node {

/// A definition as it stands in a lane's memory.
struct KeptDefinition {
  std::uint32_t stream = 0;
  std::int32_t level = 0;    // as in its descriptor
  std::uint64_t number = 0;  // of its descriptor in the lane
  ByteVector bytes;
};

/// The definitions of open streams, in memory beside the ring of a lane. The lane's rank writes them and
/// drops those of a stream when that is over, so that a server that takes the lane over in the middle of a
/// stream finds them. The ring has their descriptors alone.
class KeptDefinitions {
 public:
  /// Tells a server how far the one before it came with a stream. The rank makes it, and servers write to it.
  struct Progress {
    static constexpr std::int64_t not_open = -1;
    /// Counts the steps whose verdict the server has told to all ranks.
    std::atomic<std::int64_t> decided{not_open};
  };

  /// `memory` has `size` bytes, on a cache line. Both are the same for the rank and all servers.
  KeptDefinitions(std::byte* memory, Bytes size) : memory_(memory), size_(size) {}
  /// Returns false if there is no memory: nothing is kept then.
  [[nodiscard]] bool is_there() const { return size_ > 0; }
  /// Called by the rank before anything else is: makes the memory empty.
  void clear();
  /// Called by the rank. Returns where the definition stands, or a negative number if there is no room.
  Bytes keep(std::uint32_t stream, std::int32_t level, std::uint64_t number,
             std::span<const std::byte> bytes);
  /// Called by the rank once all servers have finished with the stream.
  void drop(std::uint32_t stream);
  /// Returns the bytes of the definition that stands at `place`.
  [[nodiscard]] std::span<const std::byte> at(Bytes place) const;

  /// Called by a server that takes the lane over. Returns all definitions, in the order of the rank's calls.
  [[nodiscard]] std::vector<KeptDefinition> all() const;
  /// Returns the newest stream that was ever kept here; 0 if there was none.
  [[nodiscard]] std::uint32_t newest_stream() const;
  /// Returns the state of a stream that is kept here, or nullptr. It lasts until the rank drops the stream.
  [[nodiscard]] Progress* progress(std::uint32_t stream) const;

 private:
  struct Head;
  struct Block;
  [[nodiscard]] Head& head() const;
  [[nodiscard]] Block& block(Bytes place) const;
  [[nodiscard]] Bytes first() const;
  /// Returns false if the rank has changed the blocks after `changes`: what was read may be anything.
  [[nodiscard]] bool is_same_since(std::uint64_t changes) const;
  /// Returns where the blocks in use are, while the rank may be changing them.
  [[nodiscard]] std::vector<Bytes> used() const;
  void join_free();

  std::byte* memory_;
  Bytes size_;
};

}  // namespace tailrace::node
