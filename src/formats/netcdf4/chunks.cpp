// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/chunks.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "formats/compression/shuffle.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

constexpr Bytes length_size = sizeof(std::uint32_t), lead_size = sizeof(std::int64_t);

/// Changes elements from the host's byte order to that of files, which is little-endian, and back.
void to_file_order(std::span<std::byte> elements, Bytes size) {
  if constexpr (std::endian::native == std::endian::little) return;
  for (std::size_t at = 0; at < elements.size(); at += static_cast<std::size_t>(size))
    std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(at),
                 elements.begin() + static_cast<std::ptrdiff_t>(at) + size);
}

template <typename T>
void put_little_endian(ByteVector& out, T value) {
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  to_file_order(bytes, sizeof value);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
T get_little_endian(std::span<const std::byte> from) {
  T value{};
  std::memcpy(&value, from.data(), sizeof value);
  to_file_order(std::as_writable_bytes(std::span(&value, 1)), sizeof value);
  return value;
}

}  // namespace

Bytes RecordShape::trailer_bytes() const {
  return (count() > 1 ? count() * length_size : 0) + (has_interval ? lead_size : 0);
}

Bytes RecordShape::bound() const {
  return count() * compression::bound(compression, chunk_bytes()) + trailer_bytes();
}

Bytes RecordShape::working_bytes() const {
  // The tables of deflate do not count here, because each encoder keeps one set for all records.
  const bool is_compressed = compression.method != compression::Method::none;
  return (count() > 1 ? chunk_bytes() : 0) + (is_compressed ? chunk_bytes() : 0);
}

Status check(const RecordShape& record) {
  constexpr Bytes most = std::numeric_limits<std::uint32_t>::max();
  constexpr Bytes reserve = 1 << 20;  // deflate may make a chunk larger, but by less than this
  Bytes bytes = record.element_size;
  for (const Index each : record.chunk) {
    if (each > most || __builtin_mul_overflow(bytes, each, &bytes) || bytes > most - reserve)
      return {Code::format,
              "a chunk of HDF5 has less than 4 GiB: cut the records with chunks=, as "
              "chunks=1000x1000"};
  }
  // Both limits together keep a record below 2^49 bytes.
  return cf::check_count(record);
}

Result<Trailer> read_trailer(const RecordShape& record, std::span<const std::byte> bytes, Bytes length) {
  const Status damaged(Code::corrupt, cat("a record of ", counted(length, "byte"), " holds no ",
                                          counted(record.count(), "chunk")));
  const Bytes data = length - record.trailer_bytes();
  if (std::ssize(bytes) != record.trailer_bytes() || data <= 0) return damaged;
  Trailer trailer;
  if (record.count() == 1) {
    trailer.lengths = {data};
  } else {
    Bytes total = 0;
    for (Index i = 0; i < record.count(); ++i) {
      trailer.lengths.push_back(get_little_endian<std::uint32_t>(bytes));
      bytes = bytes.subspan(length_size);
      total += trailer.lengths.back();
    }
    if (total != data) return damaged;
  }
  if (record.has_interval) trailer.interval_start = get_little_endian<std::int64_t>(bytes);
  return trailer;
}

Status ChunkEncoder::encode(const RecordShape& record, std::byte* values, std::int64_t interval_start,
                            ByteVector& out) {
  Index elements = 1;
  for (const Index each : record.shape) elements *= each;
  const auto bytes = std::span(values, static_cast<std::size_t>(elements * record.element_size));
  kept_bits_ = cf::quantise(bytes, record.element_size == 4 ? ElementType::f32 : ElementType::f64,
                            record.quantisation, record.missing);
  to_file_order(bytes, record.element_size);
  const std::size_t before = out.size();
  std::vector<std::uint32_t> lengths;
  for (Index i = 0; i < record.count(); ++i) {
    const std::size_t begin = out.size();
    const Status status = append_chunk(record, cutter_.chunk(record, i, record.fill, bytes), out);
    if (!status.is_ok()) {
      out.resize(before);
      return status;
    }
    if (record.count() > 1) lengths.push_back(static_cast<std::uint32_t>(out.size() - begin));
  }
  for (const std::uint32_t length : lengths) put_little_endian(out, length);
  if (record.has_interval) put_little_endian(out, interval_start);
  return {};
}

Status ChunkEncoder::append_chunk(const RecordShape& record, std::span<std::byte> elements, ByteVector& out) {
  const bool shuffles = record.compression.method != compression::Method::none && record.element_size > 1;
  if (shuffles) compression::shuffle(elements, record.element_size, shuffled_);
  return compressor_.compress(record.compression, shuffles ? std::span<const std::byte>(shuffled_) : elements,
                              record.element_size, out);
}

}  // namespace tailrace::netcdf4
