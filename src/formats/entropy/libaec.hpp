// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>

#include "formats/entropy/entropy.hpp"
#include "ground/base/status.hpp"

// libaec, for streams that this module does not code itself, and to compare with. Local, without blocking, as
// all of this module.
namespace tailrace::entropy {

/// True if this build has libaec. Without it the calls below return Code::unsupported.
bool has_libaec();
/// Returns the number of octets in which libaec takes a code of `bits`: 1, 2 or 4, in this machine's byte
/// order.
constexpr int libaec_width(int bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }
/// Room beyond bound() that LibaecEncoder needs. If more octets than the constant CDSLEN of libaec are free,
/// libaec writes a block straight into the output. One octet stays free: encode() takes a full output for too
/// small a room.
inline constexpr Bytes libaec_spare = 1024;
/// The flags of libaec for the order of octets in memory. This module sets them itself, as ecCodes does.
inline constexpr unsigned layout_flags = 2 | 4;
/// The flags that GRIB's writers set: these, and that each code is mapped to a difference, as Parameters say.
inline constexpr unsigned usual_flags = layout_flags | 8;

/// What libaec is asked for: Parameters, and its own flags but for those about the order of octets.
struct LibaecParameters {
  unsigned flags = usual_flags;
  unsigned block = 0;
  unsigned interval = 0;
  int bits = 0;
};

/// Compresses a stream in portions, as Encoder does.
class LibaecEncoder {
 public:
  explicit LibaecEncoder(const LibaecParameters& parameters);
  LibaecEncoder(const LibaecEncoder&) = delete;
  LibaecEncoder& operator=(const LibaecEncoder&) = delete;
  ~LibaecEncoder();

  /// Compresses codes of libaec_width() octets each. Returns the number of octets in `room`.
  Result<Bytes> encode(std::span<const std::byte> codes, bool is_last, std::span<std::byte> room);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Decompresses to codes of libaec_width() octets each, which fill `codes`. Code::corrupt if the stream is
/// malformed or has fewer.
Status libaec_decode(const LibaecParameters& parameters, std::span<const std::byte> stream,
                     std::span<std::byte> codes);

/// Returns true if the encoder and the decoder of this module do what this process's libaec does, with a
/// fixed set of samples, in a millisecond. Compares them at the first call of a process, and warns in the
/// log if they differ. Always true in a build without libaec.
bool agrees_with_libaec();

}  // namespace tailrace::entropy
