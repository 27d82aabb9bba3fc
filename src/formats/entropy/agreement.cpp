// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The self-test: if another version of libaec chose otherwise, files of this library would differ from those
// of ecCodes beside it.
#include <cstring>
#include <vector>

#include "formats/entropy/decoder.hpp"
#include "formats/entropy/libaec.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::entropy {

namespace {

constexpr Index sample_codes =
    4096 + 2048 + 17;  // an interval, and a part of one that ends inside of a block

/// Returns a walk whose steps have up to `noise` bits, with a stretch of equal codes that is longer than a
/// segment of zero blocks.
template <typename Number>
std::vector<Number> sample(int bits, int noise) {
  const std::uint64_t largest = (std::uint64_t{1} << bits) - 1;
  std::vector<Number> codes;
  std::uint64_t random = 0x9e3779b97f4a7c15, code = largest / 2;
  constexpr Index flat_from = 1000, flat_to = 3300;
  for (Index i = 0; i < sample_codes; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    if (i < flat_from || i >= flat_to)
      code = (code + (random >> (64 - noise)) - (std::uint64_t{1} << noise) / 2) & largest;
    codes.push_back(static_cast<Number>(code));
  }
  return codes;
}

template <typename Number>
bool agrees(const Parameters& parameters, int noise) {
  const int bits = parameters.bits;
  const std::vector<Number> codes = sample<Number>(bits, noise);
  const LibaecParameters same{usual_flags, static_cast<unsigned>(parameters.block),
                              static_cast<unsigned>(parameters.interval), bits};
  ByteVector own(static_cast<std::size_t>(bound(parameters, sample_codes) + encoder_spare));
  own.resize(
      static_cast<std::size_t>(Encoder(parameters).encode(codes.data(), sample_codes, true, own.data())));

  ByteVector octets(codes.size() * static_cast<std::size_t>(libaec_width(bits)));
  if (octets.size() == codes.size()) {
    for (std::size_t i = 0; i < codes.size(); ++i) octets[i] = static_cast<std::byte>(codes[i]);
  } else {
    std::memcpy(octets.data(), codes.data(), octets.size());
  }
  ByteVector theirs(static_cast<std::size_t>(bound(parameters, sample_codes) + libaec_spare));
  const Result<Bytes> length = LibaecEncoder(same).encode(octets, true, theirs);
  if (!length.is_ok()) return false;
  theirs.resize(static_cast<std::size_t>(*length));
  std::vector<Number> decoded(codes.size());
  return own == theirs && decode(parameters, theirs, sample_codes, decoded.data()).is_ok() &&
         decoded == codes;
}

bool agrees_on_samples() {
  if (!has_libaec()) return true;
  // ecCodes writes blocks of 32 and intervals of 128; users may set others.
  bool agreed = agrees<std::uint32_t>({28, 8, 70}, 20) && agrees<std::uint16_t>({16, 64, 128}, 16);
  for (const int noise : {1, 3, 6})
    agreed = agreed && agrees<std::uint16_t>({8, 32, 128}, noise) &&
             agrees<std::uint16_t>({16, 32, 128}, noise + 3) && agrees<std::uint16_t>({12, 32, 128}, noise) &&
             agrees<std::uint32_t>({24, 32, 128}, noise + 6);
  if (!agreed)
    log(LogLevel::warn,
        "libaec of this machine compresses CCSDS differently from this library: records are compressed "
        "and read by libaec, which takes longer");
  return agreed;
}

}  // namespace

bool agrees_with_libaec() {
  static const bool agreed = agrees_on_samples();
  return agreed;
}

}  // namespace tailrace::entropy
