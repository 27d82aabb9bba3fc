// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/kept_definitions.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "ground/node/lane_memory.hpp"

namespace tailrace::node {

/// `changes` is odd while the rank changes the blocks. A reader that sees an odd or a changed number reads
/// again.
struct alignas(64) KeptDefinitions::Head {
  std::atomic<std::uint64_t> changes{0};
  std::atomic<std::uint32_t> newest{0};
};

/// Blocks follow one another without gaps, up to the end of the memory.
struct alignas(64) KeptDefinitions::Block {
  Bytes size = 0;  // including this head
  Bytes bytes = 0;
  std::uint64_t number = 0;
  std::uint32_t stream = 0;  // 0: the block is free
  std::int32_t level = 0;
  Progress progress;  // used only in the first block of a stream
};

KeptDefinitions::Head& KeptDefinitions::head() const { return *reinterpret_cast<Head*>(memory_); }

KeptDefinitions::Block& KeptDefinitions::block(Bytes place) const {
  return *reinterpret_cast<Block*>(memory_ + place);
}

Bytes KeptDefinitions::first() const { return static_cast<Bytes>(sizeof(Head)); }

void KeptDefinitions::clear() {
  new (memory_) Head();
  auto* const all = new (memory_ + first()) Block();
  all->size = size_ - first();
}

Bytes KeptDefinitions::keep(std::uint32_t stream, std::int32_t level, std::uint64_t number,
                            std::span<const std::byte> bytes) {
  const auto length = static_cast<Bytes>(bytes.size());
  const Bytes needed = static_cast<Bytes>(sizeof(Block)) + room_in_lane(length);
  for (Bytes place = first(); place < size_; place += block(place).size) {
    const Block& found = block(place);
    if (found.stream != 0 || found.size < needed) continue;
    const Bytes rest = found.size - needed;
    head().changes.fetch_add(1);
    if (rest > 0) (new (memory_ + place + needed) Block())->size = rest;
    auto* const made = new (memory_ + place) Block();
    made->size = needed;
    made->bytes = length;
    made->number = number;
    made->level = level;
    made->stream = stream;
    if (length > 0) std::memcpy(memory_ + place + sizeof(Block), bytes.data(), bytes.size());
    head().newest = std::max<std::uint32_t>(head().newest, stream);
    head().changes.fetch_add(1);
    return place;
  }
  return -1;
}

void KeptDefinitions::drop(std::uint32_t stream) {
  head().changes.fetch_add(1);
  for (Bytes place = first(); place < size_; place += block(place).size) {
    if (block(place).stream == stream) block(place).stream = 0;
  }
  join_free();
  head().changes.fetch_add(1);
}

void KeptDefinitions::join_free() {
  for (Bytes place = first(); place < size_; place += block(place).size) {
    Block& here = block(place);
    while (here.stream == 0 && place + here.size < size_ && block(place + here.size).stream == 0)
      here.size += block(place + here.size).size;
  }
}

std::span<const std::byte> KeptDefinitions::at(Bytes place) const {
  return {memory_ + place + sizeof(Block), static_cast<std::size_t>(block(place).bytes)};
}

bool KeptDefinitions::is_same_since(std::uint64_t changes) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return changes == head().changes;
}

std::vector<Bytes> KeptDefinitions::used() const {
  std::vector<Bytes> places;
  for (;;) {
    places.clear();
    const std::uint64_t changes = head().changes;
    bool is_whole = changes % 2 == 0;
    for (Bytes place = first(); is_whole && place < size_;) {
      const Bytes size = block(place).size;
      if (block(place).stream != 0) places.push_back(place);
      is_whole = is_same_since(changes);
      if (is_whole) place += size;
    }
    if (is_whole) return places;
  }
}

std::vector<KeptDefinition> KeptDefinitions::all() const {
  std::vector<KeptDefinition> found;
  for (;;) {
    found.clear();
    const std::uint64_t changes = head().changes;
    for (const Bytes place : used()) {
      const Block& here = block(place);
      const auto bytes = at(place);
      if (!is_same_since(changes)) break;  // otherwise the length could be anything
      found.push_back({here.stream, here.level, here.number, ByteVector(bytes.begin(), bytes.end())});
    }
    if (is_same_since(changes)) break;
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return found;
}

std::uint32_t KeptDefinitions::newest_stream() const { return head().newest; }

KeptDefinitions::Progress* KeptDefinitions::progress(std::uint32_t stream) const {
  Block* oldest = nullptr;
  for (const Bytes place : used()) {
    Block& here = block(place);
    if (here.stream == stream && (oldest == nullptr || here.number < oldest->number)) oldest = &here;
  }
  return oldest == nullptr ? nullptr : &oldest->progress;
}

}  // namespace tailrace::node
