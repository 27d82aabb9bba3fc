// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstring>

#include "base/text.hpp"
#include "base/thread.hpp"
#include "compression/decompressor.hpp"
#include "netcdf4/reader.hpp"

namespace tailrace::netcdf4 {

namespace {

// Filters of the library itself, and two of the registry of The HDF Group.
constexpr int deflate_filter = 1, shuffle_filter = 2, fletcher32_filter = 3;
constexpr int blosc_filter = 32001, zstd_filter = 32015;

std::optional<compression::Packed> packed_by(int filter) {
  if (filter == deflate_filter) return compression::Packed::zlib;
  if (filter == blosc_filter) return compression::Packed::blosc;
  if (filter == zstd_filter) return compression::Packed::zstd;
  return std::nullopt;
}

void unshuffle(const ByteVector& from, Bytes element, ByteVector& to) {
  const std::size_t size = static_cast<std::size_t>(element), count = from.size() / size;
  to.resize(from.size());
  for (std::size_t byte = 0; byte < size; ++byte) {
    const std::byte* in = from.data() + byte * count;
    for (std::size_t i = 0; i < count; ++i) to[i * size + byte] = in[i];
  }
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(count * size), from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(count * size));
}

/// Fletcher's sum as the library takes it: over big-endian words of 16 bits (H5checksum.c).
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t low = 0, high = 0;
  const auto fold = [](std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  const std::size_t words = bytes.size() / 2;
  for (std::size_t i = 0; i < words; ++i) {
    low += static_cast<std::uint32_t>(bytes[2 * i]) << 8 | static_cast<std::uint32_t>(bytes[2 * i + 1]);
    high += low;
    if (i % 360 == 359 || i + 1 == words) {
      low = fold(low);
      high = fold(high);
    }
  }
  if (bytes.size() % 2 != 0) {
    low += static_cast<std::uint32_t>(bytes.back()) << 8;
    high += low;
    low = fold(low);
    high = fold(high);
  }
  return fold(high) << 16 | fold(low);
}

/// Checks and removes the sum behind the bytes. Old libraries have swapped the bytes of its halves.
Status take_sum(ByteVector& bytes) {
  if (bytes.size() < 4) return {Code::corrupt, "a chunk has no room for its sum"};
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < 4; ++i)
    stored |= static_cast<std::uint32_t>(bytes[bytes.size() - 4 + i]) << (8 * i);
  bytes.resize(bytes.size() - 4);
  const std::uint32_t sum = fletcher32(bytes);
  const std::uint32_t swapped = (sum & 0x00ff00ff) << 8 | (sum & 0xff00ff00) >> 8;
  if (stored == sum || stored == swapped) return {};
  return {Code::corrupt, cat("expected a chunk with the sum (fletcher32) ", stored, ", got ", sum)};
}

}  // namespace

Bytes Dataset::chunk_bytes() const {
  Bytes bytes = std::ssize(fill);
  for (const Index each : chunk) {
    if (__builtin_mul_overflow(bytes, each, &bytes)) return most_chunk_bytes + 1;
  }
  return bytes;
}

Status check_filters(const Dataset& dataset) {
  for (const Filter& each : dataset.filters) {
    if (each.id == shuffle_filter || each.id == fletcher32_filter) continue;
    if (const auto packed = packed_by(each.id); packed) {
      TR_TRY(compression::check_reads(*packed));
      continue;
    }
    return {Code::unsupported,
            cat("its chunks went through the filter '", each.name, "' (", each.id,
                ") of HDF5, which is not read: expected deflate, shuffle, fletcher32, zstd or "
                "blosc; nccopy -d1 writes such a file")};
  }
  return {};
}

Status undo_filters(const Dataset& dataset, unsigned left_out, ByteVector& bytes, ByteVector& chunk) {
  const auto expected = static_cast<std::size_t>(dataset.chunk_bytes());
  auto& decompressor = of_this_thread<compression::Decompressor, Dataset>();
  for (std::size_t i = dataset.filters.size(); i-- > 0;) {
    if (i < 32 && (left_out >> i & 1) != 0) continue;
    const Filter& filter = dataset.filters[i];
    if (filter.id == fletcher32_filter) {
      TR_TRY(take_sum(bytes));
    } else if (filter.id == shuffle_filter) {
      if (filter.element <= 1) continue;
      unshuffle(bytes, filter.element, chunk);
      bytes.swap(chunk);
    } else {
      // Sums of filters before this one may stand behind the elements.
      chunk.resize(expected + 4 * i);
      const Result<Bytes> size = decompressor.decompress(*packed_by(filter.id), bytes, chunk);
      TR_TRY(size.status());
      chunk.resize(static_cast<std::size_t>(*size));
      bytes.swap(chunk);
    }
  }
  if (bytes.size() != expected)
    return {Code::corrupt,
            cat("expected a chunk of ", expected, " bytes behind its filters, got ", bytes.size())};
  bytes.swap(chunk);
  return {};
}

}  // namespace tailrace::netcdf4
