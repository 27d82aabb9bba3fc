// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

namespace tailrace::node {

/// A definition, as a server reads it from a lane's memory.
struct KeptDefinition {
  std::uint32_t stream = 0;
  std::int32_t level = 0;    // Descriptor::level
  std::uint64_t number = 0;  // the number of its descriptor in the lane
  ByteVector bytes;
};

/// The definitions of open streams, in memory beside the ring of a lane. The lane's rank writes them, and
/// drops the definitions of a stream once the stream is over. A server that takes over the lane in the middle
/// of a stream finds them here. The ring holds only their descriptors.
class KeptDefinitions {
 public:
  /// Tells a server how far the previous server came with a stream. The rank makes it, and servers write to
  /// it.
  struct Progress {
    static constexpr std::int64_t not_open = -1;
    /// Number of steps with a verdict that the server has told to all ranks.
    std::atomic<std::int64_t> decided{not_open};
  };

  /// `memory` has `size` bytes and begins on a cache line. The rank and all servers pass the same memory.
  KeptDefinitions(std::byte* memory, Bytes size) : memory_(memory), size_(size) {}
  /// True if there is memory. Without memory nothing is kept.
  [[nodiscard]] bool is_there() const { return size_ > 0; }
  /// Empties the memory. The rank calls it before anything else is called.
  void clear();
  /// Keeps a definition. Returns its place, or a negative number if there is no room. Called by the rank.
  Bytes keep(std::uint32_t stream, std::int32_t level, std::uint64_t number,
             std::span<const std::byte> bytes);
  /// Drops the definitions of a stream. The rank calls it once all servers have finished with the stream.
  void drop(std::uint32_t stream);
  /// Returns the bytes of the definition at `place`.
  [[nodiscard]] std::span<const std::byte> at(Bytes place) const;

  /// Returns all definitions, in the order of the rank's calls. Called by a server that takes over the lane.
  [[nodiscard]] std::vector<KeptDefinition> all() const;
  /// Returns the newest stream whose definition was ever kept here, or 0 if there was none.
  [[nodiscard]] std::uint32_t newest_stream() const;
  /// Returns the progress of a stream that has definitions here, or nullptr. The pointer is valid until the
  /// rank drops the stream.
  [[nodiscard]] Progress* progress(std::uint32_t stream) const;

 private:
  struct Head;
  struct Block;
  [[nodiscard]] Head& head() const;
  [[nodiscard]] Block& block(Bytes place) const;
  [[nodiscard]] Bytes first() const;
  /// True if the rank has not changed the blocks since `changes`. If false, anything may have been read.
  [[nodiscard]] bool is_same_since(std::uint64_t changes) const;
  /// Returns the places of the blocks in use. The rank may be changing them meanwhile.
  [[nodiscard]] std::vector<Bytes> used() const;
  void join_free();

  std::byte* memory_;
  Bytes size_;
};

}  // namespace tailrace::node
