// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/ccsds.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_AEC
#include <libaec.h>
#endif

namespace tailrace::grib2 {

namespace {

constexpr std::size_t representation_length = 25;  // template 5.42
constexpr std::uint64_t ccsds_template = 42;
// The number of codes handed to libaec at once: many intervals, because libaec takes the interval after each
// portion code by code.
constexpr Index portion = 65536;
// Room beyond the bound. If more than CDSLEN octets (a constant of libaec) are free, libaec writes a block
// straight into the output. One octet stays free: compress() takes a full output for too small a room.
constexpr Bytes room_of_a_block = 1024;
constexpr Bytes state_of_libaec = 4096;

Index interval_of(const CcsdsParameters& parameters) {
  return static_cast<Index>(parameters.block) * parameters.interval;
}

Index portion_of(const CcsdsParameters& parameters) {
  const Index interval = std::max<Index>(interval_of(parameters), 1);
  return std::max<Index>(portion / interval, 1) * interval;
}

#ifdef TAILRACE_HAVE_AEC

// The flags for the order of a code's octets in memory. The compressed octets do not depend on this order.
// Like ecCodes, this module ignores what the template says about it.
constexpr unsigned layout_flags = AEC_DATA_3BYTE | AEC_DATA_MSB;

Status not_compressed(int error) {
  if (error == AEC_MEM_ERROR) return {Code::memory, "no memory to compress the values"};
  return {Code::data, cat("libaec does not compress the values: its error ", error)};
}

/// libaec's stream. The destructor frees its memory.
class Compression {
 public:
  Compression(const CcsdsParameters& parameters, int bits) {
    stream_.flags = parameters.flags & ~layout_flags;
    if constexpr (std::endian::native == std::endian::big) stream_.flags |= AEC_DATA_MSB;
    stream_.bits_per_sample = static_cast<unsigned>(bits);
    stream_.block_size = parameters.block;
    stream_.rsi = parameters.interval;
    error_ = aec_encode_init(&stream_);
  }
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;
  ~Compression() {
    if (error_ == AEC_OK) aec_encode_end(&stream_);
  }
  [[nodiscard]] int error() const { return error_; }

  /// Returns how many octets libaec wrote to `room`, or -1 if it failed or filled the room.
  Bytes compress(std::span<const std::byte> codes, std::span<std::byte> room, bool last) {
    stream_.next_in = reinterpret_cast<const unsigned char*>(codes.data());
    stream_.avail_in = codes.size();
    stream_.next_out = reinterpret_cast<unsigned char*>(room.data());
    stream_.avail_out = room.size();
    const int error = aec_encode(&stream_, last ? AEC_FLUSH : AEC_NO_FLUSH);
    if (error != AEC_OK || stream_.avail_out == 0) return -1;
    return static_cast<Bytes>(room.size() - stream_.avail_out);
  }

 private:
  aec_stream stream_{};
  int error_ = AEC_OK;
};

#endif

}  // namespace

CcsdsParameters ccsds_parameters(const ByteVector& representation) {
  if (representation.size() < representation_length || get_number(&representation[9], 2) != ccsds_template)
    return {};
  return {static_cast<unsigned>(get_number(&representation[21], 1)),
          static_cast<unsigned>(get_number(&representation[22], 1)),
          static_cast<unsigned>(get_number(&representation[23], 2))};
}

Bytes ccsds_bound(const CcsdsParameters& parameters, Index count, int bits) {
  // libaec stores a block that does not compress as it is, behind an identification of at most 5 bits. It
  // fills up the last block.
  const Index block = std::max<Index>(parameters.block, 8);
  const Index blocks = (count + block - 1) / block;
  return packed_length(blocks * block, bits) + (blocks * 5 + 7) / 8 + 1;
}

Bytes CcsdsPacking::working_bytes(const CcsdsParameters& parameters, Index count, int bits) {
  const Index held = std::min(count, portion_of(parameters));
  const Bytes libaec = 2 * 4 * interval_of(parameters) + state_of_libaec;
  return held * width_of_code(bits) + ccsds_bound(parameters, held, bits) + room_of_a_block + libaec;
}

#ifdef TAILRACE_HAVE_AEC

bool CcsdsParameters::usual() const {
  const bool usual_block = block == 8 || block == 16 || block == 32 || block == 64;
  return flags == (layout_flags | AEC_DATA_PREPROCESS) && usual_block && interval >= 1 && interval <= 4096;
}

template <typename Value>
Status CcsdsPacking::append(const CcsdsParameters& parameters, const Value* values, Index count,
                            const Scaling& scaling, ByteVector& out) {
  Compression compression(parameters, scaling.bits);
  if (compression.error() != AEC_OK) return not_compressed(compression.error());
  const Index most = std::min(count, portion_of(parameters));
  const int width = width_of_code(scaling.bits);
  codes_.resize(static_cast<std::size_t>(most * width));
  compressed_.resize(static_cast<std::size_t>(ccsds_bound(parameters, most, scaling.bits) + room_of_a_block));
  for (Index at = 0; at < count; at += most) {
    const Index here = std::min(most, count - at);
    write_codes(values + at, here, scaling, codes_.data());
    const std::span<const std::byte> codes(codes_.data(), static_cast<std::size_t>(here * width));
    const Bytes length = compression.compress(codes, compressed_, at + here == count);
    if (length < 0) return not_compressed(AEC_STREAM_ERROR);
    out.insert(out.end(), compressed_.begin(), compressed_.begin() + length);
  }
  return {};
}

#else

bool CcsdsParameters::usual() const { return false; }

template <typename Value>
Status CcsdsPacking::append(const CcsdsParameters&, const Value*, Index, const Scaling&, ByteVector&) {
  return {Code::unsupported, "built without libaec"};
}

#endif

template Status CcsdsPacking::append(const CcsdsParameters&, const float*, Index, const Scaling&,
                                     ByteVector&);
template Status CcsdsPacking::append(const CcsdsParameters&, const double*, Index, const Scaling&,
                                     ByteVector&);

}  // namespace tailrace::grib2
