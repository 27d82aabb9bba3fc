// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "netcdf4/chunks.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

constexpr Bytes length_size = sizeof(std::uint32_t), lead_size = sizeof(std::int64_t);

/// Files are little-endian.
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

template <std::size_t size>
void shuffle_all(std::span<const std::byte> elements, std::byte* out) {
  const std::size_t count = elements.size() / size;
  for (std::size_t byte = 0; byte < size; ++byte) {
    const std::byte* from = elements.data() + byte;
    for (std::size_t i = 0; i < count; ++i) *out++ = from[i * size];
  }
}

}  // namespace

void shuffle(std::span<const std::byte> elements, Bytes element_size, ByteVector& out) {
  out.resize(elements.size());
  if (element_size == 2) return shuffle_all<2>(elements, out.data());
  if (element_size == 4) return shuffle_all<4>(elements, out.data());
  if (element_size == 8) return shuffle_all<8>(elements, out.data());
  std::ranges::copy(elements, out.begin());
}

std::vector<Index> RecordShape::chunks() const {
  std::vector<Index> numbers;
  for (std::size_t i = 0; i < shape.size(); ++i) numbers.push_back((shape[i] + chunk[i] - 1) / chunk[i]);
  return numbers;
}

Index RecordShape::count() const {
  Index product = 1;
  for (const Index each : chunks()) product *= each;
  return product;
}

Bytes RecordShape::chunk_bytes() const {
  Bytes product = element_size;
  for (const Index each : chunk) product *= each;
  return product;
}

Bytes RecordShape::trailer_bytes() const {
  return (count() > 1 ? count() * length_size : 0) + (has_interval ? lead_size : 0);
}

Bytes RecordShape::bound() const {
  const Bytes raw = chunk_bytes();
  const Bytes chunk_bound =
      level == 0 ? raw
                 : static_cast<Bytes>(libdeflate_zlib_compress_bound(nullptr, static_cast<std::size_t>(raw)));
  return count() * chunk_bound + trailer_bytes();
}

Bytes RecordShape::working_bytes() const {
  // The tables of deflate belong to the thread, not to a record: each encoder keeps one set.
  return (count() > 1 ? chunk_bytes() : 0) + (level > 0 ? chunk_bytes() : 0);
}

Status check(const RecordShape& record) {
  constexpr Bytes most = std::numeric_limits<std::uint32_t>::max();
  constexpr Bytes reserve = 1 << 20;  // deflate may make a chunk larger, by less
  Bytes bytes = record.element_size;
  for (const Index each : record.chunk) {
    if (each > most || __builtin_mul_overflow(bytes, each, &bytes) || bytes > most - reserve)
      return {Code::format,
              "a chunk of HDF5 has less than 4 GiB: cut the records with chunks=, as "
              "chunks=1000x1000"};
  }
  // Both limits together keep a record below 2^49 bytes.
  if (record.count() > most_chunks)
    return {Code::argument, cat("chunks= cuts a record into ", record.count(), " chunks, and at most ",
                                most_chunks, " are taken: make them larger")};
  return {};
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

void ChunkEncoder::Release::operator()(libdeflate_compressor* each) const {
  libdeflate_free_compressor(each);
}

ChunkEncoder::ChunkEncoder() = default;
ChunkEncoder::~ChunkEncoder() = default;
ChunkEncoder::ChunkEncoder(ChunkEncoder&&) noexcept = default;

Status ChunkEncoder::encode(const RecordShape& record, std::byte* values, std::int64_t interval_start,
                            ByteVector& out) {
  Index elements = 1;
  for (const Index each : record.shape) elements *= each;
  const auto bytes = std::span(values, static_cast<std::size_t>(elements * record.element_size));
  if (!record.quantisation.keeps_all()) {
    const auto count = static_cast<std::size_t>(elements);
    if (record.element_size == 4)
      quantise(std::span(reinterpret_cast<float*>(values), count), record.quantisation, record.missing);
    else
      quantise(std::span(reinterpret_cast<double*>(values), count), record.quantisation, record.missing);
  }
  to_file_order(bytes, record.element_size);
  const std::size_t before = out.size();
  if (before == 0) out.reserve(static_cast<std::size_t>(record.bound()));
  const auto add = [&](std::span<std::byte> chunk) {
    const Status status = append_chunk(record, chunk, out);
    if (!status.is_ok()) out.resize(before);
    return status;
  };
  const std::vector<Index> numbers = record.chunks();
  std::vector<std::uint32_t> lengths;
  if (record.count() == 1) {
    TR_TRY(add(bytes));
  } else {
    std::vector<Index> number(numbers.size(), 0);
    for (Index i = 0; i < record.count(); ++i) {
      const std::size_t begin = out.size();
      TR_TRY(add(cut_out(record, number, values)));
      lengths.push_back(static_cast<std::uint32_t>(out.size() - begin));
      for (std::size_t d = number.size(); d-- > 0 && ++number[d] == numbers[d];) number[d] = 0;
    }
  }
  for (const std::uint32_t length : lengths) put_little_endian(out, length);
  if (record.has_interval) put_little_endian(out, interval_start);
  if (before == 0 && out.size() < out.capacity() / 5 * 4) out.shrink_to_fit();
  return {};
}

/// Returns one chunk of the record, in the order of the file. Beyond the edge it is filled.
std::span<std::byte> ChunkEncoder::cut_out(const RecordShape& record, const std::vector<Index>& number,
                                           const std::byte* values) {
  chunk_.resize(static_cast<std::size_t>(record.chunk_bytes()));
  const std::size_t rank = record.shape.size();
  const Bytes size = record.element_size;
  const Index row = record.chunk[rank - 1];
  const Index first = number[rank - 1] * row;
  const Index inside = std::min(row, record.shape[rank - 1] - first);
  std::vector<Index> at(rank - 1, 0);
  Index rows = 1;
  for (std::size_t d = 0; d + 1 < rank; ++d) rows *= record.chunk[d];
  std::byte* to = chunk_.data();
  for (Index i = 0; i < rows; ++i) {
    Index offset = 0;
    bool is_inside = true;
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      const Index index = number[d] * record.chunk[d] + at[d];
      is_inside = is_inside && index < record.shape[d];
      offset = (offset + index) * record.shape[d + 1];
    }
    const Index taken = is_inside ? inside : 0;
    if (taken > 0) std::memcpy(to, values + (offset + first) * size, static_cast<std::size_t>(taken * size));
    to += taken * size;
    for (Index j = taken; j < row; ++j) to = std::copy(record.fill.begin(), record.fill.end(), to);
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == record.chunk[d];) at[d] = 0;
  }
  return chunk_;
}

Status ChunkEncoder::append_chunk(const RecordShape& record, std::span<std::byte> elements, ByteVector& out) {
  if (record.level == 0) {
    out.insert(out.end(), elements.begin(), elements.end());
    return {};
  }
  if (record.element_size == 1) return compress(elements, record.level, out);
  shuffle(elements, record.element_size, shuffled_);
  return compress(shuffled_, record.level, out);
}

Status ChunkEncoder::compress(std::span<const std::byte> bytes, int level, ByteVector& out) {
  if (level_ != level) {
    compressor_.reset(libdeflate_alloc_compressor(level));
    level_ = compressor_ ? level : -1;
  }
  if (!compressor_) return {Code::memory, "no memory for the tables of deflate"};
  const std::size_t before = out.size();
  const std::size_t bound = libdeflate_zlib_compress_bound(compressor_.get(), bytes.size());
  out.resize(before + bound);
  const std::size_t size =
      libdeflate_zlib_compress(compressor_.get(), bytes.data(), bytes.size(), out.data() + before, bound);
  out.resize(before + size);
  if (size == 0) return {Code::format, "deflate made more bytes than its own bound"};
  return {};
}

}  // namespace tailrace::netcdf4
