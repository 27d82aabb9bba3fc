// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/entropy/decode_blocks.hpp"
#include "formats/entropy/decoder.hpp"
#include "formats/entropy/ways.hpp"
#include "ground/base/text.hpp"

namespace tailrace::entropy {

namespace {

using Octets = std::span<const std::byte>;
constexpr int usual_size = 32;  // codes in a block of ecCodes

template <typename Number>
TAILRACE_ENTROPY_INLINE Flaw decode_any(const Parameters& parameters, Octets stream, Index count,
                                        Number* codes, Index& reached) {
  return parameters.block == usual_size ? decode_codes<usual_size>(parameters, stream, count, codes, reached)
                                        : decode_codes<0>(parameters, stream, count, codes, reached);
}

template <typename Number>
Flaw decode_portable(const Parameters& parameters, Octets stream, Index count, Number* codes,
                     Index& reached) {
  return decode_any(parameters, stream, count, codes, reached);
}

#if defined(__x86_64__)

template <typename Number>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] Flaw decode_avx2(const Parameters& parameters, Octets stream,
                                                        Index count, Number* codes, Index& reached) {
  return decode_any(parameters, stream, count, codes, reached);
}

template <typename Number>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] Flaw decode_avx512(const Parameters& parameters, Octets stream,
                                                            Index count, Number* codes, Index& reached) {
  return decode_any(parameters, stream, count, codes, reached);
}

#endif

Status malformed(Flaw flaw, const Parameters& parameters, Index block) {
  const std::string place = cat("block ", block, " of the compressed values ");
  switch (flaw) {
    case Flaw::none:
      return {};
    case Flaw::ends_early:
      return {Code::corrupt, cat(place, "is cut off")};
    case Flaw::code_too_wide:
      return {Code::corrupt, cat(place, "has a value of more than ", parameters.bits, " bits")};
    case Flaw::run_too_long:
      return {Code::corrupt, cat(place, "begins a run of zero blocks beyond its interval of ",
                                 parameters.interval, " blocks")};
  }
  return {Code::corrupt, cat(place, "is malformed")};
}

}  // namespace

template <typename Number>
Status decode(const Parameters& parameters, Octets stream, Index count, Number* codes, Way way) {
  Index reached = 0;
  Flaw flaw = Flaw::none;
#if defined(__x86_64__)
  if (way == Way::avx512)
    flaw = decode_avx512(parameters, stream, count, codes, reached);
  else if (way == Way::avx2)
    flaw = decode_avx2(parameters, stream, count, codes, reached);
  else
#endif
    flaw = decode_portable(parameters, stream, count, codes, reached);
  return malformed(flaw, parameters, reached);
}

template Status decode(const Parameters&, Octets, Index, std::uint16_t*, Way);
template Status decode(const Parameters&, Octets, Index, std::uint32_t*, Way);

}  // namespace tailrace::entropy
