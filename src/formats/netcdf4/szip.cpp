// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdint>

#include "formats/netcdf4/filters.hpp"
#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_AEC
#include <libaec.h>
#endif

namespace tailrace::netcdf4 {

#ifndef TAILRACE_HAVE_AEC

Status check_szip() {
  return {Code::unsupported, "this build reads no szip: install libaec-dev and configure again"};
}

Result<Bytes> undo_szip(const Filter&, Bytes, std::span<const std::byte>, std::span<std::byte>) {
  return check_szip();
}

#else

namespace {

// Indices of the filter's parameters (H5Zszip.c). A chunk begins with the size of its decompressed elements
// (4 bytes).
enum : std::size_t { options_at, block_at, sample_bits_at, line_at, parameters };
constexpr unsigned big_endian_option = 16, differences_option = 32, most_block = 32, most_line = 4096;
constexpr std::size_t size_bytes = 4;

Status not_szip(std::string_view what) { return {Code::corrupt, cat("a chunk in szip: ", what)}; }

/// Decodes szip's bytes with libaec, line by line. szip fills up each line of samples to whole blocks.
class Lines {
 public:
  Lines(const Filter& filter, bool is_interleaved, std::span<const std::byte> bytes) {
    const unsigned options = filter.values[options_at], line = filter.values[line_at];
    if ((options & big_endian_option) != 0) stream_.flags |= AEC_DATA_MSB;
    if ((options & differences_option) != 0) stream_.flags |= AEC_DATA_PREPROCESS;
    stream_.bits_per_sample = is_interleaved ? 8 : filter.values[sample_bits_at];
    stream_.block_size = filter.values[block_at];
    stream_.rsi = (line + stream_.block_size - 1) / stream_.block_size;
    stream_.next_in = reinterpret_cast<const unsigned char*>(bytes.data());
    stream_.avail_in = bytes.size();
    const std::size_t sample = stream_.bits_per_sample > 8 ? 2 : 1;
    line_.resize(std::size_t{stream_.rsi} * stream_.block_size * sample);
    length_ = line * sample;
    error_ = aec_decode_init(&stream_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() {
    if (error_ == AEC_OK) aec_decode_end(&stream_);
  }

  /// Returns the next line without the samples that fill it up.
  Result<std::span<const std::byte> > next() {
    if (error_ == AEC_MEM_ERROR) return Status(Code::memory, "no memory to decompress szip");
    if (error_ != AEC_OK) return not_szip(cat("libaec does not know its parameters: error ", error_));
    stream_.next_out = reinterpret_cast<unsigned char*>(line_.data());
    stream_.avail_out = line_.size();
    const int error = aec_decode(&stream_, AEC_FLUSH);
    if (error != AEC_OK) return not_szip(cat("libaec does not decompress it: error ", error));
    // Writers may leave out the samples that fill up the last line.
    const std::size_t got = line_.size() - stream_.avail_out;
    return std::span<const std::byte>(line_).first(std::min(got, length_));
  }

 private:
  aec_stream stream_{};
  ByteVector line_;
  std::size_t length_ = 0;  // of a line, in bytes
  int error_ = AEC_OK;
};

}  // namespace

Status check_szip() { return {}; }

Result<Bytes> undo_szip(const Filter& filter, Bytes element, std::span<const std::byte> bytes,
                        std::span<std::byte> out) {
  const std::vector<unsigned>& values = filter.values;
  if (values.size() < parameters || values[sample_bits_at] != 8 * static_cast<std::uint64_t>(element) ||
      values[block_at] < 2 || values[block_at] > most_block || values[block_at] % 2 != 0 ||
      values[line_at] < values[block_at] || values[line_at] > most_line)
    return not_szip("its parameters are none of szip, or contradict the type");
  if (bytes.size() < size_bytes) return not_szip(cat("expected 4 bytes or more, got ", bytes.size()));
  std::size_t size = 0;
  for (std::size_t i = size_bytes; i-- > 0;) size = size << 8 | std::to_integer<std::size_t>(bytes[i]);
  const auto width = static_cast<std::size_t>(element);
  if (size > out.size() || size % width != 0)
    return not_szip(cat("expected elements of at most ", counted(out.size(), "byte"), ", got ", size));
  // Elements of more than 2 bytes are stored shuffled: the first bytes of all elements, then all second
  // bytes, and so on.
  const bool is_interleaved = width > 2;
  Lines lines(filter, is_interleaved, bytes.subspan(size_bytes));
  const std::size_t count = size / width;
  for (std::size_t at = 0; at < size;) {
    const Result<std::span<const std::byte> > line = lines.next();
    TR_TRY(line.status());
    if (line->empty()) return not_szip(cat("expected ", counted(size, "byte"), ", got ", at));
    const auto part = line->first(std::min(line->size(), size - at));
    if (is_interleaved) {
      std::size_t byte = at / count, i = at % count;
      for (const std::byte each : part) {
        out[i * width + byte] = each;
        if (++i == count) i = 0, ++byte;
      }
    } else {
      std::ranges::copy(part, out.begin() + static_cast<std::ptrdiff_t>(at));
    }
    at += part.size();
  }
  return static_cast<Bytes>(size);
}

#endif

}  // namespace tailrace::netcdf4
