// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstring>

#include "formats/compression/shuffle.hpp"
#include "formats/zarr/crc32c.hpp"
#include "formats/zarr/reading.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

namespace tailrace::zarr {

namespace {

/// Checks the sum at the end of `bytes`, and removes it.
Status take_crc32c(ByteVector& bytes) {
  if (bytes.size() < 4) return {Code::corrupt, "a chunk has no room for its sum"};
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < 4; ++i)
    stored |= static_cast<std::uint32_t>(bytes[bytes.size() - 4 + i]) << (8 * i);
  bytes.resize(bytes.size() - 4);
  const std::uint32_t sum = crc32c(bytes);
  if (stored == sum) return {};
  return {Code::corrupt, cat("expected a chunk with the sum (crc32c) ", stored, ", got ", sum)};
}

/// Brings elements from the order in which they are stored into C order of the chunk's dimensions.
void transpose(std::span<const std::size_t> order, std::span<const Index> chunk, Bytes element,
               const ByteVector& from, ByteVector& to) {
  const std::size_t dimensions = chunk.size();
  std::vector<Bytes> strides(dimensions), of_target(dimensions);
  Bytes next = element;
  for (std::size_t d = dimensions; d-- > 0; next *= chunk[d]) strides[d] = next;
  for (std::size_t i = 0; i < dimensions; ++i) of_target[i] = strides[order[i]];
  std::vector<Index> at(dimensions, 0);
  to.resize(from.size());
  Bytes offset = 0;
  for (Bytes read = 0; read < std::ssize(from); read += element) {
    std::memcpy(to.data() + offset, from.data() + read, static_cast<std::size_t>(element));
    for (std::size_t i = dimensions; i-- > 0;) {
      offset += of_target[i];
      if (++at[i] < chunk[order[i]]) break;
      offset -= at[i] * of_target[i];
      at[i] = 0;
    }
  }
}

Status unshuffle(Bytes element, ByteVector& bytes, ByteVector& scratch) {
  if (std::ssize(bytes) % element != 0)
    return {Code::corrupt, cat("expected shuffled elements of ", counted(element, "byte"), ", got ",
                               counted(bytes.size(), "byte"))};
  compression::unshuffle(bytes, element, scratch);
  bytes.swap(scratch);
  return {};
}

/// Undoes one step. The writer's elements had `expected` bytes. `is_first` is true for the innermost
/// compression.
Status undo_step(const Coding::Step& step, bool is_first, Bytes expected, ByteVector& bytes,
                 ByteVector& scratch) {
  if (step.kind == Coding::Step::Kind::crc32c) return take_crc32c(bytes);
  if (step.kind == Coding::Step::Kind::shuffle) return unshuffle(step.element, bytes, scratch);
  const Bytes most = compression::most_unpacked(step.packed, std::ssize(bytes));
  if (is_first && expected > most)
    return {Code::corrupt, cat("expected a chunk of ", expected, " bytes, got ",
                               counted(bytes.size(), "byte"), ", which cannot hold them")};
  // Steps that the writer applied before this one may have added sums, or a little to bytes that do not
  // compress.
  const Bytes room = std::min(most, is_first ? expected : expected + expected / 64 + 1024);
  scratch.resize(static_cast<std::size_t>(room));
  auto& decompressor = of_this_thread<compression::Decompressor, Coding>();
  const Result<Bytes> size = decompressor.decompress(step.packed, bytes, scratch);
  TR_TRY(size.status());
  scratch.resize(static_cast<std::size_t>(*size));
  bytes.swap(scratch);
  return {};
}

}  // namespace

Status decode_chunk(const Coding& coding, std::span<const Index> chunk, Bytes element, ByteVector& bytes,
                    ByteVector& elements) {
  const Bytes stored = coding.stored_element(element);
  Bytes expected = stored;
  for (const Index each : chunk) expected *= each;
  // Finds the innermost step that is no shuffle. If it is a compression, it must give exactly the bytes of
  // the elements.
  std::size_t first = 0;
  while (first < coding.steps.size() && coding.steps[first].kind == Coding::Step::Kind::shuffle) ++first;
  for (std::size_t i = coding.steps.size(); i-- > 0;)
    TR_TRY(undo_step(coding.steps[i], i == first, expected, bytes, elements));
  if (std::ssize(bytes) != expected)
    return {Code::corrupt, cat("expected a chunk of ", expected, " bytes, got ", bytes.size())};
  copy_ordered(bytes.data(), bytes.data(), expected, stored, coding.endian);
  for (auto each = coding.filters.rbegin(); each != coding.filters.rend(); ++each) bytes = undo(*each, bytes);
  if (coding.order.empty()) {
    elements.swap(bytes);
  } else {
    transpose(coding.order, chunk, element, bytes, elements);
  }
  return {};
}

std::optional<std::pair<Bytes, Bytes>> ShardIndex::at(Index chunk) const {
  const auto place = static_cast<std::size_t>(2 * chunk);
  if (numbers[place] == ~std::uint64_t{0} && numbers[place + 1] == ~std::uint64_t{0}) return std::nullopt;
  return std::pair(static_cast<Bytes>(numbers[place]), static_cast<Bytes>(numbers[place + 1]));
}

Bytes shard_index_bytes(const ReadArray& array) {
  return 16 * array.chunks_in_shard() + 4 * std::ssize(array.sharding->index.steps);
}

Result<ShardIndex> decode_shard_index(const ReadArray& array, ByteVector bytes, Bytes size) {
  const Index many[] = {array.chunks_in_shard(), 2};
  ByteVector numbers;
  TR_TRY(decode_chunk(array.sharding->index, many, 8, bytes, numbers).in("the index of a shard"));
  ShardIndex index;
  index.numbers.resize(numbers.size() / 8);
  std::memcpy(index.numbers.data(), numbers.data(), numbers.size());
  for (Index chunk = 0; chunk < many[0]; ++chunk) {
    const auto place = static_cast<std::size_t>(2 * chunk);
    const std::uint64_t offset = index.numbers[place], length = index.numbers[place + 1];
    if (!index.at(chunk)) continue;
    if (length > static_cast<std::uint64_t>(size) || offset > static_cast<std::uint64_t>(size) - length)
      return Status(Code::corrupt, cat("the index of a shard: expected chunk ", chunk, " inside of ",
                                       counted(size, "byte"), ", got ", length, " bytes at byte ", offset));
  }
  return index;
}

}  // namespace tailrace::zarr
