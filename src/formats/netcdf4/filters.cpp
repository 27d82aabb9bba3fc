// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/filters.hpp"

#include <limits>

#include "formats/compression/decompressor.hpp"
#include "formats/compression/shuffle.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"

#ifdef TAILRACE_HAVE_LZF
#include <lzf.h>
#endif

namespace tailrace::netcdf4 {

namespace {

// The numbers of the HDF5 library's own filters, and of three filters that are registered with The HDF Group.
constexpr int deflate_filter = 1, shuffle_filter = 2, fletcher32_filter = 3, szip_filter = 4, nbit_filter = 5,
              scale_offset_filter = 6;
constexpr int lzf_filter = 32000, blosc_filter = 32001, zstd_filter = 32015;

std::optional<compression::Packed> packed_by(int filter) {
  if (filter == deflate_filter) return compression::Packed::zlib;
  if (filter == blosc_filter) return compression::Packed::blosc;
  if (filter == zstd_filter) return compression::Packed::zstd;
  return std::nullopt;
}

/// Returns Fletcher's sum as the HDF5 library computes it: over big-endian words of 16 bits (H5checksum.c).
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

/// Checks the sum at the end of `bytes`, and removes it. Old HDF5 libraries wrote the bytes of its halves
/// swapped.
Status take_sum(ByteVector& bytes) {
  if (bytes.size() < 4) return {Code::corrupt, "a chunk has no room for its sum"};
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < 4; ++i)
    stored |= static_cast<std::uint32_t>(bytes[bytes.size() - 4 + i]) << (8 * i);
  bytes.erase(bytes.end() - 4, bytes.end());
  const std::uint32_t sum = fletcher32(bytes);
  const std::uint32_t swapped = (sum & 0x00ff00ff) << 8 | (sum & 0xff00ff00) >> 8;
  if (stored == sum || stored == swapped) return {};
  return {Code::corrupt, cat("expected a chunk with the sum (fletcher32) ", stored, ", got ", sum)};
}

#ifdef TAILRACE_HAVE_LZF
Status check_lzf() { return {}; }

Result<Bytes> undo_lzf(std::span<const std::byte> bytes, std::span<std::byte> out) {
  constexpr std::size_t most = std::numeric_limits<unsigned>::max();
  // liblzf is not called without bytes: it would read the first byte all the same.
  const unsigned size = bytes.empty() || bytes.size() > most || out.size() > most
                            ? 0
                            : lzf_decompress(bytes.data(), static_cast<unsigned>(bytes.size()), out.data(),
                                             static_cast<unsigned>(out.size()));
  if (size != 0) return Bytes{size};
  return Status(Code::corrupt, cat("expected ", counted(bytes.size(), "byte"), " of LZF that hold at most ",
                                   out.size(), ", got other bytes"));
}
#else
Status check_lzf() {
  return {Code::unsupported, "this build reads no LZF: install liblzf-dev and configure again"};
}

Result<Bytes> undo_lzf(std::span<const std::byte>, std::span<std::byte>) { return check_lzf(); }
#endif

/// Returns true if the filter nbit has changed nothing, as its second parameter says. Nbit leaves out the
/// bits that a type does not use, and the types that this module reads use all bits.
bool is_idle_nbit(const Filter& filter) {
  return filter.id == nbit_filter && filter.values.size() > 1 && filter.values[1] == 1;
}

Status check_filter(const Filter& filter) {
  if (filter.id == shuffle_filter || filter.id == fletcher32_filter || is_idle_nbit(filter)) return {};
  if (filter.id == szip_filter) return check_szip();
  if (filter.id == scale_offset_filter) return check_scale_offset(filter);
  if (filter.id == lzf_filter) return check_lzf();
  if (const auto packed = packed_by(filter.id); packed) return compression::check_reads(*packed);
  return {Code::unsupported, cat("its chunks went through the filter '", filter.name, "' (", filter.id,
                                 ") of HDF5, which is not read: expected deflate, shuffle, fletcher32, szip, "
                                 "scaleoffset, LZF, zstd or blosc; nccopy -d1 writes such a file")};
}

/// Undoes a filter that changes the size of a chunk. Fills the front of `out`, and returns the number of
/// bytes.
Result<Bytes> unpack(const Dataset& dataset, const Filter& filter, std::span<const std::byte> bytes,
                     std::span<std::byte> out) {
  const Bytes element = std::ssize(dataset.fill);
  if (filter.id == szip_filter) return undo_szip(filter, element, bytes, out);
  if (filter.id == lzf_filter) return undo_lzf(bytes, out);
  if (filter.id == scale_offset_filter) {
    out = out.first(static_cast<std::size_t>(dataset.chunk_bytes()));
    TR_TRY(undo_scale_offset(filter, element, dataset.order, bytes, out));
    return std::ssize(out);
  }
  auto& decompressor = of_this_thread<compression::Decompressor, Dataset>();
  return decompressor.decompress(*packed_by(filter.id), bytes, out);
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
  for (const Filter& each : dataset.filters) TR_TRY(check_filter(each));
  return {};
}

Status undo_filters(const Dataset& dataset, unsigned left_out, ByteVector& bytes, ByteVector& chunk) {
  const auto expected = static_cast<std::size_t>(dataset.chunk_bytes());
  for (std::size_t i = dataset.filters.size(); i-- > 0;) {
    if (i < 32 && (left_out >> i & 1) != 0) continue;
    const Filter& filter = dataset.filters[i];
    if (filter.id == fletcher32_filter) {
      TR_TRY(take_sum(bytes));
    } else if (filter.id == shuffle_filter) {
      const Bytes element = filter.values.empty() ? 1 : filter.values.front();
      // With fewer than two elements shuffle moves nothing. A damaged file may state any size of elements.
      if (element <= 1 || element > std::ssize(bytes) / 2) continue;
      compression::unshuffle(bytes, element, chunk);
      bytes.swap(chunk);
    } else if (filter.id != nbit_filter) {
      // Filters before this one may have added sums and heads to the elements.
      chunk.resize(expected + static_cast<std::size_t>(Filter::most_added) * i);
      const Result<Bytes> size = unpack(dataset, filter, bytes, chunk);
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
